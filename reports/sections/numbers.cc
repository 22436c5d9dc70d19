#include "reports/page/formulas.h"
#include "reports/sections/sections.h"

namespace attest {

Blocks numbers_page(bool alarm) {
  Table table{
      "Below, o is the exact real answer of an element of the output, x what the kernel found, α the exact "
      "weights of its row, v the values of its column, B the proved bound of the declared arithmetic, η the "
      "least subnormal and u the unit roundoff of the output's dtype. Sums are over the keys that the row sees.",
      columns_of("number|what it is|computed in"), "", /*sorts=*/false};
  for (const Formula& one : formulas()) {
    if (one.number.starts_with("alarm") && !alarm) continue;
    table.rows.push_back(
        {{one.number, one.what, code(one.where)}, {}, one.id.empty() ? "" : anchor_of_formula(one.id)});
  }
  return {std::move(table), Paragraph{"The same as numbers.md: in the project's reports/, of an installation in "
                                      "share/doc/attest/.",
                                      "note"}};
}

}  // namespace attest
