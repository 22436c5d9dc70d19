// replay's --script: the finding written down for those who do not have Attest.
#pragma once

#include <filesystem>
#include <optional>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"
#include "properties/catalogue/property.h"
#include "properties/road/repeat.h"
#include "reports/command_line/option_values.h"

namespace attest {

struct ScriptOption {
  std::filesystem::path file;  ///< empty: none

  void declare(OptionList& list) {
    list.option("--script", file, file_name(),
                "write the finding down for those who do not have attest: a script in Python (FILE.py) or C (FILE.c, "
                ".cc, .cpp) with the input, a place to call the kernel, what came out and what is right. Overwrites "
                "nothing");
  }
  /// Before anything runs: throws UsageError for a suffix of another language, for a file that is there, and where it
  /// has no folder to stand in.
  void refuse() const;
  [[nodiscard]] bool given() const { return !file.empty(); }
  /// Writes the script of the case and says so. Throws UsageError where it is not violated, where it takes other calls
  /// before it, and where a script cannot show it (reproducer.h).
  void write(const Case& c, const Property& property, const Verdict& verdict, Kernel& kernel,
             const std::optional<Repetition>& repetition, const std::filesystem::path& case_file) const;
};

}  // namespace attest
