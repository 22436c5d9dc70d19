// The order in which a sum adds its terms up: found from outside, and written down as one of the usual orders.
//
// Found by the method of FPRev (P. Xie, Y. Gao, Y. Wang and J. Xue, "Revealing Floating-Point Accumulation Orders in
// Software/Hardware Implementations", USENIX ATC 2025): of a sum that rounds every addition, M in the place of term i,
// -M in that of term j and small equal terms elsewhere leave as many small terms as are added outside of the smallest
// subtree that holds both i and j, where M is so large that a small term beside it is lost.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/arithmetic.h"

namespace attest {

/// Up to so many terms of a sum are looked at together.
inline constexpr int most_terms = 64;

/// A sum as a tree: the terms under each of its nodes, a bit per term, of two terms and more; ascending.
using SummationTree = std::vector<std::uint64_t>;

/// For each pair of terms how many of all terms lie under the smallest node that holds both; nothing where no count
/// came out.
using NodeSizes = std::function<std::optional<std::vector<int>>(const std::vector<std::pair<int, int>>& pairs)>;

/// The tree of a sum of 2 to most_terms terms, of which `sizes` is asked a few times. A node of more than two branches
/// is a sum that is rounded as a whole. Nothing where the sizes are those of no tree.
[[nodiscard]] std::optional<SummationTree> find_summation_tree(int terms, const NodeSizes& sizes);

/// How sums are usually ordered.
struct SummationOrder {
  /// Of the terms of one part.
  enum class Within {
    sequential,  ///< one after another
    backwards,   ///< from the last to the first
    pairwise,    ///< by halves: 0..n/2 and the rest
    adjacent,    ///< neighbours first, so that parts are as long as powers of two
    strided,     ///< term i with term i + n/2, and so on
    lanes        ///< term i into accumulator i mod `lanes`
  };
  Within within = Within::sequential;
  std::int64_t lanes = 1;
  Within lanes_merged = Within::sequential;  ///< the accumulators: any but lanes
  bool tail_apart = false;                   ///< terms beyond a multiple of `lanes` are added at the end
  std::int64_t block = 0;                    ///< terms in a part; 0: all, or `parts`
  std::int64_t parts = 0;                    ///< so many parts of equal length, whatever the number of terms
  Within merged = Within::sequential;        ///< the parts: any but lanes

  [[nodiscard]] bool operator==(const SummationOrder&) const = default;
};

/// "one after another", "8 accumulators in turn, added pairwise", "blocks of 64, each one after another, …".
[[nodiscard]] std::string words_of(const SummationOrder& order);

/// Every order that is looked for, the plainest first.
[[nodiscard]] const std::vector<SummationOrder>& known_orders();

/// The tree of `terms` terms in that order, as the terms at `seen` (ascending, most_terms at most) show it.
[[nodiscard]] SummationTree tree_of(const SummationOrder& order, std::int64_t terms,
                                    std::span<const std::int64_t> seen);
/// Two orders of one sum for that number of terms have the same one, and others hardly ever.
[[nodiscard]] std::uint64_t fingerprint_of(const SummationOrder& order, std::int64_t terms);
/// The most additions that a term passes.
[[nodiscard]] std::int64_t depth_of(const SummationOrder& order, std::int64_t terms);
/// The sum of those numbers in that order, each addition rounded by `round`.
[[nodiscard]] double sum_in(const SummationOrder& order, std::span<const double> terms,
                            const std::function<double(double)>& round);

/// The manifest's words for sums over keys of that order: no fewer additions than it makes for any number of keys up to
/// 10,000. Nothing where it is no fewer than the number of keys.
[[nodiscard]] std::optional<BlockedSums> declared_depth(const SummationOrder& order);

}  // namespace attest
