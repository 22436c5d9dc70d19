// dropout: weights are dropped once they are normalised, and those that are kept are divided by 1 - p.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/formal.h"
#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/scalars/wide.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"
#include "properties/language/refute.h"

namespace attest {
namespace {

Case without_dropout(Case c) {
  drop_variant(c, dropout_variant.name);
  return c;
}
Case with_rate(Case c, double rate) {
  c.dropout_p = rate;
  return c;
}
/// keep(e, old) of each element; the mask stays as long as it is.
Case with_keep(Case c, const std::function<double(std::int64_t, double)>& keep) {
  c[Slot::keep] = mapped(c[Slot::keep], keep);
  return c;
}
double kept(std::int64_t, double) {
  return 1;
}
double dropped(std::int64_t, double) {
  return 0;
}
double turned(std::int64_t, double old) {
  return 1 - old;
}
/// What every row of every head does with a key.
Case with_key(const Case& c, std::int64_t s, double keep) {
  const std::int64_t N = keys_of(c);
  return with_keep(c, [=](std::int64_t e, double old) { return e % N == s ? keep : old; });
}
/// value(old) in the place of what key s brings.
Case with_value(Case c, std::int64_t s, const std::function<double(double)>& value) {
  const std::int64_t N = keys_of(c), dv = c.v().shape()[3];
  c[Slot::v] = mapped(c.v(), [&](std::int64_t e, double old) { return e / dv % N == s ? value(old) : old; });
  return c;
}

/// A number that no double need be: a double near it, of so many roundings, which in a proof stands for it.
struct Factor {
  double near = 1;
  Wide exact = 1;
  double roundings = 0;
};
Factor operator*(const Factor& a, const Factor& b) {
  return {product_of(a.near, b.near), a.exact * b.exact, a.roundings + b.roundings + 1};
}
/// 1 - p, and p.
Factor kept_share(double p) {
  return {sum_of(1, product_of(-1, p)), Wide(1) - Wide(p), 1};
}
Factor dropped_share(double p) {
  return {p, Wide(p), 0};
}
/// A half, so that no sum of parts leaves the range of numbers that hold the whole.
Factor half() {
  return in_a_proof() ? Factor{} : Factor{0.5, Wide(0.5), 0};
}

Numbers times(const Numbers& numbers, const Factor& factor) {
  if (in_a_proof()) return numbers.scaled(factor.near);
  if (numbers.own().present())
    return numbers.times(
        Numbers(numbers.shape(), std::vector<Wide>(static_cast<std::size_t>(numbers.elements()), factor.exact)));
  const Numbers product = numbers.scaled(factor.near);
  std::vector<long double> lost;
  lost.reserve(static_cast<std::size_t>(product.elements()));
  for (std::int64_t e = 0; e < product.elements(); ++e)
    lost.push_back(factor.roundings * (0x1p-52L * (std::fabs(product.value(e)) + product.allowed(e)) +
                                       0x1p-1073L * (std::fabs(numbers.value(e)) + numbers.allowed(e))));
  return product.loosened(lost);
}

// k = 1 and p = 0 is no dropout, and k = 1 with p > 0 gives O/(1 - p).
Verdict none(Kernel& kernel, const Case& c) {
  const Case whole = with_keep(c, kept);
  const Result idle = run_with_lse(kernel, with_rate(whole, 0)), plain = run_with_lse(kernel, without_dropout(c));
  const Result gained = run(kernel, whole);
  return worse_of(
      {same(idle, plain, Match::bound), agree({times(Numbers(gained), kept_share(c.dropout_p)), Numbers(plain)})});
}

/// 0 in every element that is held to anything, and nothing near it.
Verdict is_zero(const Result& out) {
  const std::vector<double> zeros(static_cast<std::size_t>(out.elements()));
  if (in_a_proof() || !out.run().out().is<Tensor>()) return agree({Numbers(out), Numbers(out.shape(), zeros)});
  bool judged = false;
  for (std::int64_t e = 0; e < out.elements(); ++e) {
    const Excuse excuse = out.run().bound(e).excuse;
    if (excuse != Excuse::none && excuse != Excuse::vacuous) continue;
    const double x = out.run().out()[e];
    if (!std::isfinite(x) && !out.run().bound(e).finite_required) continue;
    judged = true;
    if (x == 0) continue;
    return violated(
        std::isfinite(x) ? Violation::bound : Violation::not_finite,
        fmt::format("element {} of a row of which everything is dropped is {:.6g}; it is 0", e, printed(x)));
  }
  if (!judged && out.elements() > 0) return excused("no row lies inside the domain of definition");
  return {};
}

// k = 0: the output is exactly 0, and the log-sum-exp what it is without dropout.
Verdict all(Kernel& kernel, const Case& c) {
  const Result nothing = run_with_lse(kernel, with_keep(c, dropped)), plain = run_with_lse(kernel, without_dropout(c));
  return worse_of({is_zero(nothing), agree_in_lse_in_domain({nothing, plain}, Match::bound)});
}

/// Is there a row whose log-sum-exp has a bound?
bool has_bounded_lse(const Result& out) {
  for (std::int64_t row = 0; row < out.run().lse().elements(); ++row)
    if (const RowBound& bound = out.run().row_bound(row); bound.excuse == Excuse::none && bound.lse_allowed < infinity)
      return true;
  return false;
}

// The log-sum-exp does not depend on k and p. Of two masks at one rate a kernel sums the same weights in the same way.
Verdict lse_unaffected(Kernel& kernel, const Case& c) {
  if (std::string why = why_no_lse(kernel.manifest(), c); !in_a_proof() && !why.empty()) return skipped(std::move(why));
  const Result with = run_with_lse(kernel, c), other = run_with_lse(kernel, with_keep(c, turned)),
               plain = run_with_lse(kernel, without_dropout(c));
  if (!in_a_proof() && !with.run().lse().present()) return skipped("no log-sum-exp came of the kernel's own numbers");
  if (!in_a_proof() && !has_bounded_lse(with)) return excused("no row has a log-sum-exp with a bound");
  return worse_of({agree_in_lse_in_domain({other, with}, bits_if(kernel, {Claim::deterministic})),
                   agree_in_lse_in_domain({with, plain}, Match::bound)});
}

// O(k) + O(1 - k) = O/(1 - p); and of two masks that keep nothing together O(k) + O(k') is that of what either keeps.
Verdict complement(Kernel& kernel, const Case& c) {
  const Factor share = kept_share(c.dropout_p) * half();
  const Numbers own(run(kernel, c)), others(run(kernel, with_keep(c, turned)));
  const Numbers plain(run(kernel, without_dropout(c)));
  Verdict whole = agree({times(own, share).plus(times(others, share)), times(plain, half())});
  // Each weight in the first mask, in the second or in neither.
  Stream stream(seed_argument(c, "parts"));
  std::vector<std::int64_t> parts;
  parts.reserve(static_cast<std::size_t>(c[Slot::keep].elements()));
  for (std::int64_t e = 0; e < c[Slot::keep].elements(); ++e) parts.push_back(stream.below(3));
  const auto of_parts = [&](std::int64_t first, std::int64_t last) {
    return Numbers(run(kernel, with_keep(c, [&](std::int64_t e, double) {
                         const std::int64_t part = parts[static_cast<std::size_t>(e)];
                         return first <= part && part <= last ? 1.0 : 0.0;
                       })));
  };
  const Numbers one = of_parts(0, 0), other = of_parts(1, 1), either = of_parts(0, 1);
  return worse_of({std::move(whole), agree({times(one, half()).plus(times(other, half())), times(either, half())})});
}

/// So many keys have a mask each way.
constexpr std::int64_t most_masked = 6;

// The mean over all masks of n keys, each as often as weights that are dropped with probability p by themselves make
// it, is the output without dropout. Masks are the entries of a batch, and other keys, where there are some, bring 0.
Verdict mean(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c), n = std::min(N, most_masked), first = argument(c, "s", N);
  const auto place = [&](std::int64_t j) { return (j - first + N) % N; };
  Case entry = with_batch(c, {argument(c, "b", batch_of(c))});
  const std::int64_t dv = c.v().shape()[3], count = std::int64_t{1} << n;
  entry[Slot::v] = mapped(entry.v(), [&](std::int64_t e, double old) { return place(e / dv % N) < n ? old : 0; });
  const auto keeps = [&](std::int64_t mask, std::int64_t j) { return place(j) >= n || (mask >> place(j) & 1) != 0; };
  Case masks = with_batch(entry, Indices(static_cast<std::size_t>(count), 0));
  masks[Slot::keep] = mapped(Tensor(DType::boolean, {count, 1, M, N}),
                             [&](std::int64_t e, double) { return keeps(e / N / M, e % N) ? 1.0 : 0.0; });
  const Result all_masks = run(kernel, masks), plain = run(kernel, without_dropout(entry));
  const Factor stays = kept_share(c.dropout_p), goes = dropped_share(c.dropout_p);
  std::optional<Numbers> sum;
  for (std::int64_t mask = 0; mask < count; ++mask) {
    // A rate of 0 drops nothing.
    if (c.dropout_p == 0 && mask != count - 1) continue;
    Factor often = half();
    for (std::int64_t t = 0; t < n; ++t) often = often * ((mask >> t & 1) != 0 ? stays : goes);
    const Numbers part = times(Numbers(all_masks.batch({mask})), often);
    sum = sum ? sum->plus(part) : part;
  }
  return agree({*sum, times(Numbers(plain), half())});
}

// A key that every row drops might as well bring 0.
Verdict column(Kernel& kernel, const Case& c) {
  const std::int64_t s = argument(c, "s", keys_of(c));
  const Case without_value = with_value(with_key(c, s, 1), s, [](double) { return 0.0; });
  const Result left = run_with_lse(kernel, with_key(c, s, 0)), right = run_with_lse(kernel, without_value);
  return same(left, right, Match::bound);
}

// Refuted: to drop a key in every row is to delete it. Q = 0 and V = 1, so that of N keys without g the output is
// (1 - g/N)/(1 - p), and 1/(1 - p) where they are deleted.
Verdict renormalises(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c);
  const Deletion deletion = deletion_of(kernel, c, argument(c, "s", N));
  if (!deletion.is_allowed) return skipped("the manifest allows no fewer keys");
  const Indices rows = rows_beside(kernel, c, std::ssize(deletion.rest));
  constexpr std::array rates{0.5, 0.0, 0.75, 0.25};
  return refuted(/*budget=*/static_cast<int>(rates.size()), [&](int n) {
    const double rate = rates[static_cast<std::size_t>(n)];
    Case whole = with_rate(with_keep(c, kept), rate);
    whole[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
    whole[Slot::v] = mapped(c.v(), [](std::int64_t, double) { return 1.0; });
    Case without = whole;
    for (const std::int64_t s : deletion.gone) without = with_key(without, s, 0);
    return Attempt{run(kernel, without).queries(rows), run_without(kernel, whole, deletion, rows),
                   fmt::format("Q = 0, V = 1, {} of {} keys dropped, p = {:g}", deletion.gone.size(), N, rate)};
  });
}

/// What a value may be that no row keeps: NaN, where the kernel says that dead ones may hold that, or a large number,
/// which no kernel that multiplies values by 1/(1 - p) takes out of their range, or another one.
Case with_dead_value(const Kernel& kernel, const Case& c, std::int64_t s) {
  if (kernel.manifest().claims_to(Claim::ignores_dead_values) && argument(c, "poison", 2) == 1) {
    Case poisoned = with_value(c, s, [](double) { return std::numeric_limits<double>::quiet_NaN(); });
    poisoned.provenance.non_finite = "yes";
    return poisoned;
  }
  const bool large = argument(c, "large", 2) == 1;
  const double share = in_a_proof() ? 1 : 1 - c.dropout_p;
  const double most = format_of(c.v().dtype()).largest / 4 / static_cast<double>(keys_of(c)) * share;
  return with_value(c, s, [=](double old) { return any_number(large ? most : old == 0 ? 1 : -old); });
}

// A key that every row drops may bring anything.
Verdict dropped_values_dead(Kernel& kernel, const Case& c) {
  const std::int64_t s = argument(c, "s", keys_of(c));
  const Case without = with_key(c, s, 0);
  const Result left = run_with_lse(kernel, with_dead_value(kernel, without, s)), right = run_with_lse(kernel, without);
  return same(left, right, match_of_dead_values(kernel));
}

/// Another rate than the case's; in a proof any, as formal_case.h has them.
double another_rate(const Case& c) {
  if (in_a_proof()) return product_of(-1, any_positive_number());
  constexpr std::array rates{0.0, 0.5, 0.75, 0.875};
  const auto n = static_cast<std::size_t>(argument(c, "rate", std::ssize(rates)));
  return rates[n] == c.dropout_p ? rates[(n + 1) % rates.size()] : rates[n];
}

// (1 - p) O(p) does not depend on p.
Verdict scale(Kernel& kernel, const Case& c) {
  const double rate = another_rate(c);
  const Numbers left(run(kernel, c)), right(run(kernel, with_rate(c, rate)));
  return agree({times(left, kept_share(c.dropout_p)), times(right, kept_share(rate))});
}

constexpr Stated one = defining(hypotheses::dropout, "the theorem is about one");
constexpr std::array any_mask{one};
constexpr std::array any_mask_of_a_key{
    one, defining(hypotheses::a_query_and_a_key, "the theorem is about a key and the rows that drop it")};
constexpr std::array broken{one, defining(hypotheses::unmasked, "the counterexample has none"),
                            defining(hypotheses::a_query, "a counterexample needs one"),
                            defining(hypotheses::two_keys, "a counterexample needs them")};

void some_keys(Recipe& r) {
  r.queries = std::max(r.queries, 1), r.keys = std::max(r.keys, 1);
}
/// So many that their masks are all asked for, or in one case of four more; few rows, as there are many masks.
void few(Recipe& r) {
  const bool more = r.large || r.seed % 4 == 0;
  r.keys = std::min(r.keys, more ? 200 : static_cast<std::int32_t>(most_masked));
  r.queries = std::min(r.queries, r.large ? 2 : 4);
  r.heads = std::min(r.heads, 2);
}
void two_to_four_keys(Recipe& r) {
  r.queries = std::max(r.queries, 1), r.keys = 2 + r.keys % 3;
}

Case given_any(Draw& draw) {
  return draw.attention(period_of_tile_laws).with_later_arguments().with_dropout();
}
Case given_a_key(Draw& draw) {
  return draw.attention(period_of_tile_laws).where(some_keys).with_later_arguments().with_dropout();
}

const Property family[] = {
    {.name = "dropout.none",
     .statement = "κ = 1 and p = 0 is no dropout; κ = 1 with p > 0 gives O/(1 − p)",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "bound",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .hypotheses = any_mask,
     .given = given_any,
     .check = none},
    {.name = "dropout.all",
     .statement = "κ = 0: O = 0, not NaN, and lse is unaffected",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "inside the domain: zero bitwise; of lse: bound",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .hypotheses = any_mask,
     .given = given_any,
     .check = all},
    {.name = "dropout.lse-unaffected",
     .statement = "lse does not depend on κ and p",
     .source = "+",
     .needs = "attention, dropout, lse",
     .floating_point = "of κ: bitwise if deterministic; of p: bound",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .hypotheses = any_mask,
     .given = given_any,
     .check = lse_unaffected},
    {.name = "dropout.complement",
     .statement = "O(κ) + O(1 − κ) = O/(1 − p); for disjoint κ, κ′: O(κ) + O(κ′) = O(κ ∪ κ′)",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "bound",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .hypotheses = any_mask,
     .given = given_any,
     .check = complement},
    {.name = "dropout.mean",
     .statement = "Σ_κ p^{#0}(1 − p)^{#1} O(κ) = O, over all 2^n masks of rows with n ≤ 6 keys whose values are not 0",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "bound",
     .variant = "dropout",
     .under = "window chunk lengths left_pad sink softcap alibi",
     .hypotheses = any_mask_of_a_key,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_laws).where(some_keys).where(few).with_later_arguments().with_dropout();
     },
     .check = mean},
    {.name = "dropout.column",
     .statement = "κ_·j = 0 equals v_j = 0",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "bound",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .hypotheses = any_mask_of_a_key,
     .given = given_a_key,
     .check = column},
    {.name = "dropout.renormalises",
     .statement = "κ_·j = 0 equals deleting key j",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "counterexample",
     .variant = "dropout",
     .hypotheses = broken,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().where(two_to_four_keys).with_dropout(); },
     .check = renormalises},
    {.name = "dropout.dropped-values-dead",
     .statement = "κ_·j = 0: O and lse do not depend on v_j (NaN, huge)",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "inside the domain: bitwise if deterministic; NaN if ignores-dead-values",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .hypotheses = any_mask_of_a_key,
     .given = given_a_key,
     .check = dropped_values_dead},
    {.name = "dropout.scale",
     .statement = "(1 − p)·O(κ, p) does not depend on p",
     .source = "+",
     .needs = "attention, dropout",
     .floating_point = "bound",
     .variant = "dropout",
     .under = "window chunk lengths packed left_pad sink softcap alibi",
     .hypotheses = any_mask,
     .given = given_any,
     .check = scale},
};

}  // namespace

std::span<const Property> dropout_properties() {
  return family;
}

}  // namespace attest
