// backward: gradients beside those of fewer, more or other rows, keys and heads.
#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/within_limits.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/language/balance.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

double nan_of(double /*old*/) {
  return std::numeric_limits<double>::quiet_NaN();
}
double nothing(double /*old*/) {
  return 0;
}

// dq_i does not depend on q_j, g_j and gamma_j, j != i: also not where these are NaN.
Verdict query_locality(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), j = argument(c, "j", M);
  const auto is_j = [&](std::int64_t row) { return row == j; };
  Case other = c;
  for (const Slot slot : of_queries) other[slot] = with_rows_as(c[slot], is_j, nan_of);
  other.provenance.non_finite = "yes";
  const Indices rest = all_but(M, j);
  const BackwardRun run(kernel, c), changed(kernel, other);
  return gradients_agree(Gradient::q, {changed.of(Gradient::q).queries(rest), run.of(Gradient::q).queries(rest)},
                         gradient_bits_if(kernel, {Claim::batch_invariant}));
}

/// These queries and, behind them, as many more as the manifest asks for whose answers have no gradient: they have no
/// part in dK and dV.
Case with_silent_rows(const Kernel& kernel, const Case& c, const Indices& rows) {
  Case filled = with_queries(c, filled_up(kernel, c, rows));
  for (const Slot slot : of_answers)
    filled[slot] = with_rows_as(filled[slot], [&](std::int64_t row) { return row >= std::ssize(rows); }, nothing);
  return filled;
}

// dK and dV of all queries are the sum of those of two parts of them; dQ is what it is in its part.
Verdict query_additivity(Kernel& kernel, const Case& c) {
  const auto [one, other] = two_parts(c, queries_of(c), fewest(kernel, {1, 1}).queries);
  const BackwardRun all(kernel, c), first(kernel, with_silent_rows(kernel, c, one)),
      second(kernel, with_silent_rows(kernel, c, other));
  return each_gradient(all, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of != Gradient::q)
      return gradients_agree(of, {Numbers(all.of(of)), Numbers(first.of(of)).plus(Numbers(second.of(of)))});
    return gradients_agree(of, {first.of(of).queries(all_of(std::ssize(one))), all.of(of).queries(one)},
                           gradient_bits_if(kernel, {Claim::batch_invariant}));
  });
}

// g_i = 0 and gamma_i = 0: without query i dK and dV are the same.
Verdict zero_row_deletes(Kernel& kernel, const Case& c) {
  const std::int64_t i = argument(c, "i", queries_of(c));
  Case silent = c;
  for (const Slot slot : of_answers)
    silent[slot] = with_rows_as(c[slot], [&](std::int64_t row) { return row == i; }, nothing);
  const BackwardRun run(kernel, silent), without(kernel, with_silent_rows(kernel, silent, all_but(queries_of(c), i)));
  return each_gradient(run, {Gradient::k, Gradient::v},
                       [&](Gradient of) { return gradients_agree(of, {without.of(of), run.of(of)}, Match::bound); });
}

// Query i once more: dK and dV are what they are with 2 g_i, and both have dq_i.
Verdict query_duplication(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), i = argument(c, "i", M);
  Indices rows = all_of(M);
  rows.push_back(i);
  Case doubled = c;
  doubled[Slot::d_out] =
      with_rows_as(c[Slot::d_out], [&](std::int64_t row) { return row == i; }, [](double g) { return sum_of(g, g); });
  const Indices keys = all_of(keys_of(c));
  const BackwardRun twice(kernel, with_keys_alone(kernel, with_silent_rows(kernel, c, rows), keys)),
      once(kernel, doubled), run(kernel, c);
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of != Gradient::q) return gradients_agree(of, {twice.of(of).queries(keys), once.of(of)}, Match::bound);
    return gradients_agree(of, {twice.of(of).queries(all_of(M + 1)), run.of(of).queries(rows)},
                           gradient_bits_if(kernel, {Claim::batch_invariant}));
  });
}

// Each key r times: dQ is the same, and each copy has 1/r of dk_j and dv_j.
Verdict key_duplication(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), r = 2 + argument(c, "r", 2);
  Indices copies;
  for (std::int64_t e = 0; e < r * N; ++e) copies.push_back(e % N);
  const BackwardRun run(kernel, c), more(kernel, with_keys(c, copies));
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of == Gradient::q) return gradients_agree(of, {more.of(of), run.of(of)}, Match::bound);
    return gradients_agree(of, {Numbers(more.of(of)).scaled(count_of(r)), Numbers(run.of(of).queries(copies))});
  });
}

