// self: SAttn and MSAttn (000), one X for queries, keys and values. One head, W_o = I.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/unarranged.h"
#include "properties/catalogue/property.h"
#include "properties/families/multihead/multihead_laws.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/core_agreement.h"
#include "properties/language/refute.h"

namespace attest {
namespace {

// 000: SAttn(X) = Attn(X,X,X), MSAttn(X) = MAttn(X,X,X). 002: Z = X.
Verdict is_attention(Kernel& kernel, const Case& c) {
  return worse_of({same_in_core(kernel, &CoreFunctions::weighted_self, c, &CoreFunctions::weighted, c),
                   is_cross_attention_law(kernel, c)});
}

// The first row sees its own token alone; weights are uniform elsewhere; x_1 is 2^n in its first entry, all else is 0.
// Then o_1 is x_1 before and after tokens 1 and 2 change places: 2^n and 0; it would have to become o_2.
Verdict mask_breaks_equivariance(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c);
  Case masked = c;
  for (Tensor& tensor : masked.tensors)
    if (tensor.present()) tensor = Tensor(c.dtype(), tensor.shape());
  masked[Slot::w_v].set(0, 1);
  if (masked[Slot::w_o].present()) masked[Slot::w_o] = c[Slot::w_o];
  const bool boolean = c.mask().present() && c.mask().dtype() == DType::boolean;
  masked[Slot::mask] = mapped(Tensor(boolean ? DType::boolean : c.dtype(), {1, 1, N, N}), [&](std::int64_t e, double) {
    const bool hides = e >= 1 && e < N;
    if (boolean) return hides ? 0.0 : 1.0;
    return hides ? -std::numeric_limits<double>::infinity() : 0.0;
  });
  Indices exchanged = all_of(N);
  std::swap(exchanged[0], exchanged[1]);
  return refuted(/*budget=*/4, [&](int n) -> Attempt {
    const double value = std::ldexp(1.0, n);
    const std::int64_t columns = c.q().shape()[2];
    const auto tokens = [&](std::int64_t at) {
      return with_row(masked.q(), at, [&](std::int64_t e, double) { return e % columns == 0 ? value : 0.0; });
    };
    return {run(kernel, with_tokens(masked, tokens(1))), run(kernel, with_tokens(masked, tokens(0))).queries(exchanged),
            fmt::format("{} tokens, W_q = W_k = 0, row 0 sees key 0 only, x_0 = {} and 0 elsewhere", N, value)};
  });
}

// 003: the weights depend on the input. All scores read the first entry of the tokens and all values the second, so
// that X changes the weights alone: the last token has 2^n in its first entry, or 0, and 1 in its second.
Verdict fixed_weights(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), columns = c.q().shape()[2];
  Case reading = without_mask(c);
  for (Tensor& tensor : reading.tensors)
    if (tensor.present()) tensor = Tensor(c.dtype(), tensor.shape());
  for (const Slot w : {Slot::w_q, Slot::w_k}) reading[w].set(0, 1);
  reading[Slot::w_v].set(c[Slot::w_v].shape()[1], 1);
  if (reading[Slot::w_o].present()) reading[Slot::w_o] = c[Slot::w_o];
  return refuted(/*budget=*/4, [&](int n) -> Attempt {
    const double value = std::ldexp(1.0, n);
    const auto tokens = [&](double first) {
      return with_row(reading.q(), N - 1, [&](std::int64_t e, double) {
        return e % columns == 0 ? first : e % columns == 1 ? 1.0 : 0.0;
      });
    };
    return {run(kernel, with_tokens(reading, tokens(value))), run(kernel, with_tokens(reading, tokens(0))),
            fmt::format("{} tokens, scores read their first entry and values the second; x_{} has {} in its first, or "
                        "0, and 1 in its second",
                        N, N - 1, value)};
  });
}

constexpr std::array tokens{defining(hypotheses::self_attention, "it is one X whose rows are spoken of")};
constexpr std::array two_tokens{defining(hypotheses::two_keys, "a token is hidden and another one stays")};

