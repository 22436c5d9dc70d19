// alibi: slopes, which take from a score by how far a key is from its row's position.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/formal.h"
#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/split_laws.h"
#include "properties/families/variants/row_lse.h"
#include "properties/families/variants/row_weights.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

Case without_slopes(Case c) {
  drop_variant(c, alibi_variant.name);
  return c;
}

/// slope(e, old) in the place of each.
Case with_slopes(Case c, const std::function<double(std::int64_t, double)>& slope) {
  c[Slot::alibi_slopes] = mapped(c[Slot::alibi_slopes], slope);
  return c;
}

/// Of a key in its own sequence, and of a row: what |p - j| is about.
struct Positions {
  std::int64_t p = 0, j = 0;
};
Positions positions_of(const Case& c, const RowPlace& at, std::int64_t j) {
  const std::optional<Sequence> own = sequence_at(c, at.b, at.i);
  if (!own) return {};
  return {position(sight_rule(c), at.i - own->first_query, own->queries, own->keys), j - own->first_key};
}

/// Output and log-sum-exp, in a proof both as formulas.
Verdict same_answers(const Result& left, const Result& right) {
  Verdict verdict = same(left, right, Match::bound);
  if (!in_a_proof()) return verdict;
  const std::int64_t width = left.shape()[3];
  const auto lse = [&](const Result& of, std::int64_t e) -> const Expression& {
    return of.run().formal_lse()[of.origin(e) / of.run().shape()[3]];
  };
  for (std::int64_t e = 0; e < left.elements(); e += width) {
    const Expression &one = lse(left, e), &other = lse(right, e);
    if (one.kind() == ProofKind::undefined || other.kind() == ProofKind::undefined) continue;
    if (!GenericInputs::current().identical(one, other))
      return violated(Violation::lse, fmt::format("lse {} is another one", e / width));
  }
  return verdict;
}

/// A case without slopes whose mask adds something in their place, and by how much each row's entries were rounded.
struct Masked {
  Case c;
  std::vector<double> rounding;
};

/// What a mask adds to a score and n times the slope of the head; in a proof a double that stands for it.
double entry_of(const Case& c, const RowPlace& at, std::int64_t j, double sign, std::int64_t n) {
  const Tensor& mask = c.mask();
  const double added = mask.present() && mask.dtype() != DType::boolean ? mask_entry(mask, at.b, at.h, at.i, j) : 0;
  return sum_of(added, product_of(sign * slope_of(c, at.b, at.h), count_of(n)));
}

/// `entry` says what is added to the score of a key that the mask of the case does not hide. Positions hide what they
/// hid.
Masked with_mask_for_slopes(const Kernel& kernel, const Case& c,
                            const std::function<double(const RowPlace&, std::int64_t j)>& entry) {
  const std::int64_t N = keys_of(c);
  Masked masked{.c = without_slopes(c), .rounding = {}};
  Tensor mask(widest_mask(kernel, c), {batch_of(c), heads_of(c), queries_of(c), N});
  const double largest = largest_entry(kernel, c);
  const Tensor& old = c.mask();
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    const RowPlace at = place_of(c, row);
    double most = 0;
    for (std::int64_t j = 0; j < N; ++j) {
      const double before = old.present() ? mask_entry(old, at.b, at.h, at.i, j) : 0;
      if (old.present() && (old.dtype() == DType::boolean ? before == 0 : before == -infinity)) {
        mask.set(row * N + j, -infinity);
        continue;
      }
      const double exact = entry(at, j), held = std::clamp(exact, -largest, largest);
      mask.set(row * N + j, in_a_proof() ? exact : held);
      if (in_a_proof() || hidden(c, at.b, at.h, at.i, j)) continue;
      most = std::max(most, std::fabs(mask[row * N + j] - exact) + 0x1p-51 * (std::fabs(exact) + std::fabs(before)));
    }
    masked.rounding.push_back(most);
  }
  masked.c[Slot::mask] = std::move(mask);
  masked.c.mask_convention = convention_of(c);
  set_layouts(masked.c, Layouts());
  return masked;
}

double distant_entry(const Case& c, const RowPlace& at, std::int64_t j) {
  const auto [p, own] = positions_of(c, at, j);
  return entry_of(c, at, j, -1, std::abs(p - own));
}

