#include "properties/diagnosis/arithmetic/probe_denominator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/case.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

struct Interval {
  double lower = INFINITY, upper = -INFINITY;
  void take(double x) { lower = std::min(lower, x), upper = std::max(upper, x); }
  /// False for NaN.
  [[nodiscard]] bool holds(double x) const { return lower <= x && x <= upper; }
};

/// What may be made of the weights.
enum Reading : std::size_t {
  summed,      ///< rounded, and summed so
  apart,       ///< rounded for V alone
  normalised,  ///< divided by their sum, then rounded
  kept,        ///< not rounded
  reading_count
};

/// Keys of score 0, whose weight is 1, alternate with keys of one lower score: every block of keys has the maximum.
struct Alternating {
  Case value;
  std::int64_t lower;             ///< keys of the lower score; one less than the others
  std::vector<double> distances;  ///< by row: by how much that score is lower
};

/// Sums over the keys that V is 0 and 1 on, by column modulo 3: all, the lower ones, the others.
struct Column {
  double others, lower;
};

class Asked {
 public:
  Asked(Kernel& kernel, DType dtype)
      : manifest_(kernel.manifest()), arithmetic_(manifest_.arithmetic.usual_for(dtype)), dtype_(dtype) {}

  /// The most lower keys that there may be; 0: too few keys are taken.
  [[nodiscard]] std::int64_t most_lower() const {
    // Odd numbers of keys from 3 on, and rows as they come.
    if (!allowed_keys(manifest_).has(3) || manifest_.keys_multiple > 1 || manifest_.same_lengths) return 0;
    return std::min<std::int64_t>(12, (manifest_.max_keys.value_or(64) - 1) / 2);
  }

  [[nodiscard]] Alternating problem(std::int64_t lower) const {
    const std::int64_t rows = allowed_queries(manifest_).nearest(48), keys = 2 * lower + 1;
    const std::int64_t heads = manifest_.heads_multiple, dk = head_dim();
    Alternating one{.value = {}, .lower = lower, .distances = {}};
    Case& c = one.value;
    c.scale = manifest_.any_scale ? 1.0 : inverse_root(dk);
    c[Slot::q] = Tensor(dtype_, {1, heads, rows, dk});
    const KvDtypes formats = manifest_.kv_dtypes_for(dtype_).front();
    c[Slot::k] = Tensor(formats.k, {1, heads, keys, dk});
    c[Slot::v] = Tensor(formats.v, {1, heads, keys, dk});
    for (std::int64_t i = 0; i < rows; ++i) {
      // From 1/16 to about 2, each with other last bits.
      const double wanted = (0.0625 + 0.04 * static_cast<double>(i)) / c.scale;
      const double x = round_to(dtype_, wanted);
      one.distances.push_back(x * c.scale);
      for (std::int64_t h = 0; h < heads; ++h) c[Slot::q].set((h * rows + i) * dk, x);
    }
    for (std::int64_t e = 0; e < heads * keys * dk; ++e) {
      const std::int64_t j = e / dk % keys, column = e % dk;
      const bool is_lower = j % 2 == 1;
      if (column == 0 && is_lower) c[Slot::k].set(e, -1);
      c[Slot::v].set(e, column % 3 == 0 || (column % 3 == 1) == is_lower ? 1 : 0);
    }
    return one;
  }

  /// The finest output that the kernel offers: it shows most.
  [[nodiscard]] DType output() const {
    DType finest = dtype_;
    const auto further = manifest_.out_dtypes.find(dtype_);
    if (further == manifest_.out_dtypes.end()) return finest;
    for (const DType one : further->second)
      if (format_of(one).unit < format_of(finest).unit) finest = one;
    return finest;
  }

