// masked: what a hidden key and its value mean to MAttn_B (000: deletion, suppression; padding).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/unarranged.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"

namespace attest {
namespace {

/// A key other than s.
std::int64_t other_key(const Case& c, std::int64_t s) {
  const std::int64_t N = keys_of(c);
  return (s + 1 + argument(c, "l", N - 1)) % N;
}

/// A key that is not deleted with s.
std::int64_t key_left(const Case& c, const Deletion& deletion, std::int64_t s) {
  const std::int64_t N = keys_of(c), gone = std::ssize(deletion.gone);
  return (s + gone + argument(c, "l", N - gone)) % N;
}

/// Row i (every row where i < 0) does not see what is deleted with key s.
Case with_others_hidden(Case c, std::int64_t i, const Deletion& deletion, std::int64_t s) {
  for (const std::int64_t j : deletion.gone)
    if (j != s) c = hide(std::move(c), i, j);
  return c;
}

/// The rows of key s of k and v, changed: value(old).
template <class Value>
Case with_key_changed(Case c, std::int64_t s, Value&& value) {
  const std::int64_t N = keys_of(c);
  for (const Slot slot : {Slot::k, Slot::v}) {
    const std::int64_t width = c[slot].shape()[3];
    for (std::int64_t e = 0; e < c[slot].elements(); ++e)
      if (e / width % N == s) c[slot].set(e, value(slot, c[slot][e]));
  }
  return c;
}

// 000: MAttn_B(Q,K,V)^(i) = MAttn_{B^(i)}(Q^(i),K,V), and so of as many deletions as one likes.
Verdict query_deletion(Kernel& kernel, const Case& c) {
  const Indices left = queries_left(c);
  return agree({run(kernel, c).queries(left), run_rows(kernel, c, left)}, bits_if(kernel, {Claim::batch_invariant}),
               /*about_bits=*/true);
}

// 000: b_is = -inf => o_i is independent of k_s and v_s, and o_i = sum_{l != s} e^{s_il} v_l / sum_{l != s} e^{s_il}.
// k_s is negated: its score keeps its size, so it stays in the domain. NaN and Inf are hidden from every row.
Verdict suppression(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t i = argument(c, "i", queries_of(c)), s = argument(c, "s", keys_of(c));
  const double poisons[] = {0, 0, 0, std::numeric_limits<double>::quiet_NaN(), infinity, -infinity};
  const double poison = poisons[argument(c, "poison", 6)];
  const bool finite = poison == 0;
  const Deletion deletion = deletion_of(kernel, c, s);
  const Case others = with_others_hidden(c, finite ? i : -1, deletion, s);
  const Case hidden_key = hide_and_spare(others, finite ? i : -1, s, key_left(c, deletion, s));
  const double most = format_of(c.v().dtype()).largest;
  const bool replaced = argument(c, "replaced", 2) == 1;
  Case changed = with_key_changed(hidden_key, s, [&](Slot slot, double old) {
    if (!finite && !(c[slot].dtype() == DType::f8_e4m3 && std::isinf(poison))) return any_number(poison);
    return any_number(replaced ? (slot == Slot::v ? most / 4 : 0.0) : -old);
  });
  if (!finite) changed.provenance.non_finite = "yes";
  const Match match =
      finite ? match_of_dead_values(kernel) : bits_if(kernel, {Claim::deterministic, Claim::ignores_dead_values});
  const Result o = run(kernel, hidden_key).queries({i});
  Verdict independent = agree_in_domain({run(kernel, changed).queries({i}), o}, match);
  if (!deletion.is_allowed) return independent;
  return worse_of({std::move(independent), agree({o, run_without(kernel, hidden_key, deletion, {i})}, Match::bound)});
}

struct Score {
  double value, error;
};
/// scale q.k + b or scale (q.k + b) in double, and how far that may be from the exact score. -inf where hidden.
Score score(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (hidden(c, b, h, i, j)) return {-infinity, 0};
  const std::int64_t dk = c.q().shape()[3], kv = kv_head_of(c, h);
  double sum = 0, size = 0;
  for (std::int64_t x = 0; x < dk; ++x) {
    const double term = c.q().at(b, h, i, x) * c.k().at(b, kv, j, x);
    sum += term;
    size += std::fabs(term);
  }
  const double bias = bias_of(c, b, h, i, j);
  size = c.scale * size + std::fabs(mask_term(bias, c.scale, c.mask_convention));
  return {attest::score(sum, bias, c.scale, c.mask_convention), static_cast<double>(dk + 4) * 0x1p-52 * size + 1e-290};
}

/// An upper bound of s_is - max_{l != s} s_il; +inf where double cannot tell.
double lead(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t s) {
  double most = -infinity;
  for (std::int64_t l = 0; l < keys_of(c); ++l) {
    if (l == s) continue;
    const Score other = score(c, b, h, i, l);
    most = std::max(most, other.value - other.error);
  }
  const Score own = score(c, b, h, i, s);
  const double up = own.value + own.error - most;
  return std::isfinite(own.value) && std::isfinite(most) ? up + 1e-15 * std::fabs(up) : infinity;
}

/// In a proof: o_i - o' = alpha (v_s - o') for any finite b_is, with alpha, the weight of s, read through v_s = 1 and
/// 0 elsewhere; 0 < alpha < 1; and its odds alpha / (1 - alpha) grow by e^d with b_is by d, so that alpha, and with it
/// the error, goes to 0 as b_is does to -inf.
Verdict formal_limit(Kernel& kernel, const Case& hidden_key, std::int64_t i, std::int64_t s) {
  const double bias = any_number(0), more = any_number(0);
  const Case with_bias = with_mask_entry(hidden_key, i, s, bias);
  const Case with_more = with_mask_entry(hidden_key, i, s, sum_of(bias, more));
  const Shape v = hidden_key.v().shape();
  const auto weight = [&](Case c) {
    c[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e / v[3] % v[2] == s ? 1.0 : 0.0; });
    return Numbers(run(kernel, std::move(c)).queries({i}));
  };
  const Numbers limit(run(kernel, hidden_key).queries({i})), out(run(kernel, with_bias).queries({i}));
  const Numbers alpha = weight(with_bias), grown = weight(with_more);
  const Shape o = out.shape();
  std::vector<double> own;
  for (std::int64_t e = 0; e < o.elements(); ++e) {
    const std::int64_t h = e / o[3] % o[1], b = e / o[3] / o[1];
    own.push_back(hidden_key.v()[((b * v[1] + h / (o[1] / v[1])) * v[2] + s) * v[3] + e % o[3]]);
  }
  const auto one_minus = [&](const Numbers& x) {
    return Numbers(o, std::vector<double>(own.size(), 1.0)).plus(x.scaled(-1));
  };
  const double unit = mask_term(1.0, hidden_key.scale, hidden_key.mask_convention);
  const double growth = exponential_of(product_of(unit, more));
  Verdict worst = agree({out.plus(limit.scaled(-1)), alpha.times(Numbers(o, own).plus(limit.scaled(-1)))});
  worst = worse_of({std::move(worst), positive_formulas(alpha)});
  worst = worse_of({std::move(worst), positive_formulas(one_minus(alpha))});
  return worse_of(
      {std::move(worst), agree({grown.times(one_minus(alpha)), alpha.times(one_minus(grown)).scaled(growth)})});
}

// 000: with b_is finite, o_i = (1 - alpha) o' + alpha v_s, o' the formula over l != s and alpha the weight of s, so
// |o_i - o'| = alpha |v_s - o'|; and alpha = e^{s_is} / (e^{s_is} + sum_{l != s} e^{s_il}) <= e^D / (1 + e^D) with
// D = s_is - max_{l != s} s_il.
Verdict suppression_limit(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t i = argument(c, "i", queries_of(c)), s = argument(c, "s", keys_of(c));
  const Case hidden_key = hide_and_spare(with_additive_mask(c), i, s, other_key(c, s));
  const std::int64_t batch = batch_of(c), heads = heads_of(c), dv = c.v().shape()[3], N = keys_of(c);
  const std::int64_t group = heads / c.v().shape()[1];
  if (in_a_proof()) return formal_limit(kernel, hidden_key, i, s);
  const Numbers limit(run(kernel, hidden_key).queries({i}));
  const Case unbiased = with_mask_entry(hidden_key, i, s, 0.0);
  double ahead = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h) ahead = std::max(ahead, lead(unbiased, b, h, i, s));
  const double unit = mask_term(1.0, c.scale, c.mask_convention);
  const double first = -2.0 * static_cast<double>(argument(c, "from", 5)), most = format_of(c.dtype()).largest / 16;
  Verdict worst;
  for (const double target : {first, -250.0}) {
    const double b_is = std::max((target - std::min(ahead, most)) / unit, -most);
    const Case c_b = with_mask_entry(hidden_key, i, s, b_is);
    std::vector<long double> within;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t h = 0; h < heads; ++h) {
        // An upper bound of e^D/(1 + e^D), also where e^D underflows.
        const double D = lead(c_b, b, h, i, s);
        const double weight =
            std::min(1.0, std::max(std::exp(D) / (D < 600 ? 1 + std::exp(D) : 1) * (1 + 0x1p-40), 1e-300));
        for (std::int64_t x = 0; x < dv; ++x) {
          const std::int64_t e = (b * heads + h) * dv + x;
          const double v_s = c.v()[((b * c.v().shape()[1] + h / group) * N + s) * dv + x], o = limit.value(e);
          const double apart =
              std::fabs(v_s - o) + static_cast<double>(limit.allowed(e)) + 0x1p-50 * (std::fabs(v_s) + std::fabs(o));
          within.push_back(weight * apart * (1 + 0x1p-40) + std::numeric_limits<double>::denorm_min());
        }
      }
    }
    // With two keys, or one far above the others, the inequality is an equality: not |o_i - o'| over what is allowed
    // tells kernels apart, but what of the rounding's bound is used beyond it.
    const Verdict step = agree_to_within({Numbers(run(kernel, c_b).queries({i})), limit}, within);
    worst = target == first ? step : worse_of({worst, step});
  }
  return worst;
}