constexpr auto of_itself =
    joined(one_plain_head, std::array{needed(hypotheses::self_attention, "K and V other than X give other outputs",
                                             equal_in_core<&CoreFunctions::weighted_self, &CoreFunctions::weighted>),
                                      defining(hypotheses::no_causal_form,
                                               "a kernel is asked for attention in general with one more query, which "
                                               "the form counts")});
constexpr auto rearranged = joined(
    one_plain_head, tokens,
    std::array{needed(hypotheses::unmasked, "a causal form counts rows and keys, and they change their places")});
constexpr auto breaking = joined(defined_for_one_head, tokens,
                                 std::array{defining(hypotheses::no_causal_form, "the counterexample has a mask alone"),
                                            defining(hypotheses::two_keys, "a counterexample needs two")});
constexpr auto reading_tokens =
    joined(defined_for_one_head, tokens,
           std::array{defining(hypotheses::two_keys, "a row of one token has one weight, 1"),
                      defining(hypotheses::two_token_columns, "scores read one entry and values another"),
                      defining(hypotheses::inverse_root_scale, "the counterexample has this scale")});
constexpr auto hidden_tokens =
    joined(one_plain_head, tokens, two_tokens,
           std::array{needed(hypotheses::hidden_key, "a key that the row sees has a weight", row_without_key),
                      needed(hypotheses::another_row, "x_i enters o_i through q_i", own_token)});
constexpr auto deleted_tokens =
    joined(one_plain_head, tokens, two_tokens,
           std::array{needed(hypotheses::hidden_from_others, "a row that sees the token gives it a weight",
                             tokens_without_token)});

const Property family[] = {
    {.name = "self.is-attention",
     .statement = "SAttn(X) = Attn(X,X,X); MSAttn(X) = MAttn(X,X,X); 002: Z = X",
     .source = "000 002",
     .needs = "multihead",
     .floating_point = "bitwise in the core",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = of_itself,
     .given = [](Draw& draw) -> Case { return one_head(self_attention(small_multihead(draw).masked(), 0)); },
     .check = is_attention},
    {.name = "self.permutation-equivariance",
     .statement = "without biases SAttn(R_πX) = R_π SAttn(X); holds with biases too **+**",
     .source = "000 003",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = rearranged,
     .given = [](Draw& draw) -> Case { return one_head(self_attention(small_multihead(draw).unmasked(), 0)); },
     .check = self_permutation_law},
    {.name = "self.mask-breaks-equivariance",
     .statement = "masked self-attention is permutation equivariant for every B",
     .source = "000 (notes)",
     .needs = "multihead",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .hypotheses = breaking,
     .given = [](Draw& draw) -> Case { return one_head(self_attention(small_multihead(draw).masked(), 2)); },
     .check = mask_breaks_equivariance},
    {.name = "self.fixed-weights",
     .statement = "the weights α of SAttn do not depend on X",
     .source = "003",
     .needs = "multihead",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .hypotheses = reading_tokens,
     .given = [](Draw& draw) -> Case {
       return one_head(self_attention(small_multihead(draw), 2).where([](Recipe& r) {
         // Where W_o is stated, tokens are as wide as a head.
         r.dk = std::max(r.dk, 2);
         r.c_q = std::max(r.c_q, 2);
         r.c_k = r.c_v = r.c_q;
         r.scale = ScaleKind::inverse_root;
       }));
     },
     .check = fixed_weights},
    {.name = "self.suppression",
     .statement = "b_is = −∞, s ≠ i ⇒ o_i independent of x_s, and the formula",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .hypotheses = hidden_tokens,
     .given = [](Draw& draw) -> Case { return one_head(self_attention(small_multihead(draw).masked(), 2)); },
     .check = self_suppression_law},
    {.name = "self.input-deletion",
     .statement = "b_is = −∞ for all i ≠ s ⇒ MSAttn_B(X)^(s) = MSAttn_{B^<s>}(X^(s))",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound; bitwise for the last s if batch- and padding-invariant",
     .operation = Operation::multihead,
     .hypotheses = deleted_tokens,
     .given = [](Draw& draw) -> Case { return one_head(self_attention(small_multihead(draw).masked(), 2)); },
     .check = input_deletion_law},
};

}  // namespace

std::span<const Property> self_properties() {
  return family;
}

}  // namespace attest
