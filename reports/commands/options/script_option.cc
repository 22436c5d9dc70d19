#include "reports/commands/options/script_option.h"

#include <fmt/format.h>

#include <cstdio>
#include <system_error>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "reports/formats/reproducer.h"
#include "reports/run_folder/run_folder.h"
#include "reports/text/text.h"

namespace attest {

void ScriptOption::refuse() const {
  if (!given()) return;
  const std::string name = in_quotes(file.string());
  if (!script_language_of(file))
    throw UsageError(fmt::format(
        "--script is {}; its suffix says the language: name a file that ends in .py, .c, .cc or .cpp", name));
  std::error_code error;
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(folder, error))
    throw UsageError(
        fmt::format("--script {} has no folder to stand in: make {} first", name, in_quotes(folder.string())));
  if (std::filesystem::exists(std::filesystem::symlink_status(file, error)))
    throw UsageError(fmt::format(
        "--script {} is there already, and a call that was put into it would be lost; name another file, or remove it",
        name));
}

void ScriptOption::write(const Case& c, const Property& property, const Verdict& verdict, Kernel& kernel,
                         const std::optional<Repetition>& repetition, const std::filesystem::path& case_file) const {
  const std::string option = fmt::format("--script {}", in_quotes(file.string()));
  if (verdict.outcome != Outcome::violated)
    throw UsageError(fmt::format("{}: the case is {} now, and a script is of what is wrong; nothing is written", option,
                                 name_of(verdict.outcome)));
  if (repetition && !repetition->before.empty())
    throw UsageError(fmt::format(
        "{}: the finding takes {} other calls before it, and a script makes one; hand on the case files themselves",
        option, repetition->before.size()));
  const ScriptLanguage language = script_language_of(file).value();
  Reproducer made = reproducer_of(c, property, verdict, kernel, option);
  if (made.gradient && language != ScriptLanguage::python)
    throw UsageError(
        fmt::format("{}: the finding is about gradients, of which there are scripts in Python alone; name a "
                    "file that ends in .py",
                    option));
  // By its name alone: where it lies on this machine is nobody's business.
  made.replay = fmt::format("attest replay {}", shell_quoted(case_file.filename().string()));
  if (repetition)
    made.comes_and_goes = fmt::format("it comes and goes: in {} of {} checks", repetition->again, repetition->of);
  write_file_atomically(file, script_of(made, language));
  fmt::print("wrote {}, which needs no attest: see that kernel() in it calls the kernel\n", one_line(file.string()));
}

}  // namespace attest
