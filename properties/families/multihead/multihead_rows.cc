// multihead: what happens to queries, keys and values of MHAttn, MMHAttn, MHSAttn and MMHSAttn (000).
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/arrangement/unarranged.h"
#include "properties/catalogue/property.h"
#include "properties/families/multihead/multihead_laws.h"
#include "properties/families/multihead/multihead_oracle.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/refute.h"

namespace attest {
namespace {

/// N = 0: the core refuses it by name; a kernel may too, or follows its policy for rows without a key, whose O is then
/// NaN or 0.
Verdict without_keys(Kernel& kernel, const Case& c) {
  const Reply reply = kernel.run(c, c.dtype(), /*want_lse=*/false);
  if (is_core(kernel)) {
    if (reply.status == CallStatus::rejected && reply.message.find("N = 0") != std::string::npos) return {};
    return violated(Violation::failed,
                    fmt::format("{}: \"{}\"; the core refuses N = 0 by name", name_of(reply.status), reply.message));
  }
  if (reply.status == CallStatus::rejected) return {};
  if (reply.status != CallStatus::ok) throw_without_output(kernel.manifest(), c, reply.status, reply.message);
  const FullyMaskedRow policy = kernel.manifest().fully_masked_row;
  const Tensor& b_o = c[Slot::b_o];
  for (std::int64_t e = 0; e < reply.out.elements(); ++e) {
    const double found = reply.out[e], bias = b_o.present() ? b_o[e % b_o.elements()] : 0.0;
    const bool follows =
        policy == FullyMaskedRow::nan ? std::isnan(found) : policy != FullyMaskedRow::zero || found == bias;
    if (!follows) {
      return violated(Violation::bound,
                      fmt::format("element {} is {} with N = 0; the manifest's fully_masked_row is {}", e,
                                  printed(found), name_of(policy)));
    }
  }
  return {};
}

// 000: one function for every M and N. The case as it is, more or fewer queries, none, and every key several times
// (which changes no weighted mean) are answered by the same function, which is the definition.
Verdict any_length(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  if (M == 0) {
    static_cast<void>(run(kernel, c));  // an answer of the right shape, or a verdict
    return {};
  }
  if (N == 0) return without_keys(kernel, c);
  const Indices keys = cycled(N, N * (1 + argument(c, "repeats", 3)));
  // One X stays one: its tokens are queries as often.
  const Indices rows = is_self_attention(c) ? keys : cycled(M, argument(c, "M", 9));
  const Case longer = with_queries(with_keys(c, keys), rows);
  Verdict same = agree({run(kernel, c).queries(rows), run(kernel, longer)}, Match::bound);
  if (in_a_proof()) return same;  // the oracle is about rounding
  return worse_of({worse_of({std::move(same), judged_multihead(kernel, c)}), judged_multihead(kernel, longer)});
}

// -inf at (i, s) in the first head alone: the others still see v_s. Weights are uniform here; v_s is 2^n or 0.
Verdict partial_mask_leaks(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  const std::int64_t i = argument(c, "i", M), s = argument(c, "s", N);
  Case hidden = first_entry_of_values(c);
  const bool boolean = c.mask().present() && c.mask().dtype() == DType::boolean, self = is_self_attention(c);
  hidden[Slot::mask] =
      mapped(Tensor(boolean ? DType::boolean : c.dtype(), {1, c.heads, M, N}), [&](std::int64_t e, double) {
        if (boolean) return e == i * N + s ? 0.0 : 1.0;
        return e == i * N + s ? -std::numeric_limits<double>::infinity() : 0.0;
      });
  return refuted(/*budget=*/4, [&](int n) -> Attempt {
    const double value = std::ldexp(1.0, n);
    Case other = hidden;
    const std::int64_t columns = c.v().shape()[2];
    other[Slot::v] = with_row(hidden.v(), s, [&](std::int64_t e, double) { return e % columns == 0 ? value : 0.0; });
    if (self) other[Slot::q] = other[Slot::k] = other.v();  // W_q = W_k = 0: it enters as a value alone
    return {run(kernel, hidden).queries({i}), run(kernel, other).queries({i}),
            fmt::format("{} heads, M = {}, N = {}, -inf at ({}, {}) in head 0 only, q = 0, v_s = 0 or {}", c.heads, M,
                        N, i, s, value)};
  });
}

constexpr std::array deleted_rows{needed(hypotheses::unmasked, "a causal form counts the rows, and a row is gone"),
                                  defining(hypotheses::two_queries, "one row is deleted and another one looked at")};
constexpr std::array deleted_masked_rows{
    needed(hypotheses::no_causal_form, "the form counts the rows, and a row is gone"),
    defining(hypotheses::two_queries, "one row is deleted and another one looked at")};
constexpr std::array rearranged{
    needed(hypotheses::unmasked, "a causal form counts rows and keys, and they change their places")};
constexpr std::array rearranged_tokens{
    defining(hypotheses::self_attention, "it is one X whose rows are rearranged"),
    needed(hypotheses::unmasked, "a causal form counts rows and keys, and they change their places")};
constexpr std::array any_lengths{
    needed(hypotheses::unmasked, "a causal form counts rows and keys, and there are more of them"),
    needed(hypotheses::no_bias_kv, "the appended key is not repeated with the others, and loses weight to them")};
constexpr std::array hidden_keys{
    defining(hypotheses::two_keys, "a key is hidden and another one stays"),
    needed(hypotheses::hidden_key, "a key that the row sees has a weight", row_without_key),
    needed(hypotheses::hidden_in_every_head, "the other heads see the key", row_hidden_in_one_head)};
constexpr std::array deleted_keys{
    defining(hypotheses::two_keys, "a key is hidden and another one stays"),
    needed(hypotheses::hidden_from_all, "a row that sees the key gives it a weight", rows_without_key),
    needed(hypotheses::hidden_in_every_head, "the other heads see the key", rows_hidden_in_one_head)};
constexpr std::array hidden_tokens{
    defining(hypotheses::self_attention, "it is one X whose rows are spoken of"),
    defining(hypotheses::two_keys, "a token is hidden and another one stays"),
    needed(hypotheses::hidden_key, "a key that the row sees has a weight", row_without_key),
    needed(hypotheses::hidden_in_every_head, "the other heads see the key", row_hidden_in_one_head),
    needed(hypotheses::another_row, "x_i enters o_i through q_i", own_token)};
constexpr std::array deleted_tokens{
    defining(hypotheses::self_attention, "it is one X whose rows are spoken of"),
    defining(hypotheses::two_keys, "a token is hidden and another one stays"),
    needed(hypotheses::hidden_from_others, "a row that sees the token gives it a weight", tokens_without_token)};
constexpr std::array leaking{
    defining(hypotheses::no_causal_form, "the counterexample has a mask alone"),
    defining(hypotheses::two_heads, "some but not all of one head is none"),
    defining(hypotheses::two_keys, "the weight of a single key is 1, and then there is nothing to refute"),
    defining(hypotheses::a_query, "a counterexample needs one")};

const Property family[] = {
    {.name = "multihead.query-deletion",
     .statement = "with per-head B_i^(s)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .hypotheses = deleted_rows,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).unmasked().at_least(2, 0); },
     .check = query_deletion_law},
    {.name = "multihead.masked-query-deletion",
     .statement = "with per-head B_i^(s)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .hypotheses = deleted_masked_rows,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).masked().at_least(2, 0); },
     .check = query_deletion_law},
    {.name = "multihead.permutation-equivariance",
     .statement = "without biases; with biases too **+**",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = rearranged,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).unmasked(); },
     .check = permutation_law},
    {.name = "multihead.self-permutation-equivariance",
     .statement = "without biases; with biases too **+**",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .hypotheses = rearranged_tokens,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).unmasked(), 0); },
     .check = self_permutation_law},
    {.name = "multihead.any-length",
     .statement = "one function for every M and N",
     .source = "000",
     .needs = "multihead",
     .floating_point = "required",
     .operation = Operation::multihead,
     .hypotheses = any_lengths,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).unmasked().where([](Recipe& r) { r.key_value_bias = false; });
     },
     .check = any_length},
    {.name = "multihead.suppression",
     .statement = "−∞ at (i,s) in every head ⇒ o_i independent of k_s,v_s (of x_s, **s ≠ i**: x_i still enters through "
                  "q_i)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .hypotheses = hidden_keys,
     .given = [](Draw& draw) -> Case { return two_keys(small_multihead(draw).masked()); },
     .check = suppression_law},
    {.name = "multihead.self-suppression",
     .statement = "−∞ at (i,s) in every head ⇒ o_i independent of k_s,v_s (of x_s, **s ≠ i**: x_i still enters through "
                  "q_i)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .hypotheses = hidden_tokens,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).masked(), 2); },
     .check = self_suppression_law},
    {.name = "multihead.partial-mask-leaks",
     .statement = "−∞ at (i,s) in some but not all heads suffices",
     .source = "000 (\"when they agree\")",
     .needs = "multihead",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .hypotheses = leaking,
     .given = [](Draw& draw) -> Case { return small_multihead(draw, /*least_heads=*/2).masked().at_least(2, 2); },
     .check = partial_mask_leaks},
    {.name = "multihead.key-value-deletion",
     .statement = "every head's column s is −∞; in the self form at all rows i ≠ s: MMHSAttn(X)^(s) = "
                  "MMHSAttn_{B^<s>}(X^(s))",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .hypotheses = deleted_keys,
     .given = [](Draw& draw) -> Case { return two_keys(small_multihead(draw).masked()); },
     .check = key_value_deletion_law},
    {.name = "multihead.self-input-deletion",
     .statement = "every head's column s is −∞; in the self form at all rows i ≠ s: MMHSAttn(X)^(s) = "
                  "MMHSAttn_{B^<s>}(X^(s))",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .hypotheses = deleted_tokens,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).masked(), 2); },
     .check = input_deletion_law},
};

}  // namespace

std::span<const Property> multihead_row_properties() {
  return family;
}

}  // namespace attest
