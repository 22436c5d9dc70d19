// The files of a new project with a kernel under test, which attest init writes: the kernel, the script that builds and
// checks it, the job that runs the script in CI. They stand in reports/starter and go into the program as it is built.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/words.h"

namespace attest {

enum class Language { c, cpp, python };
template <>
struct Words<Language> {
  static constexpr std::array<std::string_view, 3> names{"c", "cpp", "python"};
};

enum class CiService { github, gitlab, none };
template <>
struct Words<CiService> {
  static constexpr std::array<std::string_view, 3> names{"github", "gitlab", "none"};
};

/// Where Attest comes from, as the files are to name it.
struct Origin {
  std::filesystem::path home;  ///< where it was cloned or installed to; empty: the script asks for it
  std::string repository;      ///< what CI clones; empty: a variable of the service has to say so
};

struct StarterFile {
  std::filesystem::path path;  ///< relative to the project's folder
  std::string content;
  bool executable = false;
  bool needed = true;  ///< else it is left out where there is one
};

/// The address, where others can clone from it too: one of the web, without a name or a password in it; else nothing.
[[nodiscard]] std::string public_address(std::string_view address);

/// The kernel first.
[[nodiscard]] std::vector<StarterFile> starter_files(Language language, CiService service, const Origin& origin);

}  // namespace attest