// 000: column s of B is -inf => MAttn_B(Q,K,V) = MAttn_{B^[s]}(Q, K^(s), V^(s)).
Verdict key_value_deletion(Kernel& kernel, const Case& c) {
  const std::int64_t s = argument(c, "s", keys_of(c));
  const Deletion deletion = deletion_of(kernel, c, s);
  const Case others = with_others_hidden(c, -1, deletion, s);
  const Case hidden_column = hide_and_spare(others, -1, s, key_left(c, deletion, s));
  const Indices rows = rows_beside(kernel, c, std::ssize(deletion.rest));
  return agree({run(kernel, hidden_column).queries(rows), run_without(kernel, hidden_column, deletion, rows)},
               Match::bound);
}

// Keys appended at the end and hidden from every row change nothing: with a mask on both sides, so that the same code
// runs. Their values are those of the first keys, negated.
Verdict tail_padding(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c);
  if (N == 0) return {.outcome = Outcome::excused, .reason = "N = 0: every row is fully masked on both sides"};
  const std::int64_t counts[] = {1, 2, 7, 16, 33, 64};
  const std::int64_t wanted = N + counts[argument(c, "more", 6)];
  const std::int64_t total = keys_within(kernel).from(wanted).value_or(wanted);
  const Case short_one = with_some_mask(c);
  Case padded = with_keys(short_one, cycled(N, total));
  const std::int64_t dv = c.v().shape()[3];
  padded[Slot::v] =
      mapped(padded.v(), [&](std::int64_t e, double old) { return e / dv % total < N ? old : any_number(-old); });
  for (std::int64_t j = N; j < total; ++j) padded = hide(std::move(padded), -1, j);
  return agree_in_domain({run_rows(kernel, padded, all_of(queries_of(c))), run(kernel, short_one)},
                         bits_if(kernel, {Claim::padding_invariant}));
}

