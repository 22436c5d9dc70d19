#include "core/call/drawn_keep.h"

#include <cstddef>

namespace attest {

bool draws_own_dropout(const attest_problem& p) {
  return (p.variants & ATTEST_DROPOUT) != 0 && p.keep.data == nullptr && p.dropout_p != 0;
}

// The mixer is that of Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
bool keeps_at(std::int64_t seed, std::int64_t row, std::int64_t key, double p) {
  const auto mixed = [](std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  };
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  std::uint64_t x = mixed(static_cast<std::uint64_t>(seed) + golden);
  x = mixed(x + static_cast<std::uint64_t>(row) * golden);
  x = mixed(x + static_cast<std::uint64_t>(key) * golden);
  return static_cast<double>(x >> 11) * 0x1p-53 >= p;
}

DrawnKeep::DrawnKeep(const attest_problem& p)
    : DrawnKeep(p, [&p](const KeptPlace& at) {
        const std::int64_t row = (at.b * p.q.shape[1] + at.h) * p.q.shape[2] + at.i;
        return keeps_at(p.dropout_seed, row, at.j, p.dropout_p);
      }) {}

DrawnKeep::DrawnKeep(const attest_problem& p, const std::function<bool(const KeptPlace&)>& keeps) : problem(p) {
  if (!draws_own_dropout(p)) return;
  const std::int64_t batch = p.q.shape[0], heads = p.q.shape[1], queries = p.q.shape[2], keys = p.k.shape[2];
  // One more, so that a mask of nothing is a mask that is there.
  memory_.reserve(static_cast<std::size_t>(batch * heads * queries * keys + 1));
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i)
        for (std::int64_t j = 0; j < keys; ++j) memory_.push_back(keeps({b, h, i, j}) ? 1 : 0);
  problem.keep = {
      memory_.data(), ATTEST_BOOL, 4, {batch, heads, queries, keys}, {heads * queries * keys, queries * keys, keys, 1}};
}

}  // namespace attest
