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

TEST_F(Launcher, UsesWhatCIBuilt) {
  shell(folder_, "echo ATTEST_WERROR:BOOL=ON >build/release/CMakeCache.txt");
  EXPECT_EQ(calls("CI=true"), builds_);
  EXPECT_EQ(calls(), "");
  write_later("core/case.cc");
  tool("cmake", "echo \"$@\" >>log");
  EXPECT_THAT(calls(), Says("-DATTEST_WERROR=ON")) << "no other flags for all that is built";
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

/// Everything but `absent` of what the launcher and the stand-ins call, in a folder that is the whole PATH.
void whole_path(const fs::path& folder, const std::string& absent) {
  fs::create_directories(folder);
  for (const char* const name : {"bash", "sh", "cat", "chmod", "cp", "dirname", "find", "grep", "mktemp", "printf",
                                 "readlink", "rm", "tail", "touch", "tr", "xargs", "uname", "sleep"})
    fs::create_symlink(fs::path("/usr/bin") / name, folder / name);
  if (absent != "c++") fs::create_symlink("/usr/bin/true", folder / "c++");
}

TEST_F(Launcher, LeavesLibrariesToCMakeWhereThereIsNoApt) {
  whole_path(folder_ / "all", "");
  for (const char* const name : {"cmake", "ninja"}) fs::rename(folder_ / "tools" / name, folder_ / "all" / name);
  std::ofstream(folder_ / "all/cmake", std::ios::app) << "echo \"$CMAKE_PREFIX_PATH\" >>log\n";
  const std::string line = "unset CI CONDA_PREFIX CMAKE_PREFIX_PATH; PATH=\"$PWD/all\" ./attest --version";
  EXPECT_THAT(output_of(folder_, line), Says("attest 9"));
  EXPECT_EQ(read_file(folder_ / "log"), "cmake\n\nninja\n");

  fs::remove(folder_ / "log");
  write_later("core/case.cc");
  const std::string in_conda = "unset CI; export CONDA_PREFIX=/conda CMAKE_PREFIX_PATH=/mine PATH=\"$PWD/all\"; ";
  EXPECT_THAT(output_of(folder_, in_conda + "./attest --version"), Says("attest 9"));
  EXPECT_EQ(read_file(folder_ / "log"), "cmake\n/conda:/mine\nninja\n");
}

TEST_F(Launcher, NamesTheToolsThatAreMissingWhereThereIsNoApt) {
  whole_path(folder_ / "all", "c++");
  fs::rename(folder_ / "tools/cmake", folder_ / "all/cmake");
  EXPECT_THAT(output_of(folder_, "unset CI CXX; PATH=\"$PWD/all\" ./attest --version", 3),
              Says("NOTHING WAS TESTED: these programs are missing: ninja c++; install them with dnf install "));
}

TEST_F(Launcher, LetsCMakeFindWhatAptMayNotInstall) {
  tool("dpkg-query", "");
  const std::string line = "unset CI CMAKE_PREFIX_PATH; export ATTEST_NO_INSTALL=1 PATH=\"$PWD/tools:$PATH\"; ";
  EXPECT_THAT(output_of(folder_, line + "unset CONDA_PREFIX; ./attest --version", 3), Says("forbids installing"));
  EXPECT_THAT(output_of(folder_, line + "CONDA_PREFIX=/conda ./attest --version"), Says("attest 9"));
}

}  // namespace
}  // namespace attest
