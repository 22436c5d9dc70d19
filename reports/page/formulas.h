// The formulas of numbers.md, so that each number of the page leads to its own.
#pragma once

#include <string>
#include <vector>

namespace attest {

/// A row of the document's table, without its markup.
struct Formula {
  std::string id;  ///< of its anchor; empty: it has none
  std::string number, what, where;
};
/// As the document has them.
[[nodiscard]] const std::vector<Formula>& formulas();
/// The id of a formula's row on the page.
[[nodiscard]] inline std::string anchor_of_formula(const std::string& id) {
  return "formula-" + id;
}

}  // namespace attest