// Keys appended at the end and seen.
Verdict tail_in_sight(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c);
  return agree({run(kernel, with_keys(c, cycled(N, N + 1))), run(kernel, c)}, Match::bound);
}

constexpr std::array deleted_rows{needed(hypotheses::no_causal_form, "the form counts the rows, and a row is gone"),
                                  defining(hypotheses::two_queries, "one row is deleted and another one looked at")};
constexpr std::array deleted_keys{
    needed(hypotheses::no_causal_form, "the form counts the keys, and a key is gone: a row sees one that it did not"),
    defining(hypotheses::two_keys, "a key is hidden and another one stays"),
    defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")};
constexpr auto suppressed = joined(
    deleted_keys, std::array{needed(hypotheses::hidden_key, "a key that the row sees has a weight", row_without_key)});
constexpr auto deleted_column = joined(
    deleted_keys,
    std::array{needed(hypotheses::hidden_from_all, "a row that sees the key gives it a weight", rows_without_key)});
constexpr std::array padded{
    needed(hypotheses::no_causal_form, "the form at the bottom right counts from the last key, and there are more"),
    defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask"),
    needed(hypotheses::hidden_tail, "keys in sight take weight from the others", tail_in_sight)};
constexpr std::array to_the_limit{spare(hypotheses::no_causal_form, "no row or key is moved"),
                                  defining(hypotheses::two_keys, "a key is hidden and another one stays"),
                                  defining(hypotheses::infinite_dtype, "the limit is -inf")};

const Property family[] = {
    {.name = "masked.query-deletion",
     .statement = "MAttn_B(Q,K,V)^(i) = MAttn_{B^(i)}(Q^(i),K,V)",
     .source = "000",
     .needs = "attention",
     .floating_point = "bitwise if batch-invariant",
     .wants = wants_hidden_keys,
     .hypotheses = deleted_rows,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).masked().at_least(2, 0); },
     .check = query_deletion},
    {.name = "masked.suppression",
     .statement = "b_is = −∞ ⇒ o_i is independent of k_s and v_s, and equals the closed formula over l ≠ s",
     .source = "000",
     .needs = "attention",
     .floating_point =
         "for finite k_s, v_s whose score stays inside the domain: bitwise if deterministic and "
         "ignores-dead-values, equal values (+0 equals −0) if only deterministic, else bound; for NaN/Inf "
         "in k_s, v_s only if it claims ignores-dead-values (reported in any case)",
     .hypotheses = suppressed,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).masked().at_least(0, 2); },
     .check = suppression},
    {.name = "masked.suppression-limit",
     .statement = "b_is → −∞ through finite values: o_i converges to that formula o'; with Δ = s_is − max_{l≠s} s_il "
                  "the error is at most e^Δ/(1+e^Δ)·|v_s − o'|",
     .source = "000",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = to_the_limit,
     .given = [](Draw& draw) -> Case { return draw.attention().masked().at_least(0, 2); },
     .check = suppression_limit},
    {.name = "masked.key-value-deletion",
     .statement = "column s of B is −∞ ⇒ MAttn_B(Q,K,V) = MAttn_{B^[s]}(Q,K^(s),V^(s))",
     .source = "000",
     .needs = "attention",
     .floating_point = "bound (deleting a key in the middle moves block boundaries)",
     .hypotheses = deleted_column,
     .given = [](Draw& draw) -> Case { return draw.attention().masked().at_least(0, 2); },
     .check = key_value_deletion},
    {.name = "masked.tail-padding",
     .statement = "appending masked keys at the end changes nothing",
     .source = "+",
     .needs = "attention",
     .floating_point = "bitwise if padding-invariant, else bound",
     .hypotheses = padded,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).masked(); },
     .check = tail_padding},
};

}  // namespace

std::span<const Property> masked_properties() {
  return family;
}

}  // namespace attest