// Queries and keys in another order: so are their gradients.
Verdict permutation_equivariance(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", queries_of(c));
  const bool keys_too = argument(c, "keys", 2) == 1;
  const Indices sigma = keys_too ? permutation_argument(c, "sigma", keys_of(c)) : all_of(keys_of(c));
  const BackwardRun run(kernel, c), permuted(kernel, with_queries(with_keys(c, sigma), pi));
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    const bool of_q = of == Gradient::q;
    return gradients_agree(of, {permuted.of(of), run.of(of).queries(of_q ? pi : sigma)},
                           of_q && !keys_too ? gradient_bits_if(kernel, {Claim::batch_invariant}) : Match::bound);
  });
}

// A key that no row sees: no other gradient depends on k_s and v_s, also not where these are NaN.
Verdict dead_inputs(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), s = argument(c, "s", N);
  const Case before = hide_and_spare(c, -1, s, (s + 1) % N);
  const Match match = match_of_dead_gradients(kernel);
  const bool poison = match == Match::bits && argument(c, "poison", 2) == 1;
  Case after = before;
  for (const Slot slot : {Slot::k, Slot::v})
    after[slot] = with_rows_as(c[slot], [&](std::int64_t j) { return j == s; }, poison ? nan_of : another);
  if (poison) after.provenance.non_finite = "yes";
  const BackwardRun run(kernel, before), changed(kernel, after);
  const Indices others = all_but(N, s);
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of == Gradient::q) return gradients_agree(of, {changed.of(of), run.of(of)}, match);
    return gradients_agree(of, {changed.of(of).queries(others), run.of(of).queries(others)}, match);
  });
}

// Keys from t on and the rows that see none of them: dq_i does not depend on these keys, nor their dk_j and dv_j on
// those rows.
Verdict causal_no_leak(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c);
  const Indices last = last_visible(c);
  const std::int64_t least = std::max<std::int64_t>(1, *std::ranges::min_element(last) + 1);
  if (least >= N) return excused("every row sees the last key");
  const std::int64_t t = least + argument(c, "t", N - least);
  const auto is_early = [&](std::int64_t row) { return last[static_cast<std::size_t>(row)] < t; };
  Indices early = all_of(queries_of(c)), late = all_of(N);
  std::erase_if(early, [&](std::int64_t row) { return !is_early(row); });
  late.erase(late.begin(), late.begin() + t);
  Case other_keys = c, other_rows = c;
  for (const Slot slot : {Slot::k, Slot::v})
    other_keys[slot] = with_rows_as(c[slot], [&](std::int64_t j) { return j >= t; }, another);
  for (const Slot slot : of_queries) other_rows[slot] = with_rows_as(c[slot], is_early, another);
  const BackwardRun run(kernel, c), keys(kernel, other_keys), rows(kernel, other_rows);
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of != Gradient::q)
      return gradients_agree(of, {rows.of(of).queries(late), run.of(of).queries(late)}, match_of_unseen_rows(kernel));
    return gradients_agree(of, {keys.of(of).queries(early), run.of(of).queries(early)},
                           match_of_dead_gradients(kernel));
  });
}

// Hidden keys appended, and where the manifest says what becomes of them rows without a key: nothing changes, and the
// new keys' gradients are 0.
Verdict tail_padding(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  const std::int64_t counts[] = {1, 2, 7, 16, 33};
  const std::int64_t wanted = N + counts[argument(c, "more", 5)];
  const std::int64_t keys = keys_within(kernel).from(wanted).value_or(wanted);
  const bool declared = kernel.manifest().backward_terms.masked_row != MaskedGradient::undeclared;
  const bool rows_too = declared && argument(c, "rows", 2) == 1;
  const std::int64_t rows = rows_too ? M + counts[argument(c, "more-rows", 5)] : M;
  const Case before = with_some_mask(c);
  Case after = with_queries(with_keys(before, cycled(N, keys)), cycled(M, rows));
  after[Slot::v] = with_rows_as(after.v(), [&](std::int64_t j) { return j >= N; }, another);
  for (std::int64_t j = N; j < keys; ++j) after = hide(std::move(after), -1, j);
  for (std::int64_t i = M; i < rows; ++i)
    for (std::int64_t j = 0; j < N; ++j) after = hide(std::move(after), i, j);
  const BackwardRun run(kernel, before), padded(kernel, after);
  const Match match = gradient_bits_if(kernel, {Claim::padding_invariant});
  Zeros zeros;
  Indices added = all_of(keys);
  added.erase(added.begin(), added.begin() + N);
  for (const Gradient of : {Gradient::k, Gradient::v})
    if (run.has(of)) zeros.look_at(padded.of(of).queries(added), name_of(of));
  return worse_of({each_gradient(run, {Gradient::q, Gradient::k, Gradient::v},
                                 [&](Gradient of) {
                                   const bool of_q = of == Gradient::q;
                                   const Indices kept = all_of(of_q ? M : N);
                                   return gradients_agree(of, {padded.of(of).queries(kept), run.of(of)},
                                                          rows_too ? Match::bound : match);
                                 }),
                   zeros.verdict()});
}

