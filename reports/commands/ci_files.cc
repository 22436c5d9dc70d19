#include "reports/commands/ci_files.h"

#include <fmt/format.h>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "reports/formats/junit.h"
#include "reports/formats/sarif.h"

namespace attest {

void CiFiles::refuse_homeless() const {
  const auto refuse = [](const char* option, const std::filesystem::path& file) {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    std::error_code error;
    if (file.empty() || std::filesystem::is_directory(folder, error)) return;
    throw UsageError(fmt::format("{} {} has no folder to stand in: make {} first", option, in_quotes(file.string()),
                                 in_quotes(folder.string())));
  };
  refuse("--junit", junit);
  refuse("--sarif", sarif);
}

void CiFiles::write(const Summary& summary, const Journal& journal, const std::string& folder,
                    const Conclusion& conclusion) const {
  if (!junit.empty()) write_file_atomically(junit, to_junit(summary, journal, folder, conclusion));
  if (!sarif.empty()) write_file_atomically(sarif, to_sarif(summary, journal, folder, conclusion));
}

}  // namespace attest
