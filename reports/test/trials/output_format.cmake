# --trial of the commands that judge or join runs: a line for each kernel.
create(reports/formats/trial.cc [[
#include <fmt/format.h>

#include "core/support/visible.h"
#include "reports/formats/formats.h"

namespace attest {

std::string to_trial(const Summary& summary, const Journal&, const std::string& folder, const Conclusion& conclusion) {
  std::string text = fmt::format("run {}, exit status {}\n", visible(folder), conclusion.exit_status);
  for (const KernelSummary& kernel : summary.kernels)
    text += fmt::format("{} {}\n", visible(kernel.name), visible(kernel.dtype));
  return text;
}

}  // namespace attest
]])
insert(reports/formats/formats.h "struct ReportFormat {" [=[
/// A line for each kernel.
[[nodiscard]] std::string to_trial(const Summary& summary, const Journal& journal, const std::string& folder,
                                   const Conclusion& conclusion);

]=])
insert(reports/formats/formats.h "};\n\n}  // namespace attest" [[
    ReportFormat{"--trial", "write the trial there, a line for each kernel", to_trial},
]])
