// The bound of one row as error-bounds.md writes it, plainly and in long double, with one correction of its 1.7 left
// out on request: what the corrections' tests hold up to a correct kernel's error.
#pragma once

#include <vector>

#include "core/bound/error_bound.h"
#include "core/problem/case.h"

namespace attest::fleet {

/// A correction that lives in the formulas. Those that live in the profile are undone there.
enum class Without {
  nothing,
  separate_radius,      ///< C1: |v - o| is a difference of doubles
  logarithms,           ///< C2: Z- is a sum of doubles, its quotients too
  lazy_underflow,       ///< C3: lam_e(2 + R)
  prescaled_underflow,  ///< C4: everything in e1 is multiplied by tau
  centred_merge,        ///< C7: th_l2e|s - s_mean| alone where parts merge through their log-sum-exp
  size_of_scale,        ///< C12: tau instead of |tau|
  growing_constants,    ///< C15: no (1 + th_l2e) in E
  second_merge_error,   ///< C16: one eps_exp in the denominator of a merge
  normalised_depth,     ///< C17: c_div - 1 beside a declared depth
  lazy_residual,        ///< C18: Q without T
  stored_maximum,       ///< C19: the factor of underflow is 2
  clamped_exp,          ///< C21: an underflow costs at most 2 pp, whatever exp does
  flushed_inputs,       ///< C26: no lam_in beside the sums
  far_exponents,        ///< C28: exp(la + E) as a double has it
  exponent_underflow,   ///< C34: no exponent loses anything below the smallest normal number
  rounded_shares,       ///< C35: (1 - u_p)(1 - UD) in the denominator
  merge_operations,     ///< C36: two operations for each reference, however many parts are merged
  distant_reference,    ///< C37: no log-sum-exp is above all scores, or below the maximum of its part
  two_underflows,       ///< C39: 2 pp whatever a weight loses
  grown_losses,         ///< P40: what is lost is rounded no more
  converted_start,      ///< P45: a bias that begins the sum is converted, or rounded with the sum, but not both
  wider_sums,           ///< C48: what vanishes beside scores vanishes in sums of a wider format
  far_scores,           ///< P49: log2(e) leaves the distance to the reference as it is
  last_reference,       ///< P50: the sum of weights is 1 at least, though the last reference was rounded
  lost_products,        ///< P51: a product that is lost was rounded by the additions alone
};

/// B of the only output element of a case with one query, one head and dv = 1; no mask hides a key. `exact_scores`:
/// keys to which the exactness rule applies (a_j = 0), and then no product q.k errs; empty: none.
[[nodiscard]] double written_bound(const Case& c, const Profile& p, Without left_out = Without::nothing,
                                   const std::vector<bool>& exact_scores = {});

}  // namespace attest::fleet
