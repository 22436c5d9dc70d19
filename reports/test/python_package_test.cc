// The package attest as pip installs it: which program it runs, and the other project that has its name.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

class PythonPackage : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "site");
    fs::copy(source_folder() + "/core/adapters/python/attest", folder_ / "site/attest", fs::copy_options::recursive);
  }

  /// A program that says its name, and what lines to copy would call it.
  void program(const std::string& path, const std::string& says) {
    const fs::path file = folder_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "#!/bin/sh\necho " << says << " \"$ATTEST_COMMAND\" \"$@\"\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  /// What Python says that has the package, and a folder of programs.
  std::string python(const std::string& words, int status = 0) {
    return output_of(folder_,
                     "unset ATTEST_PROGRAM ATTEST_COMMAND; export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=\"$PWD/site\" "
                     "PATH=\"$PWD/bin:$PATH\"; /usr/bin/python3 " +
                         words,
                     status);
  }

  fake::Folder folder_;
};

TEST_F(PythonPackage, RunsTheProgramThatLiesInIt) {
  program("bin/attest", "another");
  EXPECT_EQ(python("-m attest check --help"), "another " + (folder_ / "bin/attest").string() + " check --help\n");
  program("site/attest/program/bin/attest", "own");
  EXPECT_EQ(python("-m attest check --help"),
            "own " + (folder_ / "site/attest/program/bin/attest").string() + " check --help\n");
}

TEST_F(PythonPackage, IsCalledByTheNameOfItsCommand) {
  program("site/attest/program/bin/attest", "own");
  fs::create_directories(folder_ / "bin");
  std::ofstream(folder_ / "bin/attest") << "#!/usr/bin/python3\nimport sys\nfrom attest.__main__ import main\n"
                                           "sys.exit(main())\n";
  fs::permissions(folder_ / "bin/attest", fs::perms::owner_all);
  EXPECT_EQ(python("-c 'import os; os.execvp(\"attest\", [\"attest\", \"list\"])'"), "own attest list\n");
  // Where the package has none, its command is not taken for the program.
  fs::rename(folder_ / "site/attest/program", folder_ / "elsewhere");
  EXPECT_EQ(python("-c 1; bin/attest list", 3),
            "attest: " + (folder_ / "bin/attest").string() +
                " would run itself: there is no program in the package; install it again\n");
  fs::rename(folder_ / "elsewhere", folder_ / "site/attest/program");
  // Where the shell would find another, or none, the path is said.
  EXPECT_EQ(python("-c 1; PATH=/usr/bin:/bin bin/attest list"), "own bin/attest list\n");
}

TEST_F(PythonPackage, SaysThatThereIsNoProgram) {
  EXPECT_EQ(python("-c 'import os, sys; os.environ[\"PATH\"] = \"/nowhere\"; from attest.__main__ import main; "
                   "sys.exit(main())'",
                   3),
            "attest: the program attest is not on the PATH; install it, or name it in $ATTEST_PROGRAM\n");
}

TEST_F(PythonPackage, RefusesTheOtherProjectOfThisNameInOneLine) {
  program("site/attest/program/bin/attest", "own");
  fs::create_directories(folder_ / "site/attest_attention-0.1.0.dist-info");
  fs::create_directories(folder_ / "site/attestation-1.0.dist-info");
  EXPECT_TRUE(python("-m attest list").starts_with("own "));
  for (const char* other : {"attest-0.6.dist-info", "Attest-0.5.3-py3.9.egg-info"}) {
    fs::create_directories(folder_ / "site" / other);
    const std::string refusal =
        "two projects have the module attest, and both are installed: attest-attention, which is this one, and attest "
        "(" +
        (folder_ / "site" / other).string() +
        "); keep one: pip uninstall attest attest-attention, then pip install attest-attention\n";
    EXPECT_EQ(python("-m attest list", 3), "attest: " + refusal);
    EXPECT_EQ(python("-c \"\nimport attest\ntry: attest.check(lambda q, k, v: q)\n"
                     "except attest.AttestError as error: print(error)\""),
              refusal);
    fs::remove(folder_ / "site" / other);
  }
  EXPECT_TRUE(python("-m attest list").starts_with("own "));
}

TEST_F(PythonPackage, HasEveryNameThatItPromises) {
  EXPECT_TRUE(fs::exists(folder_ / "site/attest/py.typed"));
  program("site/attest/program/bin/attest", "own");
  EXPECT_EQ(
      python("-c 'import attest, os; os.environ[\"ATTEST_ADAPTERS\"] = \"" + source_folder() +
             "/core/adapters\"; print([name for name in attest.__all__ if not callable(getattr(attest, name))])'"),
      "[]\n");
}

}  // namespace
}  // namespace attest
