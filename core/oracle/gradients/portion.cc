#include "core/oracle/gradients/portion.h"

#include <algorithm>
#include <random>

namespace attest::detail {
namespace {

bool is_wanted(const GradientChoice& wanted, Gradient of) {
  return wanted[static_cast<std::size_t>(of)];
}

}  // namespace

Portion::Portion(const Problem& c, std::int64_t rows, const GradientChoice& wanted)
    : sequences_(sequences_of(c)),
      kv_heads_(c.k().shape()[1]),
      group_(kv_heads_ == 0 ? 0 : c.q().shape()[1] / kv_heads_),
      whole_(sequences_.size() * static_cast<std::size_t>(kv_heads_)) {
  const bool of_shared = is_wanted(wanted, Gradient::mask) || is_wanted(wanted, Gradient::sink);
  if (rows <= 0 || rows >= all(Gradient::q) || of_shared) {
    whole_.assign(whole_.size(), true);
    return;
  }
  if (is_wanted(wanted, Gradient::k) || is_wanted(wanted, Gradient::v)) choose_groups(rows);
  if (!is_wanted(wanted, Gradient::q)) return;
  const std::int64_t heads = std::ssize(sequences_) * kv_heads_ * group_;
  share_ = rows / heads, rest_ = rows % heads;
}

/// The last, the first, and others by chance.
void Portion::choose_groups(std::int64_t rows) {
  std::vector<std::size_t> order;
  for (std::int64_t s = 0; s < std::ssize(sequences_); ++s)
    for (std::int64_t kv = 0; kv < kv_heads_ && sequences_[static_cast<std::size_t>(s)].keys > 0; ++kv)
      order.push_back(at(s, kv));
  if (order.empty()) return;
  std::rotate(order.begin(), order.end() - 1, order.end());
  std::mt19937_64 random(order.size());
  for (std::size_t i = 2; i < order.size(); ++i) std::swap(order[i], order[i + random() % (order.size() - i)]);
  std::int64_t taken = 0;
  for (const std::size_t group : order) {
    const std::int64_t own = group_rows(static_cast<std::int64_t>(group) / kv_heads_);
    if (taken > 0 && taken + own > rows) continue;
    whole_[group] = true;
    taken += own;
  }
}

std::vector<std::int64_t> Portion::rows_of(std::int64_t s, std::int64_t kv) const {
  std::vector<std::int64_t> rows;
  for (std::int64_t h = 0; h < group_; ++h) {
    const std::int64_t head = (s * kv_heads_ + kv) * group_ + h;
    rows.push_back(std::min(share_ + (head < rest_ ? 1 : 0), sequences_[static_cast<std::size_t>(s)].queries));
  }
  return rows;
}

std::int64_t Portion::judged(Gradient of) const {
  std::int64_t sum = 0;
  for (std::int64_t s = 0; s < std::ssize(sequences_); ++s)
    for (std::int64_t kv = 0; kv < kv_heads_; ++kv) {
      if (is_whole(s, kv)) sum += of == Gradient::q ? group_rows(s) : sequences_[static_cast<std::size_t>(s)].keys;
      if (is_whole(s, kv) || of != Gradient::q) continue;
      for (const std::int64_t rows : rows_of(s, kv)) sum += rows;
    }
  return sum;
}

std::int64_t Portion::all(Gradient of) const {
  std::int64_t sum = 0;
  for (const Sequence& s : sequences_) sum += (of == Gradient::q ? s.queries * group_ : s.keys) * kv_heads_;
  return sum;
}

}  // namespace attest::detail