// dK and dV of a key-value head are the sum of those of its query heads, where each has a copy of its own; dQ is the
// same.
Verdict grouped_query(Kernel& kernel, const Case& c) {
  const std::int64_t heads = heads_of(c), kv_heads = c.k().shape()[1], group = heads / kv_heads;
  const BackwardRun run(kernel, c), repeated(kernel, with_heads(c, all_of(heads)));
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of == Gradient::q) return gradients_agree(of, {repeated.of(of), run.of(of)}, Match::bound);
    Numbers sum;
    for (std::int64_t g = 0; g < group; ++g) {
      Indices each;
      for (std::int64_t kv = 0; kv < kv_heads; ++kv) each.push_back(kv * group + g);
      const Numbers part(repeated.of(of).heads(each));
      sum = g == 0 ? part : sum.plus(part);
    }
    return gradients_agree(of, {Numbers(run.of(of)), sum});
  });
}

// A batch entry and a key-value head with its query heads, alone.
Verdict batch(Kernel& kernel, const Case& c) {
  const std::int64_t b = argument(c, "b", batch_of(c)), kv_heads = c.k().shape()[1], group = heads_of(c) / kv_heads;
  const std::int64_t kv = argument(c, "h", kv_heads);
  Selection s = everything(c);
  s.batch = {b}, s.kv_heads = {kv};
  s.heads.clear();
  for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) s.heads.push_back(h);
  const BackwardRun run(kernel, c), alone(kernel, select(c, s));
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    const Result part = run.of(of).batch({b}).heads(of == Gradient::q ? s.heads : Indices{kv});
    return gradients_agree(of, {alone.of(of), part}, gradient_bits_if(kernel, {Claim::batch_invariant}));
  });
}

/// A causal form on top of the mask, in two of three cases, or the triangle as the mask.
void causal_somehow(Recipe& r) {
  r.queries = std::max(r.queries, 2), r.keys = std::max(r.keys, 2);
  r.causal = r.seed % 2 == 0 ? Causal::top_left : Causal::bottom_right;
  if (r.seed / 2 % 3 == 0) r.mask = MaskKind::causal, r.causal = Causal::none;
}
/// The triangle as the mask stays alone: sequences would have it in the wrong places.
Case causal_with_gradients(Draw& draw) {
  bool as_mask = false;
  DrawnAttention drawn =
      draw.attention().where(causal_somehow).where([&](const Recipe& r) { as_mask = r.causal == Causal::none; });
  return as_mask ? drawn.with_gradients() : drawn.with_later_arguments().with_gradients();
}
void of_groups(Recipe& r) {
  if (r.kv_heads < r.heads && r.heads % r.kv_heads == 0) return;
  r.kv_heads = 1 + static_cast<std::int32_t>(r.seed % 2), r.heads = 2 * r.kv_heads;
}
void of_entries_and_heads(Recipe& r) {
  r.batch = std::max(r.batch, 2);
  if (r.kv_heads < 2 && r.seed % 2 == 0) r.heads = 4, r.kv_heads = 2;
}

constexpr auto two_rows =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           defining(hypotheses::two_queries, "one query is changed and another one looked at")});
constexpr auto parts =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           needed(hypotheses::no_causal_form, "the form counts the rows, and some are gone"),
                           defining(hypotheses::two_queries, "there are two parts")});
constexpr auto rows_repeated =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           needed(hypotheses::no_causal_form, "the form counts the rows, and there is one more"),
                           defining(hypotheses::a_query_and_a_key, "a query is repeated")});
constexpr auto keys_repeated =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           needed(hypotheses::no_causal_form, "the form counts keys, and there are others")});
constexpr auto rearranged = std::to_array<Stated>(
    {defining(hypotheses::gradients, "it is about them"),
     needed(hypotheses::no_causal_form, "the form counts rows and keys, and they change their places")});
constexpr auto a_dead_key =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           defining(hypotheses::no_causal_form, "the mask is what hides the key"),
                           defining(hypotheses::two_keys, "one key is hidden and another one looked at"),
                           defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")});
constexpr auto later_keys =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           defining(hypotheses::causal_mask, "rows that see every key leave nothing to look at"),
                           defining(hypotheses::two_keys, "one key is looked at and another one changed"),
                           defining(hypotheses::a_query_and_a_key, "a row is looked at")});
constexpr auto padded =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           defining(hypotheses::no_causal_form, "the mask is what hides the tail"),
                           defining(hypotheses::a_query_and_a_key, "there is something to append to"),
                           defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")});
