// The cases of a judgement: what a run draws, a case of each of the contract's cells among them at places that only the
// seed knows, and calls that came before once more: the same numbers at other addresses, and others at the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "properties/catalogue/property.h"
#include "properties/generators/production.h"
#include "reports/judge/contract.h"

namespace attest {

/// What becomes of a case that is asked once more. Everything but `again` leaves shapes, addresses and most numbers as
/// they are, sums and sums of squares among them, and moves the answer: a kernel that keeps answers by pointer, by size
/// or by some of what it reads gives the wrong one.
enum class Repeat : std::uint8_t {
  again,            ///< the same numbers at other addresses
  values_rotated,   ///< each row of v stands where the next one stood
  keys_rotated,     ///< the same of k
  queries_rotated,  ///< the same of q
  column_negated,   ///< one column of v has its signs turned
  signs_turned,     ///< every other row of v has
  count
};
[[nodiscard]] Case repeated(Case c, Repeat how, std::uint64_t seed);

/// Of the dtype that has most.
[[nodiscard]] std::int64_t most_cells_of_a_dtype(const Contract& contract);

/// Cases by property, dtype and k, all of them following from the seed. Of the definition's own property the cells
/// stand at secret places below the contract's number of cases, and beyond it one after the other, again and again.
class JudgedCases {
 public:
  /// `contract` must outlive it.
  JudgedCases(const Contract& contract, std::uint64_t seed);
  [[nodiscard]] Case operator()(const Property& property, DType dtype, std::int64_t k) const;

  /// Of the definition's own property one case in so many is one of before, of the last `most_back`.
  static constexpr std::int64_t period_of_repeats = 4, most_back = 64;

 private:
  [[nodiscard]] std::optional<std::size_t> cell_at(const Property& property, DType dtype, std::int64_t k) const;
  /// Nothing is asked once more here.
  [[nodiscard]] Case first(const Property& property, DType dtype, std::int64_t k) const;

  const Contract& contract_;
  std::uint64_t seed_;
  Shapes shapes_;
  std::map<DType, std::map<std::int64_t, std::size_t>> cells_;  ///< at secret places: k to cell
  std::map<DType, std::vector<std::size_t>> cells_of_;          ///< all of a dtype
};

}  // namespace attest
