// Error statistics: how large the errors of judged elements are, by class of case, for the tolerance table.
//
// Every figure is a count, a maximum of whole numbers, or a sum of whole numbers, so that merging is associative and
// commutative to the byte, in any order of batches, jobs and shards. Sizes are kept as log codes and sums as fixed
// point; both are defined here once.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/support/words.h"

namespace attest {

class JsonWriter;

/// A number >= 0 rounded up to 7 significant bits (by less than 1 part in 64), as a whole number of the same order: the
/// upper bits of its binary64 pattern. 0 is 0; infinity and NaN are infinite_code.
using LogCode = std::uint32_t;
inline constexpr LogCode infinite_code = 0x7ffU << 6U;
[[nodiscard]] inline LogCode code_of(double size) {
  // A carry out of the fraction goes into the exponent, which is what rounding up must do.
  if (!(size <= 0x1.fffffffffffffp1023)) return infinite_code;
  return static_cast<LogCode>((std::bit_cast<std::uint64_t>(std::abs(size)) + ((std::uint64_t{1} << 46U) - 1)) >> 46U);
}
/// The number that the code stands for: the largest with that code.
[[nodiscard]] inline double size_of_code(LogCode code) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(code) << 46U);
}

/// A sum in units of 2^-40: whole + fraction * 2^-40, 0 <= fraction < 2^40. Each term is rounded once; adding sums is
/// exact.
struct FixedSum {
  std::int64_t whole = 0, fraction = 0;

  void add(double term);
  void merge(const FixedSum& other);
  [[nodiscard]] double value() const { return static_cast<double>(whole) + std::ldexp(fraction, -40); }
  [[nodiscard]] bool operator==(const FixedSum&) const = default;
};

/// Bins of utilisation (error over allowed): four per octave at 2^e times 1, 1.25, 1.5 and 1.75, from 2^-14 to 2^2. Bin
/// i holds what is above utilisation_edge(i - 1) and at most utilisation_edge(i); the first one holds 0 too, the last
/// one all that is larger.
inline constexpr std::size_t utilisation_bins = 65;
[[nodiscard]] std::size_t utilisation_bin(double utilisation);
[[nodiscard]] double utilisation_edge(std::size_t bin);

/// Relative tolerances of which the least absolute tolerance is kept, in units of the unit roundoff of the output.
inline constexpr std::array<double, 6> relative_steps{0, 2, 8, 32, 128, 512};

/// What a mask does in a case, causal forms included.
enum class MaskEffect : std::uint8_t { none, bias, hidden, both };
template <>
struct Words<MaskEffect> {
  static constexpr std::array<std::string_view, 4> names{"none", "bias", "hidden", "bias and hidden"};
};

/// Classes of numbers of keys.
inline constexpr std::size_t key_classes = 4;
/// 0: at most one key; 1: 2 to 16; 2: 17 to 64; 3: more.
[[nodiscard]] std::size_t key_class(std::int64_t keys);
/// "1 key", "2..16 keys", "17..64 keys", "more than 64 keys".
[[nodiscard]] std::string_view key_class_name(std::size_t which);

/// Where a bound comes from: its terms (error-bounds.md 1.1), as what they are about.
enum class Stage : std::uint8_t {
  scores,        ///< q.k, scale, mask: what not knowing the scores moves the answer by
  exponentials,  ///< forming the exponent, exp, and what merges by log-sum-exp do to it
  weights,       ///< rounding of the weights to their format
  sums,          ///< the sum of the weights and that of weights times values, rescaling and merging included
  output,        ///< normalisation and the rounding of the output
  underflow      ///< of exp, of the weights and of the sums
};
inline constexpr std::size_t stage_count = 6;
template <>
struct Words<Stage> {
  static constexpr std::array<std::string_view, 6> names{"scores", "exp", "weights", "sums", "output", "underflow"};
};
/// Shares of a bound by Stage, per mille: they add up to 1000, or are all 0 where nothing is known.
using Budget = std::array<std::uint16_t, stage_count>;
/// The shares of parts >= 0, rounded so that they add up: the largest remainders up, the first of equals. All 0 where
/// all parts are, or one is not finite.
[[nodiscard]] Budget budget_of(const std::array<double, stage_count>& parts);

/// Octaves of the range of a row's scores, largest less least visible one: [2^e, 2^(e+1)), smaller and larger ones in
/// the first and the last.
inline constexpr int first_range = -8, last_range = 24;
[[nodiscard]] int range_octave(double range);

/// Inputs such as most test-suites have: normal, equal or repeated keys, scores of a size about 1, values that are
/// normal, ones or one-hot, gradients by the output of a size about 1, scale 1/sqrt(dk), no huge finite mask, no
/// element set apart. By the generators' words; captured cases have none.
[[nodiscard]] bool is_ordinary(std::string_view kinds);