  /// What an element may be under each reading; empty where a score is rounded on the way, so that the weight is not
  /// known well enough.
  [[nodiscard]] std::optional<std::array<Interval, reading_count>> allowed(const Alternating& problem, double distance,
                                                                           std::int64_t column) const {
    if (!is_exact(distance, problem.value.scale)) return std::nullopt;
    const double u = format_of(arithmetic_.score_sums).unit;
    // exp, and a score that scale, base 2 and the maximum round a few times.
    const double exp_error = 2 * std::max(arithmetic_.exp_ulp, 2.0) * u + 8 * (distance + 1) * u;
    const double keys = 2.0 * static_cast<double>(problem.lower) + 1;
    const double room = (2 * keys + 16) * 2 * format_of(arithmetic_.accumulate).unit + exp_error;
    const double lower = static_cast<double>(problem.lower), others = lower + 1, weight = std::exp(-distance);
    const Column of = column % 3 == 0 ? Column{others, lower} : column % 3 == 1 ? Column{0, lower} : Column{others, 0};
    std::array<Interval, reading_count> all;
    for (const double w : {weight * (1 - exp_error), weight * (1 + exp_error)}) {
      const double sum = others + lower * w;
      all[kept].take((of.others + of.lower * w) / sum);
      for (const double nearly : {1 - room, 1 + room})
        all[normalised].take(of.others * narrow(nearly / sum) + of.lower * narrow(nearly * w / sum));
      for (const double p : {narrow(weight * (1 - exp_error)), narrow(weight * (1 + exp_error))}) {
        all[apart].take((of.others + of.lower * p) / sum);
        all[summed].take((of.others + of.lower * p) / (others + lower * p));
      }
    }
    for (Interval& one : all)
      one = {round_to(output(), one.lower * (1 - room)), round_to(output(), one.upper * (1 + room))};
    return all;
  }

 private:
  [[nodiscard]] double narrow(double weight) const { return round_to(arithmetic_.weights, weight); }

  [[nodiscard]] std::int64_t head_dim() const {
    // Powers of 4 first, of which 1/sqrt(dk) rounds nothing.
    for (const std::int64_t dk : {16, 64, 4, 256, 1})
      if (allowed_head_dims(manifest_).has(dk)) return dk;
    return allowed_head_dims(manifest_).nearest(1);
  }

  /// Whether every format that the score passes holds it.
  [[nodiscard]] bool is_exact(double distance, double scale) const {
    const auto holds = [](const std::optional<DType>& format, double number) {
      return !format || round_to(*format, number) == number;
    };
    return holds(arithmetic_.stored_raw, distance / scale) && holds(arithmetic_.stored_scaled, distance) &&
           holds(arithmetic_.stored_biased, distance) && holds(arithmetic_.prescaled_q, distance);
  }

  const Manifest& manifest_;
  const Arithmetic& arithmetic_;
  DType dtype_;
};

Denominator unknown(std::string why) {
  return {.words = "cannot tell: " + std::move(why)};
}

}  // namespace

Denominator denominator_of(Kernel& kernel, DType dtype) {
  const Arithmetic& arithmetic = kernel.manifest().arithmetic.usual_for(dtype);
  if (!kernel.manifest().attention) return unknown("the attention entry alone is asked");
  if (!(format_of(arithmetic.weights).unit > format_of(arithmetic.score_sums).unit))
    return unknown(fmt::format("weights in {} are not rounded", name_of(arithmetic.weights)));
  const Asked asked(kernel, dtype);
  if (asked.most_lower() < 1) return unknown("it takes fewer than three keys");
  std::array<bool, reading_count> fits;
  fits.fill(true);
  // Not of three keys where more are taken: in parts of one key each there is nothing to round.
  for (const std::int64_t lower : {asked.most_lower(), (asked.most_lower() + 1) / 2}) {
    const Alternating problem = asked.problem(lower);
    const Reply reply =
        kernel.run(problem.value, asked.output(), asks_lse(kernel.manifest(), problem.value, /*wanted=*/false));
    if (reply.status != CallStatus::ok) return unknown(ending_text(reply.status, reply.message));
    const std::int64_t width = problem.value.v().shape()[3];
    for (std::size_t row = 0; row < problem.distances.size(); ++row) {
      for (std::int64_t column = 0; column < std::min<std::int64_t>(width, 3); ++column) {
        const auto allowed = asked.allowed(problem, problem.distances[row], column);
        if (!allowed) continue;
        const double found = reply.out[static_cast<std::int64_t>(row) * width + column];
        for (std::size_t reading = 0; reading < reading_count; ++reading)
          fits[reading] = fits[reading] && (*allowed)[reading].holds(found);
      }
    }
  }
  const bool without = fits[apart] || fits[normalised];
  Denominator answer{.may_be_rounded = fits[summed], .words = {}};
  if (fits[summed] && !without && !fits[kept]) {
    answer.sums = Denominator::Sums::rounded;
    answer.words = "yes";
  } else if (!fits[summed] && without && !fits[kept]) {
    answer.sums = Denominator::Sums::unrounded;
    answer.words = "no";
  } else if (fits[kept] && !without && !fits[summed]) {
    answer.words = fmt::format("cannot tell: the weights are not rounded to {}", name_of(arithmetic.weights));
  } else {
    answer.words = fits[summed] || without || fits[kept] ? "cannot tell: its errors hide it"
                                                         : "cannot tell: an answer that fits no reading";
  }
  return answer;
}

}  // namespace attest
