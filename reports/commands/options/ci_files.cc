#include "reports/commands/options/ci_files.h"

#include <fmt/format.h>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"

namespace attest {

std::string_view CiFiles::first_option() const {
  for (std::size_t i = 0; i < report_formats.size(); ++i)
    if (!files[i].empty()) return report_formats[i].option;
  return {};
}

void CiFiles::refuse_homeless() const {
  for (std::size_t i = 0; i < report_formats.size(); ++i) {
    const std::filesystem::path& file = files[i];
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    std::error_code error;
    if (file.empty() || std::filesystem::is_directory(folder, error)) continue;
    throw UsageError(fmt::format("{} {} has no folder to stand in: make {} first", report_formats[i].option,
                                 in_quotes(file.string()), in_quotes(folder.string())));
  }
}

void CiFiles::write(const Summary& summary, const Journal& journal, const std::string& folder,
                    const Conclusion& conclusion) const {
  for (std::size_t i = 0; i < report_formats.size(); ++i)
    if (!files[i].empty())
      write_file_atomically(files[i], report_formats[i].text(summary, journal, folder, conclusion));
}

}  // namespace attest
