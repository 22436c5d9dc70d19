#include "reports/starter/starter.h"

#include <fmt/format.h>

#include "reports/run/embedded_files.h"
#include "reports/run_folder/run_folder.h"

namespace attest {
namespace {

/// What stands in the files otherwise is of C.
struct Traits {
  std::string_view file, build, kernel, packages, cases;

  [[nodiscard]] bool is_compiled() const { return kernel.ends_with(".so"); }
};

constexpr std::string_view packages_of_c = "gcc libc6-dev";

Traits traits_of(Language language) {
  switch (language) {
    case Language::c:
      return {"mine.c", "cc -O2 -shared -fPIC -I \"$include\" -o libmine.so mine.c -lm || exit 2", "./libmine.so",
              packages_of_c, "4000"};
    case Language::cpp:
      return {"mine.cpp", "c++ -O2 -shared -fPIC -I \"$include\" -o libmine.so mine.cpp || exit 2", "./libmine.so",
              "g++", "4000"};
    case Language::python:
      break;
  }
  // A process is slower than a library. Debian's packages belong to its own interpreter, which may not be the first.
  return {"mine.py", "python=python3\n\"$python\" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3",
          "\"exec:$python mine.py\"", "python3-numpy", "1000"};
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

std::string script_of(const Traits& traits, const std::filesystem::path& home) {
  std::string text(embedded_file("starter/attest.sh.in"));
  replace_all(text, "@HOME@",
              home.empty() ? ": \"${ATTEST:?must name the folder that Attest was cloned or installed to}\""
                           : fmt::format("[ -n \"${{ATTEST:-}}\" ] || ATTEST={}", shell_quoted(home.string())));
  replace_all(text, "@BUILDS@", traits.is_compiled() ? "Builds the kernel and checks it" : "Checks the kernel");
  replace_all(text, "@BUILD@", traits.build);
  if (!traits.is_compiled()) {
    replace_all(text, " include=$ATTEST/include", "");
    replace_all(text, " include=$ATTEST/core/include", "");
  }
  replace_all(text, "@KERNEL@", traits.kernel);
  replace_all(text, "@CASES@", traits.cases);
  return text;
}

std::string job_of(CiService service, const Traits& traits, const std::string& repository) {
  const bool github = service == CiService::github;
  std::string text(embedded_file(github ? "starter/github-actions.yml" : "starter/gitlab-ci.yml"));
  replace_all(text, packages_of_c, traits.packages);
  if (repository.empty()) return text;
  // A variable of the service still goes before it.
  if (github) {
    replace_all(text, "${{ vars.ATTEST_REPOSITORY }}",
                fmt::format("${{{{ vars.ATTEST_REPOSITORY || '{}' }}}}", repository));
  } else {
    replace_all(text, "\nstages:", fmt::format("\nvariables:\n  ATTEST_REPOSITORY: {}\nstages:", repository));
  }
  return text;
}

}  // namespace

std::string public_address(std::string_view address) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/._~-";
  const bool is_public = address.starts_with("https://") && address.find_first_not_of(plain) == std::string_view::npos;
  return std::string(is_public ? address : "");
}

std::vector<StarterFile> starter_files(Language language, CiService service, const Origin& origin) {
  const Traits traits = traits_of(language);
  std::string kernel(embedded_file(language == Language::python ? "starter/mine.py" : "starter/mine.c"));
  std::vector<StarterFile> files{{traits.file, std::move(kernel)},
                                 {"attest.sh", script_of(traits, origin.home), /*executable=*/true}};
  files.push_back({.path = ".gitignore",
                   .content = traits.is_compiled() ? "/run/\n/libmine.so\n" : "/run/\n",
                   .executable = false,
                   .needed = false});
  if (service == CiService::none) return files;
  files.push_back({service == CiService::github ? ".github/workflows/attest.yml" : ".gitlab-ci.yml",
                   job_of(service, traits, origin.repository)});
  return files;
}

}  // namespace attest
