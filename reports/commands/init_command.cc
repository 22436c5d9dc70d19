#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdio>
#include <memory>
#include <system_error>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "reports/command_line/option_values.h"
#include "reports/commands/commands.h"
#include "reports/run_folder/run_folder.h"
#include "reports/starter/starter.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// The clone that the running program was built in, or the prefix that it was installed to; empty where neither is.
fs::path home_of_the_program() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  fs::path prefix = program.parent_path().parent_path(), clone = prefix.parent_path().parent_path();
  if (fs::exists(clone / "attest", error) && fs::exists(clone / "core/include/attest/kernel.h", error)) return clone;
  if (fs::exists(prefix / "include/attest/kernel.h", error)) return prefix;
  return {};
}

/// Where the clone was cloned from; empty where others cannot clone from there.
std::string repository_of(const fs::path& home) {
  std::error_code error;
  if (home.empty() || !fs::exists(home / ".git", error)) return {};
  const std::string line =
      fmt::format("git -C {} config --get remote.origin.url 2>/dev/null", shell_quoted(home.string()));
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(line.c_str(), "r"), ::pclose);
  if (!pipe) return {};
  std::array<char, 1024> buffer{};
  std::string address(buffer.data(), std::fread(buffer.data(), 1, buffer.size(), pipe.get()));
  if (address.ends_with('\n')) address.pop_back();
  return public_address(address);
}

/// The folder of the repository that `folder` lies in; empty where it is in none.
fs::path repository_around(fs::path folder) {
  std::error_code error;
  for (folder = fs::weakly_canonical(folder, error); !folder.empty(); folder = folder.parent_path()) {
    if (fs::exists(folder / ".git", error)) return folder;
    if (folder == folder.root_path()) break;
  }
  return {};
}

/// Leaves out what is not needed where it is there already.
void refuse_present(const fs::path& folder, std::vector<StarterFile>& files) {
  const auto is_there = [&](const StarterFile& file) {
    std::error_code error;
    return fs::exists(fs::symlink_status(folder / file.path, error));
  };
  std::erase_if(files, [&](const StarterFile& file) { return !file.needed && is_there(file); });
  for (const StarterFile& file : files) {
    if (!is_there(file)) continue;
    throw UsageError(fmt::format("{} is there already, and attest init overwrites nothing; name another folder{}",
                                 in_quotes((folder / file.path).string()),
                                 file.path.string().ends_with(".yml") ? ", or leave it out with --ci none" : ""));
  }
}

/// All or none.
void write(const fs::path& folder, const std::vector<StarterFile>& files) {
  std::vector<fs::path> written;
  try {
    for (const StarterFile& file : files) {
      const fs::path path = folder / file.path;
      std::error_code error;
      fs::create_directories(path.parent_path(), error);
      if (error)
        throw UsageError(
            fmt::format("the folder {} cannot be made: {}", in_quotes(path.parent_path().string()), error.message()));
      write_file_atomically(path, file.content);
      written.push_back(path);
      if (file.executable)
        fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                        fs::perm_options::add, error);
    }
  } catch (const UsageError&) {
    for (const fs::path& path : written) {
      std::error_code error;
      fs::remove(path, error);
    }
    throw;
  }
}

struct InitOptions {
  Language language = Language::c;
  CiService ci_service = CiService::github;
  std::vector<fs::path> folders_named;

  void declare(OptionList& list) {
    list.option("--language", language, word_of<Language>("LANGUAGE"), "of the kernel: c, cpp or python (default: c)");
    list.option("--ci", ci_service, word_of<CiService>("SERVICE"),
                "whose job to write: github, gitlab or none (default: github)");
    list.several("DIR", folders_named, any_text("DIR", folders),
                 "the folder to write into; it is made where it is not there");
  }
  void refuse() const {
    if (folders_named.size() == 1 && !folders_named.front().empty()) return;
    throw UsageError(fmt::format("attest init takes one DIR, the folder to write into{}",
                                 folders_named.empty()       ? ""
                                 : folders_named.size() == 1 ? ", not an empty name"
                                                             : fmt::format(", not {}", folders_named.size())));
  }
};

int write_project(const InitOptions& options) {
  const fs::path& folder = options.folders_named.front();
  const Origin origin{.home = home_of_the_program(), .repository = repository_of(home_of_the_program())};
  std::vector<StarterFile> files = starter_files(options.language, options.ci_service, origin);
  refuse_present(folder, files);
  write(folder, files);

  const std::string kernel = files.front().path.string();
  std::vector<std::string> names;
  names.reserve(files.size());
  for (const StarterFile& file : files) names.push_back(file.path.string());
  fmt::print("wrote {} in {}\n\nnext:\n", fmt::join(names, ", "), folder.string());
  if (folder != ".") fmt::print("  cd {}\n", shell_quoted(folder.string()));
  fmt::print("  sh attest.sh     checks the kernel in {} and leaves a report, run/report.html\n", kernel);
  fmt::print(
      "Put your own kernel into attention() there, and say in its manifest what is true of it. When you accept a "
      "run:\n");
  fmt::print(
      "  cp run/tolerances.json attest-baseline.json\n  git add {} attest-baseline.json    # and your kernel's own "
      "files\n",
      fmt::join(names, " "));
  if (options.ci_service == CiService::none) return 0;
  if (origin.repository.empty())
    fmt::print(
        "The job clones Attest from what the variable ATTEST_REPOSITORY of your repository at {} says: set it.\n",
        options.ci_service == CiService::github ? "GitHub" : "GitLab");
  const fs::path around = repository_around(folder);
  std::error_code error;
  if (!around.empty() && !fs::equivalent(around, folder, error))
    fmt::print(
        "{} is not the top of the repository {}: the job is looked for there alone. Move {} there, and name the "
        "folder in it.\n",
        folder.string(), around.string(), names.back());
  return 0;
}

}  // namespace

Command init_command() {
  return {with_options<InitOptions>(write_project), "init", "attest init DIR [OPTIONS]",
          "Writes a kernel to begin with, the script that builds and checks it, attest.sh, and a CI job that runs the "
          "script on every push. Overwrites nothing.",
          "attest init ../mine --language python --ci gitlab"};
}

}  // namespace attest
