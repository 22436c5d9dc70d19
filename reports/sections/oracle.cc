#include <string_view>

#include "reports/sections/sections.h"

namespace attest {

Blocks oracle_page(const Reported& run) {
  const Summary& summary = run.summary;
  Tally all;
  for (const KernelSummary& kernel : summary.kernels)
    for (const PropertySummary& property : kernel.properties) all.merge(property.tally);
  constexpr std::string_view names[] = {"none: no number was judged", "double with a certificate", "double-double",
                                        "Arb balls"};
  Table table{"", columns_of("deepest level|#cases decided"), "", /*sorts=*/false};
  for (std::size_t level = 0; level < all.level.size(); ++level)
    table.rows.push_back({{names[level], all.level[level]}});
  table.rows.push_back({{"undecided at the last level", all.inconclusive}});
  return {std::move(table)};
}

}  // namespace attest
