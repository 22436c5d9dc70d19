// attention: what happens to rows of Q, K and V (000: deletion, locality, permutation).
#include <array>
#include <limits>

#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

// 000: Attention(Q,K,V)^(i) = Attention(Q^(i),K,V), and so of as many deletions as one likes.
Verdict query_deletion(Kernel& kernel, const Case& c) {
  const Indices left = queries_left(c);
  return agree({run(kernel, c).queries(left), run_rows(kernel, c, left)}, bits_if(kernel, {Claim::batch_invariant}),
               /*about_bits=*/true);
}

// 000: o_i does not depend on q_j, j != i: also not on a q_j that is NaN.
Verdict query_locality(Kernel& kernel, const Case& c) {
  const std::int64_t j = argument(c, "j", queries_of(c)), dk = c.q().shape()[3];
  const std::int64_t M = queries_of(c);
  Case other = c;
  other[Slot::q] = mapped(c.q(), [&](std::int64_t e, double old) {
    return e / dk % M == j ? std::numeric_limits<double>::quiet_NaN() : old;
  });
  other.provenance.non_finite = "yes";
  const Indices rest = all_but(M, j);
  return agree({run(kernel, c).queries(rest), run(kernel, other).queries(rest)},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

// 000: Attention(Q, R_sigma K, R_sigma V) = Attention(Q,K,V).
Verdict key_value_permutation(Kernel& kernel, const Case& c) {
  const Indices sigma = permutation_argument(c, "sigma", keys_of(c));
  return agree({run(kernel, with_keys(c, sigma)), run(kernel, c)}, Match::bound);
}

// 000: Attention(R_pi Q, R_sigma K, R_sigma V) = R_pi Attention(Q,K,V).
Verdict permutation_equivariance(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", queries_of(c));
  const bool keys_too = argument(c, "keys", 2) == 1;
  const Indices sigma = keys_too ? permutation_argument(c, "sigma", keys_of(c)) : all_of(keys_of(c));
  const Match match = keys_too ? Match::bound : bits_if(kernel, {Claim::batch_invariant});
  return agree({run(kernel, with_queries(with_keys(c, sigma), pi)), run(kernel, c).queries(pi)}, match,
               /*about_bits=*/!keys_too);
}

constexpr std::array deleted_rows{needed(hypotheses::unmasked, "a causal form counts the rows, and a row is gone"),
                                  defining(hypotheses::two_queries, "one row is deleted and another one looked at")};
constexpr std::array other_rows{spare(hypotheses::unmasked, "a mask or a causal form looks at no other query either"),
                                defining(hypotheses::two_queries, "one row is changed and another one looked at")};
constexpr std::array rearranged{
    needed(hypotheses::unmasked, "a causal form counts rows and keys, and they change their places")};

const Property family[] = {
    {.name = "attention.query-deletion",
     .statement = "Attention(Q,K,V)^(i) = Attention(Q^(i),K,V)",
     .source = "000",
     .needs = "attention",
     .floating_point = "bitwise if batch-invariant",
     .hypotheses = deleted_rows,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).unmasked().at_least(2, 0); },
     .check = query_deletion},
    {.name = "attention.query-locality",
     .statement = "o_i does not depend on q_j, j ≠ i",
     .source = "000",
     .needs = "attention",
     .floating_point = "bitwise if batch-invariant; NaN in q_j must not reach o_i",
     .hypotheses = other_rows,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked().at_least(2, 0); },
     .check = query_locality},
    {.name = "attention.key-value-permutation",
     .statement = "Attention(Q, R_σK, R_σV) = Attention(Q,K,V)",
     .source = "000",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = rearranged,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).unmasked(); },
     .check = key_value_permutation},
    {.name = "attention.permutation-equivariance",
     .statement = "Attention(R_πQ, R_σK, R_σV) = R_π Attention(Q,K,V)",
     .source = "000",
     .needs = "attention",
     .floating_point = "bound; bitwise if batch-invariant and σ = id",
     .hypotheses = rearranged,
     .given = [](Draw& draw) -> Case { return draw.attention().unmasked(); },
     .check = permutation_equivariance},
};

}  // namespace

std::span<const Property> attention_row_properties() {
  return family;
}

}  // namespace attest
