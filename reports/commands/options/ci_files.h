// What CI reads of a run: a file of each format (formats.h), alike from every command that judges or joins runs.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "reports/command_line/option_values.h"
#include "reports/conclusion/conclusion.h"
#include "reports/formats/formats.h"

namespace attest {

struct CiFiles {
  std::array<std::filesystem::path, report_formats.size()> files{};  ///< of each format; empty: none

  void declare(OptionList& list) {
    for (std::size_t i = 0; i < report_formats.size(); ++i)
      list.option(report_formats[i].option, files[i], file_name(), report_formats[i].help);
  }
  /// The first option that was given; empty where none was.
  [[nodiscard]] std::string_view first_option() const;
  /// Before a run, so that none is lost to them: throws UsageError where a file has no folder to stand in.
  void refuse_homeless() const;
  /// Writes them. `folder` is the run's, for the lines that replay its cases.
  void write(const Summary& summary, const Journal& journal, const std::string& folder,
             const Conclusion& conclusion) const;
};

}  // namespace attest