/// The answer with slopes and the one with the mask in their place, rows whose entries are known well enough.
Verdict agree_with_mask(const Case& c, const Result& left, const Result& right, const Masked& masked,
                        const OfRow& shift = {}) {
  const auto rounding = [&](std::int64_t row, const std::vector<SeenKey>&) {
    return masked.rounding[static_cast<std::size_t>(row)];
  };
  return agree_to_scores(c, left, right, 0.25, rounding, shift);
}

// Slopes are the mask -m|p - j|.
Verdict equals_mask(Kernel& kernel, const Case& c) {
  const Masked masked =
      with_mask_for_slopes(kernel, c, [&](const RowPlace& at, std::int64_t j) { return distant_entry(c, at, j); });
  const Result left = run_with_lse(kernel, c), right = run_with_lse(kernel, within_reach(kernel, masked.c));
  return in_a_proof() ? same_answers(left, right) : agree_with_mask(c, left, right, masked);
}

// A slope of 0, of either sign, is none: in one head, or in all.
Verdict zero_slope(Kernel& kernel, const Case& c) {
  const std::int64_t heads = heads_of(c), one = argument(c, "head", heads + 1);
  const Indices chosen = one == heads ? all_of(heads) : Indices{one};
  const double zero = argument(c, "sign", 2) == 1 ? -0.0 : 0.0;
  const Case level = with_slopes(
      c, [&](std::int64_t e, double old) { return std::ranges::count(chosen, e % heads) > 0 ? zero : old; });
  return same_answers(run_with_lse(kernel, level).heads(chosen), run_with_lse(kernel, without_slopes(c)).heads(chosen));
}

/// No power of two, one below 0, none, and the one that is there.
Case with_some_slope(const Case& c, std::int64_t b, std::int64_t h) {
  constexpr std::array slopes{0.3, -0.3, 0.0};
  const auto turn = static_cast<std::size_t>(argument(c, "slope", std::ssize(slopes) + 1));
  if (in_a_proof() || turn == slopes.size()) return c;
  const std::int64_t heads = heads_of(c), at = (c[Slot::alibi_slopes].shape()[0] == 1 ? 0 : b) * heads + h;
  return with_slopes(c, [&](std::int64_t e, double old) { return e == at ? slopes[turn] : old; });
}

// A head of an entry beside the others is what it is alone with the mask of its own slope.
Verdict as_given(Kernel& kernel, const Case& c) {
  const std::int64_t b = argument(c, "b", batch_of(c)), h = argument(c, "h", heads_of(c));
  const Case all = with_some_slope(c, b, h), one = with_heads(with_batch(all, {b}), {h});
  const Masked masked =
      with_mask_for_slopes(kernel, one, [&](const RowPlace& at, std::int64_t j) { return distant_entry(one, at, j); });
  const Result left = run_with_lse(kernel, all).batch({b}).heads({h}),
               right = run_with_lse(kernel, within_reach(kernel, masked.c));
  return in_a_proof() ? same_answers(left, right) : agree_with_mask(one, left, right, masked);
}

