#include "properties/diagnosis/row_misreadings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <utility>

#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/problem/score.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/diagnosis/pair_product.h"

namespace attest {
namespace {

/// Keys to a step of the loop over keys; 1: every key by itself.
constexpr std::int64_t steps[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
/// Into so many parts rows are split.
constexpr std::int64_t splits[] = {2, 4, 8};
/// What stands for the score of a hidden key, with its sign turned.
constexpr std::int64_t hidden_scores[] = {10'000, 65'504, 1'000'000'000};

/// A row as real numbers.
class Row {
 public:
  Row(const Case& c, const ExaminedRow& place) : c_(c), e_(extents_of(c)), place_(place) {
    kv_row_ = (place.batch * e_.kv_heads + kv_head_of(c, place.head)) * e_.keys;
    const bool pre = convention_of(c) == MaskConvention::pre_scale;
    for (std::int64_t j = 0; j < e_.keys; ++j) {
      const bool sees = !hidden(c, place.batch, place.head, place.query, j);
      const double bias = sees ? bias_of(c, place.batch, place.head, place.query, j) : -infinity;
      added_.push_back(pre && sees ? c.scale * bias : bias);
      const long double product = product_of_pair(c, place.batch, place.head, place.query, j);
      readable_ = readable_ && std::isfinite(static_cast<double>(product));
      scores_.push_back(capped(static_cast<double>(product * static_cast<long double>(c.scale)), c.softcap) +
                        added_.back());
    }
    for (std::int64_t at = kv_row_ * e_.dv; at < (kv_row_ + e_.keys) * e_.dv; ++at)
      readable_ = readable_ && std::isfinite(c.v()[at]);
    if (!scores_.empty()) largest_ = std::ranges::max(scores_);
  }
  /// Its numbers are finite, and it sees a key.
  [[nodiscard]] bool readable() const { return readable_ && std::isfinite(largest_); }
  [[nodiscard]] std::int64_t keys() const { return e_.keys; }
  [[nodiscard]] double largest() const { return largest_; }
  [[nodiscard]] double score(std::int64_t j) const { return scores_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] double added(std::int64_t j) const { return added_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] bool sees(std::int64_t j) const { return added(j) != -infinity; }

  using OfKey = std::function<double(std::int64_t j)>;
  /// The row as a problem of its own, with what is added to scores, keys times one number, and values times another.
  [[nodiscard]] Case problem(const OfKey& added, const OfKey& key_times = one, const OfKey& value_times = one) const {
    Case row;
    row.scale = c_.scale, row.softcap = c_.softcap;
    row[Slot::q] = Tensor(c_.dtype(), {1, 1, 1, e_.dk});
    for (std::int64_t d = 0; d < e_.dk; ++d) row[Slot::q].set(d, query(d));
    const std::int64_t kv = kv_head_of(c_, place_.head);
    const auto taken = [&](Slot slot, const OfKey& times) {
      const std::int64_t width = c_[slot].shape()[3];
      Tensor tensor(DType::f64, {1, 1, e_.keys, width});
      for (std::int64_t at = 0; at < tensor.elements(); ++at)
        tensor.set(
            at, c_[slot][kv_row_ * width + at] * factor_of(c_, slot, place_.batch, kv, at / width) * times(at / width));
      row[slot] = std::move(tensor);
    };
    // Keys and values are multiplied by then, and a factor of 1 lets a kernel round that.
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
      if (!c_[descale_of(slot)].present()) continue;
      const double of_query = factor_of(c_, Slot::q, place_.batch, place_.head, place_.query);
      row[descale_of(slot)] = Tensor(DType::f32, {1, 1, 1}, std::vector<double>{slot == Slot::q ? of_query : 1});
    }
    taken(Slot::k, key_times);
    taken(Slot::v, value_times);
    Tensor mask(DType::f64, {1, 1, 1, e_.keys});
    for (std::int64_t j = 0; j < e_.keys; ++j) mask.set(j, added(j));
    row[Slot::mask] = std::move(mask);
    // Weights are dropped behind all that is misread here.
    if (!c_[Slot::keep].present()) return row;
    row.dropout_p = c_.dropout_p;
    row[Slot::keep] = Tensor(DType::boolean, {1, 1, 1, e_.keys});
    for (std::int64_t j = 0; j < e_.keys; ++j)
      row[Slot::keep].set(j, keeps(c_, place_.batch, place_.head, place_.query, j) ? 1.0 : 0.0);
    return row;
  }

 private:
  static double one(std::int64_t) { return 1; }
  [[nodiscard]] double query(std::int64_t d) const {
    return c_.q()[((place_.batch * e_.heads + place_.head) * e_.queries + place_.query) * e_.dk + d];
  }

  const Case& c_;
  const Extents e_;
  const ExaminedRow place_;
  std::int64_t kv_row_ = 0;  ///< of k and v, its head's first
  std::vector<double> added_, scores_;
  double largest_ = -infinity;
  bool readable_ = true;
};

class RowReadings {
 public:
  explicit RowReadings(const Row& row) : row_(row) {
    for (const std::int64_t score : hidden_scores) hidden_is(score);
    for (const std::int64_t step : steps) without_rescaling(step);
    for (const std::int64_t parts : splits) merged_wrongly(parts);
  }
  [[nodiscard]] std::vector<RowReading> take() { return std::move(found_); }

 private:
  using Numbers = std::vector<double>;

  void hidden_is(std::int64_t size) {
    const auto score = -static_cast<double>(size);
    const auto added = [&](std::int64_t j) { return row_.sees(j) ? row_.added(j) : score; };
    const auto kept = [&](std::int64_t j) { return row_.sees(j) ? 1.0 : 0.0; };
    found_.push_back(
        {"hidden keys had the score -#, and not -inf", size, row_.problem(added, kept), /*tells_all_sizes=*/true});
    found_.push_back({"-#, and not -inf, were added to the scores of hidden keys", size, row_.problem(added),
                      /*tells_all_sizes=*/true});
  }

  /// What is added to scores and what values are multiplied by.
  void add(std::string words, std::int64_t size, const Numbers& added, const Numbers& times = {}) {
    const auto finite = [](double x) { return std::isfinite(x); };
    if (!std::ranges::all_of(added, finite) || !std::ranges::all_of(times, finite)) {
      found_.push_back({.words = std::move(words), .size = size, .problem = {}, .is_silent = true});
      return;
    }
    const auto bias = [&](std::int64_t j) {
      return row_.added(j) + (added.empty() ? 0.0 : added[static_cast<std::size_t>(j)]);
    };
    const auto factor = [&](std::int64_t j) { return times.empty() ? 1.0 : times[static_cast<std::size_t>(j)]; };
    found_.push_back({std::move(words), size, row_.problem(bias, [](std::int64_t) { return 1.0; }, factor)});
  }

  /// The largest score up to the end of a key's step; the row's own for keys before the first that is seen.
  [[nodiscard]] Numbers references(std::int64_t step) const {
    Numbers all;
    double largest = -infinity;
    for (std::int64_t first = 0; first < row_.keys(); first += step) {
      const std::int64_t end = std::min(first + step, row_.keys());
      for (std::int64_t j = first; j < end; ++j) largest = std::max(largest, row_.score(j));
      all.insert(all.end(), static_cast<std::size_t>(end - first), largest == -infinity ? row_.largest() : largest);
    }
    return all;
  }
  /// Sum of e^(score - reference) over keys of [first, end).
  [[nodiscard]] double sum(std::int64_t first, std::int64_t end, double reference) const {
    double all = 0;
    for (std::int64_t j = first; j < end; ++j)
      if (row_.sees(j)) all += std::exp(row_.score(j) - reference);
    return all;
  }

  void without_rescaling(std::int64_t step) {
    const Numbers reference = references(step);
    Numbers behind, factors, last, none(reference.size(), 0.0);
    double sum_kept = 0;
    // Steps behind the last key that is seen are not taken.
    std::int64_t last_seen = row_.keys() - 1;
    while (!row_.sees(last_seen)) --last_seen;
    const std::int64_t begin_of_last = last_seen / step * step;
    for (std::int64_t j = 0; j < row_.keys(); ++j) {
      const double lag = row_.largest() - reference[static_cast<std::size_t>(j)];
      behind.push_back(lag), factors.push_back(std::exp(lag));
      last.push_back(j < begin_of_last ? row_.largest() - reference[static_cast<std::size_t>(begin_of_last - 1)] : 0);
      if (row_.sees(j)) sum_kept += std::exp(row_.score(j) - row_.largest() + lag);
    }
    add("the output so far were not rescaled where the maximum rises, in steps of # keys", step, none, factors);
    const double ratio = sum(0, row_.keys(), row_.largest()) / sum_kept;
    add("the sum of weights so far were not rescaled where the maximum rises, in steps of # keys", step, none,
        Numbers(reference.size(), ratio));
    add("neither output nor sum were rescaled where the maximum rises, in steps of # keys", step, behind);
    add("nothing were rescaled at the last step, of # keys each", step, last);
    normalised_each_step(step, reference);
  }

  /// After each step what was summed is divided by its sum, and counts as one weight from there.
  void normalised_each_step(std::int64_t step, const Numbers& reference) {
    Numbers added(reference.size(), 0.0);
    double kept = 0, before = 0;
    for (std::int64_t first = 0; first < row_.keys(); first += step) {
      const std::int64_t end = std::min(first + step, row_.keys());
      const double now = reference[static_cast<std::size_t>(first)];
      const double own = sum(first, end, now);
      const double old = kept * std::exp(before - now);
      // Of all weights of the step the sum becomes 1; those before it share what the old one has of it.
      const double log_sum = std::log(old + own);
      if (own == 0 && kept == 0) continue;
      for (std::int64_t j = 0; j < first; ++j) added[static_cast<std::size_t>(j)] += before - now - log_sum;
      for (std::int64_t j = first; j < end; ++j) added[static_cast<std::size_t>(j)] = row_.largest() - now - log_sum;
      kept = 1, before = now;
    }
    add("the output were normalised after each step of # keys, and the sum forgotten", step, added);
  }

  void merged_wrongly(std::int64_t parts) {
    const std::int64_t length = (row_.keys() + parts - 1) / parts;
    Numbers by_maximum(static_cast<std::size_t>(row_.keys()), 0.0), base_two = by_maximum;
    for (std::int64_t first = 0; first < row_.keys(); first += length) {
      const std::int64_t end = std::min(first + length, row_.keys());
      double largest = -infinity;
      for (std::int64_t j = first; j < end; ++j) largest = std::max(largest, row_.score(j));
      if (largest == -infinity) continue;
      const double log_sum = std::log(sum(first, end, largest));
      for (std::int64_t j = first; j < end; ++j) {
        by_maximum[static_cast<std::size_t>(j)] = -log_sum;
        base_two[static_cast<std::size_t>(j)] = (largest + log_sum - row_.largest()) * (std::numbers::log2e - 1);
      }
    }
    add("# parts were merged by their maxima, without the sums of their weights", parts, by_maximum);
    add("# parts were merged by powers of e of log-sum-exps to base 2", parts, base_two);
  }

  const Row& row_;
  std::vector<RowReading> found_;
};

}  // namespace

std::vector<RowReading> readings_of_row(const Case& c, const ExaminedRow& place) {
  const Row row(c, place);
  return row.readable() ? RowReadings(row).take() : std::vector<RowReading>();
}

std::vector<ExaminedRow> rows_to_look_at(const Case& c, const Tensor& out, const Arithmetic& arithmetic) {
  constexpr std::size_t most_wrong = 3, most_right = 2;
  std::map<std::int64_t, bool> wrong;
  const Extents e = extents_of(c);
  OracleOptions options;
  options.element = [&](const JudgedElement& one) {
    bool& row = wrong.try_emplace(one.element / e.dv, false).first->second;
    row = row || one.outcome == Outcome::violated;
  };
  (void)judge_attention(c, out, Tensor(), arithmetic, options);
  std::vector<ExaminedRow> chosen;
  std::array<std::size_t, 2> counts{};
  for (const auto& [row, is_wrong] : wrong) {
    if (++counts[is_wrong ? 1 : 0] > (is_wrong ? most_wrong : most_right)) continue;
    chosen.push_back({row / e.queries / e.heads, row / e.queries % e.heads, row % e.queries, is_wrong});
  }
  return chosen;
}

Tensor row_of(const Tensor& out, const ExaminedRow& row) {
  const Shape shape = out.shape();
  Tensor one(out.dtype(), {1, 1, 1, shape[3]});
  for (std::int64_t column = 0; column < shape[3]; ++column)
    one.set(column, out.at(row.batch, row.head, row.query, column));
  return one;
}

}  // namespace attest
