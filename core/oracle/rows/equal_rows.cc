#include "core/oracle/rows/equal_rows.h"

#include <algorithm>
#include <cstring>

namespace attest::detail {
namespace {

/// Rows of equal length, equally far apart in memory.
struct Rows {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< of a row; 0: there are none, and all are equal
  std::size_t pitch = 0;  ///< bytes from row to row

  [[nodiscard]] const std::byte* row(std::int64_t i) const { return data + static_cast<std::size_t>(i) * pitch; }
  [[nodiscard]] bool equal(std::int64_t i, std::int64_t j) const { return std::memcmp(row(i), row(j), bytes) == 0; }
};

Rows rows_of(const Tensor& tensor, std::int64_t from, std::int64_t length, std::int64_t pitch) {
  const std::size_t size = size_of(tensor.dtype());
  return {tensor.bytes().data() + static_cast<std::size_t>(from) * size, static_cast<std::size_t>(length) * size,
          static_cast<std::size_t>(pitch) * size};
}

/// Equal bytes have equal hashes, and different ones hardly ever: whoever relies on it compares them.
std::uint64_t hash_of(const std::byte* data, std::size_t bytes) {
  // Two sums beside each other, since a product takes longer than the next word is away.
  std::uint64_t sums[2] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f};
  const auto mix = [](std::uint64_t sum, std::uint64_t word) {
    sum = (sum ^ word) * 0xff51afd7ed558ccd;
    return sum ^ (sum >> 32U);
  };
  std::size_t at = 0;
  for (; at + 16 <= bytes; at += 16) {
    std::uint64_t words[2];
    std::memcpy(words, data + at, 16);
    sums[0] = mix(sums[0], words[0]), sums[1] = mix(sums[1], words[1]);
  }
  std::uint64_t rest[2] = {};
  std::memcpy(rest, data + at, bytes - at);
  return mix(mix(sums[0], rest[0]), mix(sums[1], rest[1]));
}

/// Brings rows that are alike so far and have one mask together. The mask is read where rows repeat only.
void hash_masks(const Rows& mask, std::vector<std::pair<std::uint64_t, std::int64_t>>& hashed) {
  for (auto from = hashed.begin(); from != hashed.end();) {
    const auto to = std::find_if(from, hashed.end(), [&](const auto& other) { return other.first != from->first; });
    if (to - from > 1) {
      for (auto at = from; at != to; ++at) at->first ^= hash_of(mask.row(at->second), mask.bytes);
      std::sort(from, to);
    }
    from = to;
  }
}

}  // namespace

void EqualRows::all_differ(std::int64_t rows) {
  first_.resize(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) first_[static_cast<std::size_t>(i)] = i;
  next_.assign(static_cast<std::size_t>(rows), -1);
}

void EqualRows::find(const Problem& c, const Head& head) {
  const Rows q = rows_of(c.q(), head.q_offset, head.dk, head.dk);
  const Rows mask = head.mask ? rows_of(*head.mask, head.mask_offset, head.keys, head.mask_pitch) : Rows{};
  const Rows keep = head.keep ? rows_of(*head.keep, head.keep_offset, head.keys, head.keep_pitch) : Rows{};
  hashed_.clear();
  for (std::int64_t i = 0; i < head.queries; ++i) hashed_.emplace_back(hash_of(q.row(i), q.bytes), i);
  std::ranges::sort(hashed_);
  for (const Rows& other : {mask, keep})
    if (other.bytes > 0) hash_masks(other, hashed_);
  first_.clear();
  next_.assign(static_cast<std::size_t>(head.queries), -1);
  // Of rows with one hash each joins the class before it, or those that do not fit become classes of their own.
  for (std::size_t at = 0; at < hashed_.size(); ++at) {
    const std::int64_t row = hashed_[at].second;
    const bool joins = at > 0 && hashed_[at].first == hashed_[at - 1].first && q.equal(row, hashed_[at - 1].second) &&
                       (mask.bytes == 0 || mask.equal(row, hashed_[at - 1].second)) &&
                       (keep.bytes == 0 || keep.equal(row, hashed_[at - 1].second));
    if (joins)
      next_[static_cast<std::size_t>(hashed_[at - 1].second)] = row;
    else
      first_.push_back(row);
  }
  std::ranges::sort(first_);
}

}  // namespace attest::detail