// Heads permuted with their slopes: their outputs are.
Verdict permuted_heads(Kernel& kernel, const Case& c) {
  const Indices heads = permutation_argument(c, "heads", heads_of(c));
  const Case permuted = with_heads(c, heads);
  return agree({run(kernel, within_reach(kernel, permuted)), run(kernel, c).heads(heads)},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

/// With the mask +m j.
Masked with_columns(const Kernel& kernel, const Case& c) {
  return with_mask_for_slopes(
      kernel, c, [&](const RowPlace& at, std::int64_t j) { return entry_of(c, at, j, 1, positions_of(c, at, j).j); });
}

// Without the form its outputs are others.
Verdict columns_alone(Kernel& kernel, const Case& c) {
  return agree({run(kernel, c), run(kernel, with_columns(kernel, c).c)}, Match::bound);
}

// Causal: the mask +m j is -m|p - j| but for m p, which all scores of a row are larger by.
Verdict column_form(Kernel& kernel, const Case& c) {
  const Masked masked = with_columns(kernel, c);
  const Result left = run_with_lse(kernel, c), right = run_with_lse(kernel, within_reach(kernel, masked.c));
  const auto position_of_row = [&](std::int64_t row) { return positions_of(c, place_of(c, row), 0).p; };
  if (!in_a_proof())
    return agree_with_mask(c, left, right, masked, [&](std::int64_t row, const std::vector<SeenKey>&) {
      const auto [b, h, i] = place_of(c, row);
      return slope_of(c, b, h) * static_cast<double>(position_of_row(row));
    });
  GenericInputs& inputs = GenericInputs::current();
  using Traits = ScalarTraits<Expression>;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    const auto [b, h, i] = place_of(c, row);
    if (seen_keys(c, row).empty()) continue;
    const Expression shift =
        inputs.at(slope_of(c, b, h)) * Traits::from_double(static_cast<double>(position_of_row(row)));
    const Expression moved = Traits::exp(left.run().formal_lse()[row]) * Traits::exp(shift);
    if (!inputs.identical(Traits::exp(right.run().formal_lse()[row]), moved))
      return violated(Violation::lse, fmt::format("lse {} is not larger by the slope times the position", row));
  }
  return agree_in_domain({left, right}, Match::bound);
}

// The log-sum-exp is that of the scores with -m|p - j|, and of no other form of slopes.
Verdict lse(Kernel& kernel, const Case& c) {
  if (in_a_proof()) return formally_in_lse_range(kernel, c);
  if (std::string why = why_no_lse(kernel.manifest(), c); !why.empty()) return skipped(std::move(why));
  const Result out = run_with_lse(kernel, c);
  if (!out.run().lse().present()) return skipped("no log-sum-exp came of the kernel's own numbers");
  std::vector<double> found, expected, errors;
  for (std::int64_t row = 0; row < rows_of(c); ++row) {
    const auto [b, h, i] = place_of(c, row);
    const Lse own = lse_of(out, row);
    if (!own.known || own.empty) continue;
    const double sink = c[Slot::sink].present() ? c[Slot::sink][h] : -infinity;
    std::vector<double> scores{sink};
    double error = 0, most = sink;
    for (std::int64_t j = 0; j < keys_of(c); ++j) {
      if (hidden(c, b, h, i, j)) continue;
      const Score score = score_of(c, b, h, i, j);
      scores.push_back(score.value);
      most = std::max(most, score.value), error = std::max(error, score.error);
    }
    double sum = 0;
    for (const double score : scores) sum += std::exp(score - most);
    const double size = std::fabs(most) + std::log(sum) + 1;
    found.push_back(own.value);
    expected.push_back(most + std::log(sum));
    errors.push_back(own.error + error + (0x1p-49 + static_cast<double>(scores.size()) * 0x1p-52) * size);
  }
  if (found.empty() && rows_of(c) > 0) return excused("no row has a log-sum-exp with a bound");
  const Shape shape{std::ssize(found)};
  return agree({Numbers(shape, found).loosened(errors), Numbers(shape, expected)});
}

// Keys before all others that no row sees: a row is as far from each key as it was.
Verdict translation(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c);
  const std::optional<std::int64_t> keys = keys_within(kernel).from(N + 1 + argument(c, "more", 32));
  if (!keys) return skipped("the manifest allows no more keys");
  Indices chosen = cycled(N, *keys - N);
  const std::int64_t more = std::ssize(chosen);
  for (std::int64_t j = 0; j < N; ++j) chosen.push_back(j);
  Case longer = with_keys(c, chosen);
  longer.mask_convention = convention_of(c);
  for (std::int64_t s = 0; s < more; ++s) longer = hide(std::move(longer), -1, s);
  return same_answers(run_with_lse(kernel, within_reach(kernel, longer)), run_with_lse(kernel, c));
}

// The last row of M queries is the single-query call on the same keys.
Verdict decode_step(Kernel& kernel, const Case& c) {
  const std::int64_t last = queries_of(c) - 1;
  const Case one = with_queries(c, {last});
  return same_answers(run_with_lse(kernel, within_reach(kernel, one)), run_with_lse(kernel, c).queries({last}));
}

constexpr Stated sloped = defining(hypotheses::alibi, "the theorem is about slopes");
constexpr std::array any_slopes{sloped};
constexpr std::array slopes_as_mask{sloped, defining(hypotheses::infinity_for_a_mask, "the mask is written out")};
constexpr std::array slopes_of_heads{sloped, defining(hypotheses::two_heads, "a permutation needs two")};
constexpr std::array causal_slopes{
    sloped,
    needed(hypotheses::causal_form, "keys behind a row's position are as far from it as those before it",
           columns_alone),
    defining(hypotheses::infinity_for_a_mask, "the mask is written out")};
constexpr std::array from_the_last_key{
    sloped, defining(hypotheses::bottom_right_positions, "a row's position would stay where keys move"),
    defining(hypotheses::a_query_and_a_key, "there is nothing to move then"),
    defining(hypotheses::infinity_to_hide, "the theorem hides keys")};
