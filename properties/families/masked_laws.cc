// masked: rearrangements with a mask, shifts of it, and rows that see nothing.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/shifted.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/row_policy.h"
#include "properties/generators/draw.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/refute.h"

namespace attest {
namespace {

// Refuted: MAttn_B(R_pi Q, K, V) = R_pi MAttn_B(Q, K, V) for every B. Two rows and keys, the first row kept from the
// second key (or held back by t); first Q = K = 0, then small whole numbers. V = (0, 1).
Verdict breaks_equivariance(Kernel& kernel, const Case& c) {
  const Lengths few = fewest(kernel, {.queries = 2, .keys = 2});
  const Case small = with_batch(with_keys(with_queries(c, cycled(2, few.queries)), cycled(2, few.keys)), {0});
  Indices turned;  // each pair of rows exchanged
  for (std::int64_t i = 0; i < few.queries; ++i) turned.push_back(i % 2 == 0 ? i + 1 : i - 1);
  const bool boolean = c.mask().dtype() == DType::boolean;
  return refuted(/*budget=*/24, [&](int n) {
    const double entries[] = {-2, -4, -1, 2, 4, -8};
    const double t = entries[n % 6];
    Stream stream(seed_argument(c, "attempt") + static_cast<std::uint64_t>(n));
    const auto whole = [&](std::int64_t, double) { return n < 6 ? 0.0 : static_cast<double>(stream.below(5) - 2); };
    Case tried = small;
    for (const Slot slot : {Slot::q, Slot::k}) tried[slot] = mapped(tried[slot], whole);
    const std::int64_t dv = c.v().shape()[3];
    tried[Slot::v] = mapped(tried.v(), [&](std::int64_t e, double) { return e / dv % 2 == 0 ? 0.0 : 1.0; });
    tried[Slot::mask] = mapped(Tensor(c.mask().dtype(), {1, 1, few.queries, few.keys}), [&](std::int64_t e, double) {
      const bool held_back = e / few.keys % 2 == 0 && e % few.keys % 2 == 1;
      return boolean ? (held_back ? 0.0 : 1.0) : (held_back ? t : 0.0);
    });
    Case exchanged = tried;
    exchanged[Slot::q] = with_queries(tried, turned).q();
    return Attempt{
        run(kernel, exchanged), run(kernel, tried).queries(turned),
        fmt::format("two queries exchanged, Q and K {}, V = (0, 1), B = {}", n < 6 ? "zero" : "whole numbers",
                    boolean ? "((visible, hidden), (visible, visible))" : fmt::format("((0, {}), (0, 0))", t))};
  });
}

// MAttn_{R_pi B R_sigma^T}(R_pi Q, R_sigma K, R_sigma V) = R_pi MAttn_B(Q,K,V).
Verdict equivariance_with_mask(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", queries_of(c)), sigma = permutation_argument(c, "sigma", keys_of(c));
  return agree({run(kernel, with_queries(with_keys(c, sigma), pi)), run(kernel, c).queries(pi)}, Match::bound);
}

// Adding a constant to a row of B changes nothing: sum_l e^{s_il + t} = e^t sum_l e^{s_il}. B is first brought to a
// grid on which B and B + t are exact: multiples of 1/4 up to `most`, 2^p of which the dtype's precision p tells apart.
Verdict row_shift(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const TwoCases row = with_row_shifted(c, argument(c, "i", queries_of(c)));
  return agree({run(kernel, row.after), run(kernel, row.before)}, Match::bound);
}

/// The policy is owed by a row that sees no key inside the domain: where its hidden scores are finite, or the kernel
/// claims that what hidden keys hold does not matter. inf - inf is NaN under every policy.
bool is_judged(Excuse of_a_fully_masked_row) {
  return of_a_fully_masked_row == Excuse::fully_masked;
}

/// Every score equal and every key seen: each row is the mean of V.
Case with_equal_scores(const Case& c) {
  Case equal = without_mask(c);
  const auto zero = [](std::int64_t, double) { return 0.0; };
  // Tokens may be the keys' too; the projection of the queries is nobody else's.
  for (const Slot slot : {Slot::w_q, Slot::b_q})
    if (c[slot].present()) equal[slot] = mapped(c[slot], zero);
  if (c.operation == Operation::attention) equal[Slot::q] = mapped(c.q(), zero);
  return equal;
}

/// What the declared policy makes of row i, which sees no key. Excused outside the domain.
Verdict row_policy(Kernel& kernel, const Case& masked, const Result& o, std::int64_t i) {
  const FullyMaskedRow policy = kernel.manifest().fully_masked_row;
  const Result row = o.queries({i});
  Numbers uniform;
  if (policy == FullyMaskedRow::uniform) {
    // The mean of V is attention with equal scores: its exact value, and what that may cost.
    if (keys_of(masked) == 0) return {};
    const Result mean = run(kernel, with_equal_scores(masked)).queries({i});
    std::vector<double> exact;
    std::vector<long double> allowed;
    for (std::int64_t e = 0; e < mean.elements(); ++e) {
      const AllowedError bound = mean.run().bound(mean.origin(e));
      exact.push_back(bound.value);
      const bool judged = bound.excuse == Excuse::none || bound.excuse == Excuse::vacuous;
      allowed.push_back(judged ? bound.allowed + bound.certificate : infinity);
    }
    uniform = Numbers(mean.shape(), exact).loosened(allowed);
  }
  // 0 W_o + b_o.
  const Tensor& b_o = masked[Slot::b_o];
  const auto bias = [&](std::int64_t e) { return b_o.present() ? b_o[e % b_o.elements()] : 0.0; };
  std::int64_t outside = 0;
  for (std::int64_t e = 0; e < row.elements(); ++e) {
    const auto at = row.origin(e);
    if (!is_judged(o.run().bound(at).excuse)) {
      ++outside;
      continue;
    }
    const double x = o.run().out()[at];
    const bool obeys = policy == FullyMaskedRow::nan    ? std::isnan(x)
                       : policy == FullyMaskedRow::zero ? x == bias(e)
                       : policy == FullyMaskedRow::uniform
                           ? uniform.allowed(e) == infinity || std::fabs(x - uniform.value(e)) <= uniform.allowed(e)
                           : true;
    if (!obeys) {
      Verdict v =
          violated(Violation::bound, fmt::format("element {} of a fully masked row is {}; the manifest declares {}", at,
                                                 printed(x), name_of(policy)));
      v.element = at;
      return v;
    }
  }
  if (outside > 0 && outside == row.elements())
    return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::not_finite))};
  return {};
}

