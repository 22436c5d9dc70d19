// Writes rows of problems, what was allowed of one element of each, what the kernel claims, and which check is to judge
// them, as Coq reads them (rounding/checked_rows.v, checked_divided.v, or checked_split.v where parts are merged):
// write_rows KERNEL DTYPE ROWS SEED [SHARE], of what was allowed the share, or all. The claims are written from what
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
  if (a.base2 || a.folded_exp2) return "exponents to base 2";
  if (a.normalise_first && a.split_merge) return "weights that are divided first in parts that are merged";
  if (a.normalise_first && a.block > 0) return "weights that are divided first beside rescalings";
  if (a.normalise_first && (a.division_roundings < 1 || a.division_roundings > 3)) return "such a division";
  if (a.normalise_first && !division_is_unseen(a)) return "weights that are divided first in such a format";
  if (a.stored_raw || a.stored_scaled || a.stored_biased || a.prescaled_q || a.mask_format || a.bias_in_sum)
    return "scores made otherwise";
  if (a.summation_depth || a.blocked_sums) return "a declared depth of sums";
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

/// The record of claims, of a problem of so many keys, with that scale, with a bias or without.
std::string claims(const Arithmetic& a, std::int64_t keys, double scale, bool bias) {
  const Format &score = format_of(a.score_sums), &sums = format_of(a.accumulate);
  const Format &weights = format_of(a.weights), &out = format_of(a.output);
  const double u = score.unit;
  int exponent = 0;
  const bool power_of_two = std::frexp(scale, &exponent) == 0.5;
  const bool narrow = weights.unit > u || weights.min_subnormal > score.min_subnormal;
  const bool rounds_out = out.unit > sums.unit || out.min_subnormal > sums.min_subnormal;
  const std::int64_t rescalings = a.block > 0 ? (keys + a.block - 1) / a.block : 0;
  return fmt::format(
      "(Arithmetic {} {} {}%nat {} {} {} {} {} 1%nat {} {} {} {} {} {} {} {} {} {}%nat {}%nat {} {})", number(u),
      lost(score), power_of_two ? 0 : 2, number(power_of_two ? 0 : 0x1p-52), number(u), lost(score, 1),
      number(bias ? u : 0), number(0), lost(score), number(a.max == MaxPolicy::lazy ? a.lazy_nats : 0),
      number(2 * a.exp_ulp * u), number(std::max(0.5, a.exp_ulp) * score.min_subnormal),
      number(weights.unit > u ? weights.unit : 0), narrow ? lost(weights) : number(0),
      a.weights_in_denominator && narrow ? "true" : "false", number(sums.unit), lost(sums), rescalings,
      a.division_roundings, number(out.unit > sums.unit ? out.unit : 0), rounds_out ? lost(out) : number(0));
}

/// The same of a kernel that may merge parts through their log-sum-exps: with what their logarithm errs by, of which no
/// manifest says anything; it is within 4 units, or as good as the exponential.
std::string split_claims(const Arithmetic& a, std::int64_t keys, double scale, bool bias) {
  const double log = std::max(4.0, 2 * a.exp_ulp) * format_of(a.score_sums).unit;
  return fmt::format("(Split {} {})", claims(a, keys, scale, bias), number(log));
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

/// Nothing where the row sees no key, or is one of those whose products are exact in any order, of which more is
/// claimed than checked_rows.v says.
std::optional<std::string> row_text(const Case& c, const Place& at, const Arithmetic& arithmetic, double allowed) {
  const std::int64_t dk = c.q().shape()[3], keys = keys_of(c), kv = kv_head_of(c, at.head);
  std::vector<double> q;
  q.reserve(static_cast<std::size_t>(dk));
  for (std::int64_t i = 0; i < dk; ++i) q.push_back(c.q().at(at.batch, at.head, at.row, i));
  std::string listed;
  double most = -INFINITY, most_size = 0;
  std::vector<double> t, s;
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
    t.push_back(c.scale * dot), s.push_back(c.scale * dot + bias);
    most = std::max(most, s.back()), most_size = std::max(most_size, size);
    listed += fmt::format("{}([{}],{},{})", listed.empty() ? "" : ";\n   ", key, number(bias),
                          number(c.v().at(at.batch, kv, j, at.column)));
  }
  if (t.empty() || most_size == 0) return std::nullopt;
  if (most_size <= std::ldexp(1.0, format_of(arithmetic.score_sums).precision + std::min(bit + q_bit, 1000)))
    return std::nullopt;
  double total = 0, mean = 0;
  for (std::size_t j = 0; j < t.size(); ++j) {
    const double weight = std::exp(s[j] - most);
    total += weight, mean += weight * t[j];
  }
  std::string of_q;
  for (const double x : q) of_q += (of_q.empty() ? "" : ";") + number(x);
  const auto& claimed = arithmetic.split_merge ? split_claims : claims;
  return fmt::format("(fun p => {} p {}\n  (Row {} [{}]\n  [{}]\n  {} {}))",
                     arithmetic.normalise_first ? "check_divided" : "check", claimed(arithmetic, keys, c.scale, biased),
                     number(c.scale), of_q, listed, number(allowed), number(mean / total));
}

/// Is there an argument that checked_rows.v has no words for?
bool has_variant(const Case& c) {
  return c.softcap != 0 || c.dropout_p != 0 || c[Slot::sink].present() || c[Slot::keep].present() ||
         c[Slot::alibi_slopes].present() || c[Slot::q_descale].present() || c[Slot::k_descale].present() ||
         c[Slot::v_descale].present() || (c.mask().present() && c.mask_convention == MaskConvention::pre_scale) ||
         (c.mask().present() && c.mask().dtype() == DType::f64 && c.dtype() != DType::f64);
}

int write(const std::string& kernel, DType dtype, std::int64_t rows, std::uint64_t seed, double share) {
  constexpr std::int64_t most_numbers = 4096;
  constexpr double most_exponent_error = 1000;
  std::optional<Arithmetic> arithmetic;
  for (const KernelEntry& entry : builtin_kernels())
    if (entry.id == "builtin:" + kernel) arithmetic = entry.make()->manifest().arithmetic.usual_for(dtype);
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
