// Writes rows of problems, what was allowed of one element of each, what the kernel claims, and which check is to judge
// them, as Coq reads them (rounding/checked; checked_split.v where parts are merged):
// write_rows KERNEL DTYPE ROWS SEED [SHARE], of what was allowed the share, or all. A kernel may declare more than it
// does: flash+base2, say, is one that claims what flash does, in exponents of base 2. The claims are written from what
// the manifest declares, not from what core/bound makes of it: whether that is right is what the rows are for.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/bound/machine_checked.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "core/support/errors.h"
#include "core/support/words.h"
#include "properties/generators/draw.h"

namespace attest {
namespace {

/// A double as Coq reads it: exactly.
std::string number(double value) {
  return value < 0 ? fmt::format("(-{:a})", -value) : fmt::format("{:a}", value);
}

/// What checked_rows.v, checked_divided.v and checked_split.v have no words for.
std::optional<std::string> missing(const Arithmetic& a) {
  const Format &score = format_of(a.score_sums), &sums = format_of(a.accumulate);
  // What checked_rows.v alone has words for.
  if (a.normalise_first || a.split_merge) {
    const std::string kind = a.split_merge ? "parts that are merged" : "weights that are divided first";
    if (a.base2 || a.folded_exp2) return kind + " in exponents to base 2";
    if (a.summation_depth || a.blocked_sums) return kind + " in sums of a declared depth";
  }
  if (a.normalise_first && a.split_merge) return "weights that are divided first in parts that are merged";
  if (a.normalise_first && a.block > 0) return "weights that are divided first beside rescalings";
  if (a.normalise_first && (a.division_roundings < 1 || a.division_roundings > 3)) return "such a division";
  if (a.normalise_first && !division_is_unseen(a)) return "weights that are divided first in such a format";
  if (a.stored_raw || a.stored_scaled || a.stored_biased || a.prescaled_q || a.mask_format || a.bias_in_sum)
    return "scores made otherwise";
  if (a.flushes_subnormals || a.flushes_inputs) return "subnormal numbers read as 0";
  if (a.rounding != Rounding::nearest) return "truncation";
  if (a.max != MaxPolicy::running && a.max != MaxPolicy::lazy) return "no maximum";
  if (a.exp_ulp <= 0) return "an exponential of unknown error";
  if (sums.unit > score.unit || sums.min_subnormal > score.min_subnormal) return "sums in a narrower format";
  return std::nullopt;
}

/// What rounding a subnormal number may lose, so many times over: half the smallest one, which of f64 no double is.
std::string lost(const Format& format, int doubled = 0) {
  return fmt::format("0x1p{:+}", format.min_exponent - format.precision + doubled);
}

/// What an exponential of so many ulps may lose below the normal numbers: no double is half of f64's smallest one.
double least_numbers(double ulps, const Format& format) {
  return (format.min_subnormal * 0.5 > 0 ? ulps : std::ceil(ulps)) * format.min_subnormal;
}

/// A relative error of two roundings in a row, or a little more.
double joined(double a, double b) {
  return a == 0 ? b : std::nextafter(a + b + a * b, INFINITY);
}

/// How many additions a term of a sum over so many keys passes at the most, where that is declared.
std::string additions(const Arithmetic& a, std::int64_t keys) {
  std::optional<std::int64_t> most = a.summation_depth;
  if (a.blocked_sums) {
    const std::int64_t blocks = (keys + a.blocked_sums->block - 1) / a.blocked_sums->block;
    std::int64_t merges = blocks;
    if (a.blocked_sums->pairwise)
      for (merges = 0; (std::int64_t{1} << merges) < blocks;) ++merges;
    most = a.blocked_sums->depth + merges;
  }
  return most ? fmt::format("(Some {}%nat)", *most) : "None";
}

/// The record of claims, of a problem of so many keys, with that scale, with a bias or without, with products that are
/// exact or not, and once they are scaled.
std::string claims(const Arithmetic& a, std::int64_t keys, double scale, bool bias, bool exact, bool exact_scaled) {
  const Format &score = format_of(a.score_sums), &sums = format_of(a.accumulate);
  const Format &weights = format_of(a.weights), &out = format_of(a.output);
  const double u = score.unit;
  int exponent = 0;
  const bool power_of_two = std::frexp(scale, &exponent) == 0.5;
  const bool narrow = weights.unit > u || weights.min_subnormal > score.min_subnormal;
  const bool rounds_out = out.unit > sums.unit || out.min_subnormal > sums.min_subnormal;
  const std::int64_t rescalings = a.block > 0 ? (keys + a.block - 1) / a.block : 0;
  // Base 2: log2(e) goes into the scale, into the bias by itself, and into exponents, of which each product rounds.
  const bool exact_scale = power_of_two && !a.base2;
  const double added = bias ? u : 0;
  return fmt::format(
      "(Arithmetic {} {} {}%nat {} {} {} {} {} {}%nat {} {} {} {} {} {} {} {} {} {}%nat {}%nat {} {}\n  {} {} {}%nat "
      "{} {} {} {})",
      number(u), lost(score),
      exact_scale ? 0
      : a.base2   ? 4
                  : 2,
      number(exact_scale ? 0 : 0x1p-52),
      number(a.base2        ? joined(u, u)
             : exact_scaled ? 0
                            : u),
      lost(score, 1), number(a.base2 ? joined(added, u) : added), a.base2 ? lost(score) : number(0), a.base2 ? 3 : 1,
      lost(score, a.base2 ? 1 : 0), number(a.max == MaxPolicy::lazy ? a.lazy_nats : 0), number(2 * a.exp_ulp * u),
      number(least_numbers(std::max(0.5, a.exp_ulp), score)), number(weights.unit > u ? weights.unit : 0),
      narrow ? lost(weights) : number(0), a.weights_in_denominator && narrow ? "true" : "false", number(sums.unit),
      lost(sums), rescalings, a.division_roundings, number(out.unit > sums.unit ? out.unit : 0),
      rounds_out ? lost(out) : number(0), number(a.base2 && bias ? u : 0), a.base2 && bias ? lost(score) : number(0),
      a.base2 ? 2 : 0, number(a.folded_exp2 ? u : 0), a.folded_exp2 ? lost(score) : number(0), additions(a, keys),
      exact ? "true" : "false");
}

/// The same of a kernel that may merge parts through their log-sum-exps: with what their logarithm errs by, of which no
/// manifest says anything; it is within 4 units, or as good as the exponential.
std::string split_claims(const Arithmetic& a, const std::string& of_parts) {
  const double log = std::max(4.0, 2 * a.exp_ulp) * format_of(a.score_sums).unit;
  return fmt::format("(Split {} {})", of_parts, number(log));
}

/// The place of the lowest bit of a number that is not 0.
int lowest_bit(double value) {
  int exponent = 0;
  const auto bits = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
  return exponent - 53 + std::countr_zero(bits);
}

/// One row of a case and one column of its output.
struct Place {
  std::int64_t batch, head, row, column;
};

/// Is a score exact whatever its sum rounds: its product with the scale, and that with the bias?
bool exact_score(DType format, double t, double b, double s) {
  const auto held = [&](double x) { return round_to(format, x) == x; };
  return held(t) && held(b) && held(s) && s - t == b && s - b == t;
}

/// Nothing where the row sees no key.
std::optional<std::string> row_text(const Case& c, const Place& at, const Arithmetic& arithmetic, double allowed) {
  const std::int64_t dk = c.q().shape()[3], keys = keys_of(c), kv = kv_head_of(c, at.head);
  std::vector<double> q;
  q.reserve(static_cast<std::size_t>(dk));
  for (std::int64_t i = 0; i < dk; ++i) q.push_back(c.q().at(at.batch, at.head, at.row, i));
  std::string listed;
  double most = -INFINITY, most_size = 0;
  std::vector<double> t, s, b, sizes;
  int bit = 1 << 20, q_bit = 1 << 20;
  bool biased = false;
  for (const double x : q)
    if (x != 0) q_bit = std::min(q_bit, lowest_bit(x));
  for (std::int64_t j = 0; j < keys; ++j) {
    if (hidden(c, at.batch, at.head, at.row, j)) continue;
    double dot = 0, size = 0;
    std::string key;
    for (std::int64_t i = 0; i < dk; ++i) {
      const double x = c.k().at(at.batch, kv, j, i);
      if (x != 0) bit = std::min(bit, lowest_bit(x));
      dot += q[static_cast<std::size_t>(i)] * x;
      size += std::fabs(q[static_cast<std::size_t>(i)] * x);
      key += (i > 0 ? ";" : "") + number(x);
    }
    const double bias = bias_of(c, at.batch, at.head, at.row, j);
    biased = biased || bias != 0;
    t.push_back(c.scale * dot), s.push_back(c.scale * dot + bias), b.push_back(bias);
    sizes.push_back(size);
    most = std::max(most, s.back()), most_size = std::max(most_size, size);
    listed += fmt::format("{}([{}],{},{})", listed.empty() ? "" : ";\n   ", key, number(bias),
                          number(c.v().at(at.batch, kv, j, at.column)));
  }
  if (t.empty()) return std::nullopt;
  // A folded reference may be so far from the rounded one that weights of a block of such keys alone are no numbers.
  constexpr double most_of_reference = 100;
  const bool folded_far = std::ranges::any_of(
      s, [&](double score) { return std::fabs(score) * format_of(arithmetic.score_sums).unit > most_of_reference; });
  if (arithmetic.folded_exp2 && folded_far) return std::nullopt;
  // Multiples of one power of two, of which no sum has more digits than the format, are added up exactly.
  const Format& score = format_of(arithmetic.score_sums);
  int scale_exponent = 0;
  const bool power_of_two = std::frexp(c.scale, &scale_exponent) == 0.5;
  const int least = score.min_exponent - score.precision + 1, last = std::min(bit + q_bit, 1000);
  const bool exact = most_size == 0 || (last >= least && most_size <= std::ldexp(1.0, score.precision + last));
  const bool scaled_exactly = most_size == 0 || (power_of_two && last + scale_exponent - 1 >= least);
  std::string exact_scores;
  for (std::size_t j = 0; j < t.size(); ++j) {
    const bool held = exact && !arithmetic.base2 && (scaled_exactly || sizes[j] == 0) &&
                      exact_score(arithmetic.score_sums, t[j], b[j], s[j]);
    exact_scores += fmt::format("{}{}", j > 0 ? ";" : "", held);
  }
  double total = 0, mean = 0, mean_score = 0;
  for (const double one : s) total += std::exp(one - most);
  // Shares of the weights: sums of scores near the largest double are none.
  for (std::size_t j = 0; j < t.size(); ++j) {
    const double weight = std::exp(s[j] - most) / total;
    mean += weight * t[j], mean_score += weight * s[j];
  }
  std::string of_q;
  for (const double x : q) of_q += (of_q.empty() ? "" : ";") + number(x);
  std::string claimed = claims(arithmetic, keys, c.scale, biased, exact, exact && scaled_exactly);
  if (arithmetic.split_merge) claimed = split_claims(arithmetic, claimed);
  return fmt::format("(fun p => {} p {}\n  (Row {} [{}]\n  [{}]\n  {} {} {} [{}]))",
                     arithmetic.normalise_first ? "check_divided" : "check", claimed, number(c.scale), of_q, listed,
                     number(allowed), number(mean), number(mean_score), exact_scores);
}

/// Is there an argument that checked_rows.v has no words for?
bool has_variant(const Case& c) {
  return c.softcap != 0 || c.dropout_p != 0 || c[Slot::sink].present() || c[Slot::keep].present() ||
         c[Slot::alibi_slopes].present() || c[Slot::q_descale].present() || c[Slot::k_descale].present() ||
         c[Slot::v_descale].present() || (c.mask().present() && c.mask_convention == MaskConvention::pre_scale) ||
         (c.mask().present() && c.mask().dtype() == DType::f64 && c.dtype() != DType::f64);
}

/// What a built-in kernel declares, and after each plus what it declares instead.
std::optional<Arithmetic> declared(const std::string& name, DType dtype) {
  std::optional<Arithmetic> out;
  const std::string kernel = name.substr(0, name.find('+'));
  for (const KernelEntry& entry : builtin_kernels())
    if (entry.id == "builtin:" + kernel) out = entry.make()->manifest().arithmetic.usual_for(dtype);
  if (!out) return out;
  for (std::size_t at = name.find('+'); at != std::string::npos;) {
    const std::size_t next = name.find('+', at + 1);
    const std::string word = name.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    if (word == "base2")
      out->base2 = true;
    else if (word == "folded")
      out->base2 = out->folded_exp2 = true;
    else if (word == "depth")
      out->summation_depth = 8;
    else if (word == "blocks")
      out->blocked_sums = BlockedSums{.block = 4, .depth = 3};
    else
      return std::nullopt;
    at = next;
  }
  return out;
}

int write(const std::string& kernel, DType dtype, std::int64_t rows, std::uint64_t seed, double share) {
  constexpr std::int64_t most_numbers = 4096;
  constexpr double most_exponent_error = 1000;
  const std::optional<Arithmetic> arithmetic = declared(kernel, dtype);
  if (!arithmetic) throw UsageError("no built-in kernel " + kernel);
  if (const auto what = missing(*arithmetic)) throw UsageError(kernel + ": " + *what + " is not in checked_rows.v");
  std::cout << "Definition rows := [";
  std::int64_t written = 0;
  for (std::uint64_t k = 0; written < rows; ++k) {
    Draw draw(dtype, seed * 1'000'003 + k);
    const Case c = draw.attention().sometimes_of_model_size();
    if (has_variant(c) || c.k().shape()[3] * keys_of(c) > most_numbers) continue;
    const AttentionBounds bounds = attention_bounds(c, *arithmetic);
    const Shape shape = c.out_shape();
    if (shape.elements() == 0) continue;
    const std::int64_t picked =
        static_cast<std::int64_t>((k * 2'654'435'761U) % static_cast<std::uint64_t>(shape.elements()));
    const ElementBound& element = bounds.elements[static_cast<std::size_t>(picked)];
    if (element.excuse != Excuse::none || !std::isfinite(element.allowed)) continue;
    // Beyond that nothing is known of the weights, and the evaluator has no logarithms to say which of them vanish.
    if (bounds.rows[static_cast<std::size_t>(picked / shape[3])].most_E > most_exponent_error) continue;
    const auto at = shape.index_of(picked);
    const auto text = row_text(c, {at[0], at[1], at[2], at[3]}, *arithmetic, share * element.allowed);
    if (!text) continue;
    std::cout << (written > 0 ? ";\n " : "\n ") << *text;
    ++written;
  }
  std::cout << "].\n";
  return 0;
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) try {
  if (argc != 5 && argc != 6) throw attest::UsageError("usage: write_rows KERNEL DTYPE ROWS SEED [SHARE]");
  const auto dtype = attest::named<attest::DType>(argv[2]);
  if (!dtype) throw attest::UsageError(std::string("no dtype ") + argv[2]);
  return attest::write(argv[1], *dtype, std::atoll(argv[3]), static_cast<std::uint64_t>(std::atoll(argv[4])),
                       argc == 6 ? std::atof(argv[5]) : 1);
} catch (const attest::UsageError& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