/// lse of row i, which sees no key, by the contract: -inf; under the policy `nan` NaN, too. Nothing where no lse is
/// offered or no policy declared; rows outside the domain are not judged.
Verdict row_lse(const Kernel& kernel, const Result& o, std::int64_t i) {
  const FullyMaskedRow policy = kernel.manifest().fully_masked_row;
  const Tensor& lse = o.run().lse();
  if (!lse.present() || policy == FullyMaskedRow::undeclared) return {};
  const std::int64_t M = lse.shape()[2];
  for (std::int64_t plane = 0; plane < lse.elements() / M; ++plane) {
    const double x = lse[plane * M + i];
    if (x == -infinity || (policy == FullyMaskedRow::nan && std::isnan(x))) continue;
    if (!is_judged(o.run().row_bound(plane * M + i).excuse)) continue;
    return violated(Violation::lse,
                    fmt::format("lse {} of a fully masked row is {}; it must be {} where the manifest "
                                "declares {}",
                                plane * M + i, printed(x), policy == FullyMaskedRow::nan ? "NaN or -inf" : "-inf",
                                name_of(policy)));
  }
  return {};
}

}  // namespace

Verdict obeys_row_policy(Kernel& kernel, const Case& masked, const Result& o, std::int64_t i) {
  Verdict policy = row_policy(kernel, masked, o, i);
  // A log-sum-exp that obeys, or is not there, makes nothing held of a row outside the domain.
  if (const Verdict lse = row_lse(kernel, o, i); lse.outcome == Outcome::violated) policy = worse_of({policy, lse});
  return policy;
}

Verdict rejects(Kernel& kernel, const Case& masked) {
  const Reply reply = kernel.run(masked);
  if (reply.status == CallStatus::rejected) return {};
  if (reply.status != CallStatus::ok) throw_without_output(kernel.manifest(), masked, reply.status, reply.message);
  return violated(Violation::bound, "a fully masked row was answered; the manifest declares error");
}

