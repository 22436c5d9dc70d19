// multihead: what happens to queries, keys and values of MHAttn, MMHAttn, MHSAttn and MMHSAttn (000).
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "agree.h"
#include "answer.h"
#include "arguments.h"
#include "multihead_cases.h"
#include "multihead_laws.h"
#include "property.h"
#include "refute.h"

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
      return violated(
          Violation::bound,
          fmt::format("element {} is {} with N = 0; the manifest's fully_masked_row is {}", e, found, name_of(policy)));
    }
  }
  return {};
}

// 000: one function for every M and N. More or fewer queries, none, and every key several times (which changes no
// weighted mean) are answered by the same function.
Verdict any_length(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  if (M == 0) {
    static_cast<void>(run(kernel, c));  // an answer of the right shape, or a verdict
    return {};
  }
  if (N == 0) return without_keys(kernel, c);
  const Indices rows = cycled(M, argument(c, "M", 9)), keys = cycled(N, N * (1 + argument(c, "repeats", 3)));
  return agree({run(kernel, c).queries(rows), run(kernel, with_queries(with_keys(c, keys), rows))}, Match::bound);
}

/// The case's shapes with every number 0 but those that make each head pass on the first entry of v's tokens.
Case first_entry_of_values(const Case& c) {
  Case zeros = c;
  for (Tensor& tensor : zeros.tensors)
    if (tensor.present()) tensor = Tensor(c.dtype(), tensor.shape());
  const Extents e = extents_of(c);
  for (std::int64_t h = 0; h < e.heads; ++h) {
    zeros[Slot::w_v].set(h * e.dv, 1);
    if (zeros[Slot::w_o].present()) zeros[Slot::w_o].set(h * e.dv * e.d_o, 1);
  }
  return zeros;
}

// -inf at (i, s) in the first head alone: the others still see v_s. Weights are uniform here; v_s is 2^n or 0.
Verdict partial_mask_leaks(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c);
  const std::int64_t i = argument(c, "i", M), s = argument(c, "s", N);
  Case hidden = first_entry_of_values(c);
  hidden[Slot::mask] = Tensor(c.dtype(), {1, c.heads, M, N});
  hidden[Slot::mask].set(i * N + s, -std::numeric_limits<double>::infinity());
  return refuted(/*budget=*/4, [&](int n) -> Attempt {
    const double value = std::ldexp(1.0, n);
    Case other = hidden;
    const std::int64_t columns = c.v().shape()[2];
    other[Slot::v] = with_row(hidden.v(), s, [&](std::int64_t e, double) { return e % columns == 0 ? value : 0.0; });
    return {run(kernel, hidden).queries({i}), run(kernel, other).queries({i}),
            fmt::format("{} heads, M = {}, N = {}, -inf at ({}, {}) in head 0 only, q = 0, v_s = 0 or {}", c.heads, M,
                        N, i, s, value)};
  });
}

std::string misses_a_query(const Case& c) {
  return queries_of(c) >= 1 ? "" : "has no query; a counterexample needs one";
}

const Property family[] = {
    {.name = "multihead.query-deletion",
     .statement = "with per-head B_i^(s)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).unmasked().at_least(2, 0); },
     .misses = [](const Case& c) { return misses_any(c, misses_unmasked, misses_two_queries); },
     .check = query_deletion_law},
    {.name = "multihead.masked-query-deletion",
     .statement = "with per-head B_i^(s)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .wants = wants_hidden_keys,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).masked().at_least(2, 0); },
     .misses = [](const Case& c) { return misses_any(c, misses_no_causal, misses_two_queries); },
     .check = query_deletion_law},
    {.name = "multihead.permutation-equivariance",
     .statement = "without biases; with biases too **+**",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return small_multihead(draw).unmasked(); },
     .misses = misses_unmasked,
     .check = permutation_law},
    {.name = "multihead.self-permutation-equivariance",
     .statement = "without biases; with biases too **+**",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bound",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).unmasked(), 0); },
     .misses = [](const Case& c) { return misses_any(c, misses_self, misses_unmasked); },
     .check = self_permutation_law},
    {.name = "multihead.any-length",
     .statement = "one function for every M and N",
     .source = "000",
     .needs = "multihead",
     .floating_point = "required",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).unmasked().where([](Recipe& r) { r.key_value_bias = false; });
     },
     .misses = [](const Case& c) { return misses_any(c, misses_unmasked, misses_no_bias_kv); },
     .check = any_length},
    {.name = "multihead.suppression",
     .statement = "−∞ at (i,s) in every head ⇒ o_i independent of k_s,v_s (of x_s, **s ≠ i**: x_i still enters through "
                  "q_i)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return two_keys(small_multihead(draw).masked()); },
     .misses = misses_two_keys,
     .check = suppression_law},
    {.name = "multihead.self-suppression",
     .statement = "−∞ at (i,s) in every head ⇒ o_i independent of k_s,v_s (of x_s, **s ≠ i**: x_i still enters through "
                  "q_i)",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).masked(), 2); },
     .misses = [](const Case& c) { return misses_any(c, misses_self, misses_two_keys); },
     .check = self_suppression_law},
    {.name = "multihead.partial-mask-leaks",
     .statement = "−∞ at (i,s) in some but not all heads suffices",
     .source = "000 (\"when they agree\")",
     .needs = "multihead",
     .floating_point = "counterexample",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return small_multihead(draw, /*least_heads=*/2).masked().at_least(2, 2); },
     .misses =
         [](const Case& c) {
           return misses_any(c, misses_no_causal, misses_two_heads, misses_two_keys, misses_a_query);
         },
     .check = partial_mask_leaks},
    {.name = "multihead.key-value-deletion",
     .statement = "every head's column s is −∞; in the self form at all rows i ≠ s: MMHSAttn(X)^(s) = "
                  "MMHSAttn_{B^<s>}(X^(s))",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return two_keys(small_multihead(draw).masked()); },
     .misses = misses_two_keys,
     .check = key_value_deletion_law},
    {.name = "multihead.self-input-deletion",
     .statement = "every head's column s is −∞; in the self form at all rows i ≠ s: MMHSAttn(X)^(s) = "
                  "MMHSAttn_{B^<s>}(X^(s))",
     .source = "000",
     .needs = "multihead",
     .floating_point = "as in masked",
     .operation = Operation::multihead,
     .given = [](Draw& draw) -> Case { return self_attention(small_multihead(draw).masked(), 2); },
     .misses = [](const Case& c) { return misses_any(c, misses_self, misses_two_keys); },
     .check = input_deletion_law},
};

}  // namespace

std::span<const Property> multihead_row_properties() {
  return family;
}

}  // namespace attest
