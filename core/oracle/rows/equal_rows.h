// Which rows of a head ask the same of its keys, by content: what is known of one of them is known of all.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/oracle/rows/head.h"

namespace attest::detail {

/// The rows of one head in classes of equal queries: the bytes of the row of q, and of the row of the mask where there
/// is one. What a row sees by its position is not looked at. Reused between heads to spare the heap.
class EqualRows {
 public:
  /// Every row is a class of its own.
  void all_differ(std::int64_t rows);
  /// Rows of a head of a valid attention case, loaded as `head`.
  void find(const Problem& c, const Head& head);
  /// The first row of every class, ascending.
  [[nodiscard]] std::span<const std::int64_t> first() const { return first_; }
  /// The next row of the same class; -1: there is none.
  [[nodiscard]] std::int64_t after(std::int64_t row) const { return next_[static_cast<std::size_t>(row)]; }

 private:
  std::vector<std::int64_t> first_, next_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> hashed_;
};

}  // namespace attest::detail
