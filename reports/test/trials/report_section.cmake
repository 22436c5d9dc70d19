# "Trial", on the page and in summary.md: how many kernels there are.
create(reports/sections/trial.cc [[
#include <fmt/format.h>

#include "reports/sections/sections.h"

namespace attest {

Blocks trial_page(const Reported& run) {
  return {Paragraph{fmt::format("Kernels that were tried: {}.", run.summary.kernels.size())}};
}

Brief trial_brief(const Reported& run) {
  Listing listing;
  for (const KernelSummary& kernel : run.summary.kernels) listing.items.push_back({"Tried: ", name_in(kernel)});
  return {"Trial", "kernels that were tried", {}, {std::move(listing)}};
}

}  // namespace attest
]])
insert(reports/sections/sections.h "/// What the run says nothing about, and why." [=[
/// How many kernels there are.
[[nodiscard]] Blocks trial_page(const Reported& run);
[[nodiscard]] Brief trial_brief(const Reported& run);
]=])
insert(reports/sections/sections.h [[    Section{"not-covered"]] [[
    Section{"trial", "Trial", "", trial_page, trial_brief, /*share=*/500},
]])
