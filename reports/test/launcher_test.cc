// The launcher, on a tree of stand-ins: when it asks for packages and builds, and when it runs what is there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/support/files.h"
#include "core/test/places.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

class Launcher : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* part :
         {"core/adapters/python/attest", "properties", "fuzz", "reports", "build/release/bin", "tools"})
      fs::create_directories(folder_ / part);
    fs::copy_file(source_folder() + "/attest", folder_ / "attest");
    for (const char* file : {"CMakeLists.txt", "CMakePresets.json", "core/case.cc", "core/mask.cc"})
      std::ofstream(folder_ / file) << "\n";
    tool("cmake", "");
    tool("ninja", "printf '#!/bin/sh\\necho attest 9\\n' >build/release/bin/attest; chmod +x build/release/bin/attest");
    tool("dpkg-query", "shift 3; for package; do echo \"$package installed\"; done");
    tool("apt-cache", "");
  }

  /// A program of this name that says in the log that it was called.
  void tool(const std::string& name, const std::string& does) {
    const fs::path file = folder_ / "tools" / name;
    std::ofstream(file) << "#!/bin/sh\necho " << name << " >>log\n" << does << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  /// What the launcher called, a word a line; the program must have answered. CI sets variables that the launcher
  /// reads.
  std::string calls(const std::string& environment = "") {
    fs::remove(folder_ / "log");
    EXPECT_THAT(output_of(folder_, "unset CI; " + environment + " PATH=\"$PWD/tools:$PATH\" ./attest --version"),
                Says("attest 9"));
    return fs::exists(folder_ / "log") ? read_file(folder_ / "log") : "";
  }

  /// Later than all that was written.
  void write_later(const std::string& file) { shell(folder_, "sleep 0.02; echo >>" + file); }

  const std::string builds_ = "dpkg-query\ncmake\nninja\n";
  fake::Folder folder_;
};

TEST_F(Launcher, AsksAndBuildsWhereNothingIsBuilt) {
  EXPECT_EQ(calls(), builds_);
}

TEST_F(Launcher, OnlyRunsWhatIsNewerThanItsSources) {
  calls();
  EXPECT_EQ(calls(), "");
  for (const std::string python : {"core/adapters/python", "core/adapters/python/attest"}) {
    fs::create_directories(folder_ / python / "__pycache__");
    write_later(python + "/__pycache__/a.pyc");
    EXPECT_EQ(calls(), "") << "what Python leaves behind is no source";
  }
}

TEST_F(Launcher, BuildsWhatIsOlderThanAnythingThatItIsMadeOf) {
  shell(folder_, "touch build/release/CMakeCache.txt");
  calls();
  for (const char* file : {"core/case.cc", "reports/new.cc", "CMakeLists.txt", "CMakePresets.json", "attest"}) {
    write_later(file);
    EXPECT_EQ(calls(), builds_) << file;
    EXPECT_EQ(calls(), "") << file;
  }
  shell(folder_, "sleep 0.02; rm core/mask.cc");
  EXPECT_EQ(calls(), builds_) << "a source was removed";
  EXPECT_EQ(calls("CI=true"), builds_) << "with warnings as errors";
  EXPECT_EQ(calls("CI=true"), "");
}

TEST_F(Launcher, BuildsAgainWhatChangedWhileItWasBuilt) {
  tool("ninja",
       "sleep 0.02; echo >>core/case.cc; printf '#!/bin/sh\\necho attest 9\\n' >build/release/bin/attest; "
       "chmod +x build/release/bin/attest");
  calls();
  EXPECT_NE(calls(), "");
}

TEST_F(Launcher, DoesNotTakeAFailedBuildForOne) {
  calls();
  write_later("core/case.cc");
  tool("ninja", "exit 1");
  const std::string line = "unset CI; PATH=\"$PWD/tools:$PATH\" ./attest --version";
  expect_status(folder_, line, 3);
  expect_status(folder_, line, 3);
}

TEST_F(Launcher, NamesMissingPackagesOfWhichItMayInstallNone) {
  tool("dpkg-query", "shift 3; for package; do [ \"$package\" = libfmt-dev ] || echo \"$package installed\"; done");
  EXPECT_THAT(output_of(folder_, "ATTEST_NO_INSTALL=1 PATH=\"$PWD/tools:$PATH\" ./attest --version", 3),
              Says("these packages are missing and ATTEST_NO_INSTALL=1 forbids installing them: libfmt-dev;"));
}

}  // namespace
}  // namespace attest