/// The errors of the judged elements of one case in its output format; elements of out, not lse.
struct ErrorSample {
  std::int64_t keys = 0;
  MaskEffect mask = MaskEffect::none;
  std::int64_t elements = 0;
  double worst_error = 0;        ///< largest |found - exact|, an upper end; inf for NaN or Inf found
  double worst_ulp = 0;          ///< the same in units of the last place of the exact value in the output format
  double worst_utilisation = 0;  ///< largest error / allowed
  /// The same of two kinds of elements. Subnormal are held ones below the least normal number of the output's format
  /// of which half of what is allowed, or more, is half a unit of the subnormals: whatever kernel computes them, its
  /// rounding takes all of that. Normal are all others.
  double worst_normal = 0, worst_subnormal = 0;
  /// At the element of the worst utilisation: sum of weight times |v|, over |exact|; at least 1, inf where exact is 0.
  double condition = 1;
  /// There too: error and allowed over u times the sum of weight times |v|, u the unit roundoff of the output. 0: no
  /// such sum.
  double scaled_error = 0, scaled_allowed = 0;
  Budget budget{};         ///< of what is allowed there
  double score_range = 0;  ///< of the row there: its largest visible score less its least one
  /// Sums of (found - exact) / allowed, cut at +-4, and of its square; finite answers only.
  double bias = 0, squares = 0;
  /// For each of relative_steps the least atol with error <= atol + rtol |exact| for every element within its bound.
  std::array<double, relative_steps.size()> atol{};
  /// Elements by the bin of their utilisation: too large ones first, then too small ones. No error is in bin 0 of the
  /// first.
  std::array<std::array<std::uint32_t, utilisation_bins>, 2> histogram{};
};

/// Merged samples of one class.
struct ErrorCell {
  std::int64_t cases = 0, elements = 0;
  LogCode worst_error = 0, worst_ulp = 0, worst_utilisation = 0;
  std::int64_t worst_k = -1;  ///< the smallest k that attains worst_utilisation; -1: no case
  std::int64_t error_k = -1;  ///< the smallest k that attains worst_error; -1: no case, or a journal of before
  /// The larger is worst_utilisation. A journal of before does not tell them apart: then all of it is the first.
  LogCode worst_normal = 0, worst_subnormal = 0;
  LogCode condition = 0;     ///< of that case
  Budget budget{};           ///< of that case
  LogCode worst_scaled = 0;  ///< largest scaled_error
  FixedSum bias, squares;
  std::array<LogCode, relative_steps.size()> atol{};
  std::array<std::int64_t, utilisation_bins> histogram{};

  void add(std::int64_t k, const ErrorSample& sample);
  void merge(const ErrorCell& other);
  /// An upper bound of that quantile of the elements' utilisation. 0 without elements.
  [[nodiscard]] double quantile(double fraction) const;
  /// Mean of (found - exact) / allowed, and the root of the mean square.
  [[nodiscard]] double mean() const;
  [[nodiscard]] double root_mean_square() const;
  [[nodiscard]] bool operator==(const ErrorCell&) const = default;
};

/// Number of keys (key_class), effect of the mask, and the generator's word for the values; empty for captured cases.
struct ErrorClass {
  std::size_t keys = 0;
  MaskEffect mask = MaskEffect::none;
  std::string values{};
  [[nodiscard]] auto operator<=>(const ErrorClass&) const = default;
};

/// The worst of a class of scores: how many cases, and their worst utilisation.
struct WorstOf {
  std::int64_t cases = 0;
  LogCode worst = 0;
  [[nodiscard]] bool operator==(const WorstOf&) const = default;
};

/// The largest scaled error of an octave of keys, and what was allowed there, scaled likewise.
struct ScaledError {
  LogCode error = 0, allowed = 0;
  [[nodiscard]] auto operator<=>(const ScaledError&) const = default;
};

/// Samples by class, over a range of k.
struct ErrorTable {
  std::map<ErrorClass, ErrorCell> cells;
  /// By key_class and the generator's word for the scores.
  std::map<std::pair<std::size_t, std::string>, WorstOf> scores;
  /// By the exponent of the number of keys: [2^e, 2^(e+1)).
  std::map<int, ScaledError> octaves;
  /// By range_octave of the row.
  std::map<int, ScaledError> ranges;
  /// Of ordinary cases (is_ordinary), by key_class. They are among `cells` too.
  std::map<std::size_t, ErrorCell> ordinary;
  /// Elements by signed utilisation, as ErrorSample::histogram.
  std::array<std::array<std::int64_t, utilisation_bins>, 2> signs{};

  /// `kinds`: the generator's words for the case.
  void add(std::int64_t k, const ErrorSample& sample, std::string_view kinds);
  void merge(const ErrorTable& other);
  [[nodiscard]] bool empty() const { return cells.empty(); }
  [[nodiscard]] bool operator==(const ErrorTable&) const = default;
};

/// Writes the table as a JSON object of arrays, in the order of the fields above.
void write_errors(JsonWriter& json, const ErrorTable& table);

}  // namespace attest
