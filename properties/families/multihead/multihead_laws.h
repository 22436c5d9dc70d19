// Laws that 000 states once for attention with weights, once for self-attention and once for many heads: the same runs
// of the multihead entry under other hypotheses. Each is a Property::check.
#pragma once

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// F(Q,K,V)^(i) = F(Q^(i),K,V), B^(i) with a mask. Two queries; no causal form.
[[nodiscard]] Verdict query_deletion_law(Kernel& kernel, const Case& c);
/// o_i does not depend on q_j, j != i, nor on a q_j that is NaN. Two queries.
[[nodiscard]] Verdict query_locality_law(Kernel& kernel, const Case& c);
/// F(R_pi Q, R_sigma K, R_sigma V) = R_pi F(Q,K,V). No mask.
[[nodiscard]] Verdict permutation_law(Kernel& kernel, const Case& c);
/// F(R_pi X) = R_pi F(X). Self-attention without a mask.
[[nodiscard]] Verdict self_permutation_law(Kernel& kernel, const Case& c);
/// -inf at (i, s): o_i is independent of k_s and v_s and is what is left when key s is not there. One query, two keys.
[[nodiscard]] Verdict suppression_law(Kernel& kernel, const Case& c);
/// -inf at (i, s), s != i: o_i is independent of x_s, likewise. Self-attention of two tokens.
[[nodiscard]] Verdict self_suppression_law(Kernel& kernel, const Case& c);
/// Column s of B is -inf: F_B(Q,K,V) = F_{B^[s]}(Q,K^(s),V^(s)). Two keys.
[[nodiscard]] Verdict key_value_deletion_law(Kernel& kernel, const Case& c);
/// -inf at (i, s) for all i != s: F_B(X)^(s) = F_{B^<s>}(X^(s)). Self-attention of two tokens.
[[nodiscard]] Verdict input_deletion_law(Kernel& kernel, const Case& c);
/// F(X) = F(X,X,X). The right side is asked with one more query, so that Q is not K, and its row is left out. Bits in
/// the core. Self-attention without a causal form.
[[nodiscard]] Verdict is_cross_attention_law(Kernel& kernel, const Case& c);
/// F without a mask is F under B = 0 or M = 1. Bits in the core. No mask.
[[nodiscard]] Verdict zero_mask_law(Kernel& kernel, const Case& c);

}  // namespace attest