constexpr std::array of_the_last_row{
    sloped, defining(hypotheses::bottom_right_positions, "a single row would stand at the first key"),
    defining(hypotheses::a_query, "the theorem is about the last one")};

/// Lengths at which loops over pairs of rows and keys are soon done.
void few(Recipe& r) {
  r.keys = std::min(r.keys, 300), r.queries = std::min(r.queries, 80);
}
void some_keys(Recipe& r) {
  r.queries = std::max(r.queries, 1), r.keys = std::max(r.keys, 1);
}
void two_heads(Recipe& r) {
  if (r.heads == 1) r.heads = r.kv_heads = 2;
}
void causal(Recipe& r) {
  if (r.causal == Causal::none) r.causal = r.seed % 2 == 0 ? Causal::top_left : Causal::bottom_right;
}
void from_the_end(Recipe& r) {
  if (r.causal != Causal::none || r.seed % 2 == 0) r.causal = Causal::bottom_right;
  argument_in(r.arguments, &Problem::alignment) = static_cast<double>(Causal::bottom_right);
}

const Property family[] = {
    {.name = "alibi.equals-mask",
     .statement = "slopes are the additive mask −m_h·|p_i − j|",
     .source = "+",
     .needs = "attention, alibi, additive masks",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk lengths packed left_pad sink softcap dropout",
     .hypotheses = slopes_as_mask,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(few).with_later_arguments().with_slopes();
     },
     .check = equals_mask},
    {.name = "alibi.zero-slope",
     .statement = "m_h = 0 is no slope, in one head or in all",
     .source = "+",
     .needs = "attention, alibi",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk lengths packed left_pad sink softcap dropout",
     .hypotheses = any_slopes,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_slopes();
     },
     .check = zero_slope},
    {.name = "alibi.as-given",
     .statement = "a head of an entry has the slope that is given for it, and no other: any number, negative, 0, no "
                  "power of two, in any order",
     .source = "+",
     .needs = "attention, alibi, additive masks",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk lengths left_pad sink softcap dropout",
     .hypotheses = slopes_as_mask,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(few)
           .where([](Recipe& r) {
             if (r.batch == 1 && !r.large && r.seed % 2 == 0) r.batch = 2;
           })
           .with_later_arguments()
           .with_slopes();
     },
     .check = as_given},
    {.name = "alibi.heads",
     .statement = "permuting heads with their slopes permutes outputs",
     .source = "+",
     .needs = "attention, alibi",
     .floating_point = "bitwise if batch-invariant",
     .variant = "alibi",
     .under = "window chunk lengths packed left_pad sink softcap dropout",
     .hypotheses = slopes_of_heads,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(two_heads).with_later_arguments().with_slopes();
     },
     .check = permuted_heads},
    {.name = "alibi.column-form",
     .statement = "causal: the additive mask +m_h·j gives the same O, and lse + m_h·p_i",
     .source = "+",
     .needs = "attention, alibi, additive masks, causal",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk lengths packed left_pad softcap dropout",
     .hypotheses = causal_slopes,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(few).where(causal).with_later_arguments().with_slopes();
     },
     .check = column_form},
    {.name = "alibi.lse",
     .statement = "lse_i = ln Σ_j e^{s_ij}, s with the slopes of the definition",
     .source = "+",
     .needs = "attention, alibi, lse",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk lengths packed left_pad sink softcap dropout",
     .hypotheses = any_slopes,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where(few)
           .where([](Recipe& r) {
             if (r.seed % 2 == 0) causal(r);
           })
           .with_later_arguments()
           .with_slopes();
     },
     .check = lse},
    {.name = "alibi.translation",
     .statement = "positions from the last key: hidden keys before all others change nothing",
     .source = "+",
     .needs = "attention, alibi, masks",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window sink softcap dropout",
     .hypotheses = from_the_last_key,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(some_keys).where(few).with_slopes().where(from_the_end);
     },
     .check = translation},
    {.name = "alibi.decode",
     .statement = "positions from the last key: the last row of M queries is the single-query call",
     .source = "+",
     .needs = "attention, alibi",
     .floating_point = "bound",
     .variant = "alibi",
     .under = "window chunk sink softcap dropout",
     .hypotheses = of_the_last_row,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(some_keys).with_slopes().where(from_the_end);
     },
     .check = decode_step},
};

}  // namespace

std::span<const Property> alibi_properties() {
  return family;
}

}  // namespace attest
