#include "reports/commands/ci_files.h"

#include <fmt/format.h>

#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "reports/formats/junit.h"
#include "reports/formats/sarif.h"

namespace attest {

void refuse_homeless_ci_files(const Options& options) {
  const auto refuse = [](const char* option, const std::filesystem::path& file) {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    std::error_code error;
    if (file.empty() || std::filesystem::is_directory(folder, error)) return;
    throw UsageError(fmt::format("{} {} has no folder to stand in: make {} first", option, in_quotes(file.string()),
                                 in_quotes(folder.string())));
  };
  refuse("--junit", options.junit);
  refuse("--sarif", options.sarif);
}

void write_ci_files(const Options& options, const Summary& summary, const Journal& journal, const std::string& folder,
                    const Conclusion& conclusion) {
  if (!options.junit.empty()) write_file_atomically(options.junit, to_junit(summary, journal, folder, conclusion));
  if (!options.sarif.empty()) write_file_atomically(options.sarif, to_sarif(summary, journal, folder, conclusion));
}

}  // namespace attest