constexpr auto grouped = std::to_array<Stated>(
    {defining(hypotheses::gradients, "it is about them"),
     defining(hypotheses::shared_key_heads, "with a key-value head for every head both sides are one problem")});

const Property family[] = {
    about_gradients({.name = "backward.query-locality",
                     .statement = "dq_i does not depend on q_j, g_j and γ_j, j ≠ i",
                     .floating_point = "bitwise if batch-invariant; NaN in q_j, g_j and γ_j must not reach dq_i",
                     .hypotheses = two_rows,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().at_least(2, 0).with_later_arguments().with_gradients();
                     },
                     .check = query_locality}),
    about_gradients(
        {.name = "backward.query-additivity",
         .statement = "dK and dV of all queries are the sum of those of two parts of them, and dQ is that of its part",
         .floating_point = "bound; dQ bitwise if batch-invariant",
         .hypotheses = parts,
         .given = [](Draw& draw) -> Case {
           return draw.attention().masked().at_least(2, 0).with_later_arguments().with_gradients();
         },
         .check = query_additivity},
        fewer_rows),
    about_gradients({.name = "backward.zero-row-deletes",
                     .statement = "g_i = 0, γ_i = 0: without query i dK and dV are the same",
                     .floating_point = "bound",
                     .hypotheses = parts,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().masked().at_least(2, 0).with_later_arguments().with_gradients();
                     },
                     .check = zero_row_deletes},
                    fewer_rows),
    about_gradients({.name = "backward.query-duplication",
                     .statement = "query i once more: dK and dV are those of 2g_i, dq_i is the same for both",
                     .floating_point = "bound; dQ bitwise if batch-invariant",
                     .hypotheses = rows_repeated,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().masked().at_least(1, 1).with_later_arguments().with_gradients();
                     },
                     .check = query_duplication},
                    "left_pad sink softcap dropout"),
    about_gradients({.name = "backward.key-duplication",
                     .statement = "each key r times: dQ is the same, and each copy has 1/r of dk_j and dv_j",
                     .floating_point = "bound",
                     .hypotheses = keys_repeated,
                     .given = masked_with_gradients,
                     .check = key_duplication},
                    "softcap dropout"),
    about_gradients({.name = "backward.permutation-equivariance",
                     .statement = "queries and keys permuted: their gradients are permuted alike",
                     .floating_point = "bound; dQ bitwise if batch-invariant and only queries are permuted",
                     .hypotheses = rearranged,
                     .given = masked_with_gradients,
                     .check = permutation_equivariance},
                    other_rows),
    about_gradients({.name = "backward.dead-inputs",
                     .statement = "a key that no row sees: no other gradient depends on k_s and v_s",
                     .floating_point =
                         "bitwise if ignores-dead-values, NaN in k_s and v_s included; equal values (+0 equals −0) if "
                         "only deterministic, else bound",
                     .hypotheses = a_dead_key,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().masked().at_least(1, 2).with_later_arguments().with_gradients();
                     },
                     .check = dead_inputs}),
    about_gradients({.name = "backward.causal-no-leak",
                     .statement = "dq_i does not depend on later keys, nor dk_j and dv_j on rows that do not see key j",
                     .floating_point = "dQ bitwise if ignores-dead-values, equal values (+0 equals −0) if only "
                                       "deterministic; dK, dV equal values if deterministic and batch-invariant; else "
                                       "bound",
                     .hypotheses = later_keys,
                     .given = causal_with_gradients,
                     .check = causal_no_leak},
                    of_entries),
    about_gradients(
        {.name = "backward.tail-padding",
         .statement =
             "hidden keys and rows without a key appended: nothing changes, and dk_j = dv_j = 0 for the new keys",
         .floating_point =
             "bitwise if padding-invariant and no row is appended, else bound; the new keys' zero bitwise",
         .hypotheses = padded,
         .given = [](Draw& draw) -> Case {
           return draw.attention().masked().at_least(1, 1).with_later_arguments().with_gradients();
         },
         .check = tail_padding},
        other_rows),
    about_gradients({.name = "backward.grouped-query",
                     .statement =
                         "dK and dV of a key-value head are the sum over its query heads of those of copies of "
                         "it, and dQ is the same",
                     .floating_point = "bound",
                     .hypotheses = grouped,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().where(of_groups).with_later_arguments().with_gradients();
                     },
                     .check = grouped_query}),
    about_gradients({.name = "backward.batch",
                     .statement = "a batch entry and a key-value head with its query heads have alone the gradients "
                                  "that they have among others",
                     .floating_point = "bitwise if batch-invariant",
                     .hypotheses = of_gradients,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().where(of_entries_and_heads).with_later_arguments().with_gradients();
                     },
                     .check = batch}),
};

}  // namespace

std::span<const Property> backward_pair_properties() {
  return family;
}

}  // namespace attest