namespace {

// All of row i masked: the declared policy, for lse too; the other rows are as they were. The causal form at the bottom
// right hides every key from the first M - N rows by itself.
Verdict fully_masked_row(Kernel& kernel, const Case& c) {
  if (queries_of(c) == 0) return {};
  const std::int64_t by_form = c.causal == Causal::bottom_right ? queries_of(c) - keys_of(c) : 0;
  const std::int64_t i = argument(c, "i", by_form > 0 ? by_form : queries_of(c));
  const Case before = by_form > 0 ? c : with_some_mask(c);
  Case masked = before;
  for (std::int64_t j = 0; by_form <= 0 && j < keys_of(c); ++j) masked = hide(std::move(masked), i, j);
  if (kernel.manifest().fully_masked_row == FullyMaskedRow::error) return rejects(kernel, masked);
  const Result o = run_with_lse(kernel, masked);
  Verdict policy = obeys_row_policy(kernel, masked, o, i);
  if (queries_of(c) == 1) {
    if (kernel.manifest().fully_masked_row != FullyMaskedRow::undeclared) return policy;
    return {.outcome = Outcome::excused, .reason = "one row, fully masked, and no policy declared for it"};
  }
  const Verdict others = agree({o.without_query(i), run(kernel, before).without_query(i)},
                               bits_if(kernel, {Claim::batch_invariant}), true);
  return worse_of({policy, others});
}

/// Some mask.
void any_mask(Recipe& r) {
  if (r.mask == MaskKind::none) r.mask = r.seed % 2 == 0 ? MaskKind::random : MaskKind::bias;
}

/// One in eight: the causal form at the bottom right with more queries than keys, whose first rows see nothing.
void some_by_form(Recipe& r) {
  if (r.seed % 8 != 0 || r.keys > 256) return;
  r.causal = Causal::bottom_right;
  r.queries = std::max(r.queries, r.keys + 1 + r.queries % 2);
}

// B stays where it is while rows and keys change their places.
Verdict mask_stays(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", queries_of(c)), sigma = permutation_argument(c, "sigma", keys_of(c));
  Case moved = with_queries(with_keys(c, sigma), pi);
  moved[Slot::mask] = c.mask();
  return agree({run(kernel, moved), run(kernel, c).queries(pi)}, Match::bound);
}

// One entry of a row of B is raised, and the others are not.
Verdict one_entry_raised(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), at = argument(c, "i", queries_of(c)) * N + argument(c, "s", N);
  Case raised = with_additive_mask(c);
  const std::int64_t page = queries_of(c) * N;
  raised[Slot::mask] =
      mapped(raised.mask(), [&](std::int64_t e, double old) { return e % page == at ? old + 1 : old; });
  return agree({run(kernel, raised), run(kernel, c)}, Match::bound);
}

constexpr std::array breaking{defining(hypotheses::mask, "the statement is about one"),
                              defining(hypotheses::no_causal_form, "the counterexample has a mask alone"),
                              defining(hypotheses::two_queries, "a counterexample needs two"),
                              defining(hypotheses::two_keys, "a counterexample needs two")};
constexpr std::array moved_mask{
    needed(hypotheses::no_causal_form, "the form counts rows and keys, and they change their places"),
    needed(hypotheses::moving_mask, "rows and keys meet entries of B that were those of others", mask_stays)};
constexpr std::array shifted{
    defining(hypotheses::infinity_for_a_mask, "-inf is what hides a key in an additive mask"),
    spare(hypotheses::no_causal_form, "the form hides the same keys on both sides"),
    needed(hypotheses::one_shift, "a key whose entry alone is raised gains weight", one_entry_raised)};
constexpr std::array hiding{defining(hypotheses::infinity_to_hide, "-inf is what hides a key in an additive mask")};
constexpr auto hiding_all_keys =
    joined(hiding, std::array{defining(hypotheses::no_bias_kv, "no mask hides the appended key")});

const Property family[] = {
    {.name = "masked.breaks-equivariance",
     .statement = "MAttn_B is permutation equivariant for every B",
     .source = "000 note",
     .needs = "attention",
     .floating_point = "counterexample",
     .wants = wants_a_mask,
     .hypotheses = breaking,
     .given = [](Draw& draw) -> Case { return draw.attention().masked().at_least(2, 2).where(any_mask); },
     .check = breaks_equivariance},
    {.name = "masked.equivariance-with-mask",
     .statement = "MAttn_{R_π B R_σᵀ}(R_πQ,R_σK,R_σV) = R_π MAttn_B(Q,K,V)",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .wants = wants_a_mask,
     .hypotheses = moved_mask,
     .given = [](Draw& draw) -> Case { return draw.attention().masked(); },
     .check = equivariance_with_mask},
    {.name = "masked.row-shift",
     .statement = "adding a constant to a row of B changes nothing",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = shifted,
     .given = [](Draw& draw) -> Case { return draw.attention().masked(); },
     .check = row_shift},
    {.name = "masked.fully-masked-row",
     .statement = "all of row i masked: undefined by the documents; the kernel's declared policy (`nan`, `zero`, "
                  "`uniform`, `error`) is checked, and other rows must be unaffected",
     .source = "+",
     .needs = "attention",
     .floating_point =
         "inside the domain: `nan`, `zero`: bitwise; `uniform`: bound to the mean of V; `error`: rejected",
     .hypotheses = hiding,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).masked().where(some_by_form); },
     .check = fully_masked_row},
    {.name = "masked.multihead-fully-masked-row",
     .statement = "all of row i masked in every head: the policy for the heads' outputs, then W_o and b_o (`nan`: NaN, "
                  "`zero`: b_o, `uniform`: the mean of the projected V); other rows must be unaffected",
     .source = "+",
     .needs = "multihead",
     .floating_point =
         "inside the domain: `nan`, `zero`: bitwise; `uniform`: bound to the mean of V; `error`: rejected",
     .operation = Operation::multihead,
     .hypotheses = hiding_all_keys,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).masked().where(some_by_form).where([](Recipe& r) {
         r.key_value_bias = false;
         if (r.causal == Causal::bottom_right) r.self_attention = false;
       });
     },
     .check = fully_masked_row},
};

}  // namespace

std::span<const Property> masked_law_properties() {
  return family;
}

}  // namespace attest
