// The bound of one row: first what concerns keys (score errors, weights, normalisers), then each element.
#pragma once

#include <cstdint>
#include <vector>

#include "core/bound/error_bound.h"

namespace attest::detail {

/// The visible keys of one row and its sink, compacted, as doubles. Arrays of n entries, padded; tau is the profile's.
struct RowKeys {
  std::int64_t n = 0;
  /// Row of V of each key, one of zeros for a weight that is dropped; nullptr: 0, 1, 2, …
  const std::int64_t* index = nullptr;
  const double* s = nullptr;            ///< exact score, rounded
  const double* t = nullptr;            ///< tau * x
  const double* capped = nullptr;       ///< what the cap makes of it; nullptr: none
  const double* size = nullptr;         ///< X_j = sum_c |q_c k_jc|, in units of x
  const double* b = nullptr;            ///< bias in units of the score (pre-scale: tau*b); nullptr: none
  const double* slopes = nullptr;       ///< what slopes add to the score: -m|p - j|; nullptr: nothing
  const double* k1 = nullptr;           ///< |k_j|_1; needed where needs_key_sums(profile)
  const double* la = nullptr;           ///< log of the exact weight: accurate to a small absolute error
  const double* alpha = nullptr;        ///< exp(la), 0 where it underflows
  const double* input_error = nullptr;  ///< multihead: error of the score from projected inputs (ain_j); nullptr: none
  double shift_error = 0;               ///< multihead: error common to all scores
  double slope_shift = 0;               ///< m p: by so much are all scores of the column form larger (1.12)
  double shift = 0;                     ///< the same where that is the kernel's form, else 0
  double q1 = 0;                        ///< |q|_1
  double unit = 0;                      ///< unit roundoff of the evaluation; 0: scores are exact to a double
  double lse = 0;                       ///< exact log-sum-exp
  bool want_lse = false;
  bool has_sink = false;    ///< the last one is no key but the sink: s is its score, and t, size and its value are 0
  bool exact_dots = false;  ///< exactness rule: every q.k is exact in the accumulator, in any order
};

/// The most that a product of q and k is multiplied by, in some order of what becomes of it.
[[nodiscard]] double most_factor(const Profile& p);
/// The same of what a slope adds; 0 without one.
[[nodiscard]] double slope_factor(const Profile& p);

[[nodiscard]] inline bool needs_key_sums(const Profile& p) {
  return p.lam_q > 0 || p.lam_in > 0;
}

/// Where V comes from. Columns are padded to `stride`, a multiple of 4.
struct RowValues {
  const double* v = nullptr;
  std::int64_t stride = 0;
  std::int64_t dv = 0;
  const double* low = nullptr;      ///< smallest visible value per column
  const double* high = nullptr;     ///< largest
  const double* abs_sum = nullptr;  ///< sum of |visible values| per column, or more
  const double* apart =
      nullptr;  ///< |v_jk - o_k| + r_k, n x stride, compacted, where doubles cannot tell; else nullptr
  const double* input_error = nullptr;  ///< multihead: dV, as v; nullptr: none
  const float* singles = nullptr;       ///< v as floats; nullptr: there are none. Stride: 8 n
  bool singles_rounded = false;         ///< they do not hold it exactly
  const double* o_low = nullptr;        ///< low parts of the values, which are o + o_low; nullptr: none
  /// As low and high, of all keys, hidden ones and those whose weight is dropped too; nullptr: nobody multiplies these.
  const double *all_low = nullptr, *all_high = nullptr;
};

/// What the bound needs of the keys of a row.
struct KeyTerms {
  double largest_score = 0;       ///< Mabs
  double most_E = 0;              ///< over keys that carry weight
  double z = 0;                   ///< see KeyPass
  double g_mean = 0, s_mean = 0;  ///< what errors of constants are relative to, as no weight of a softmax shows them
  double most_E_here = 0;         ///< the same for the evaluation itself (RowKeys::unit)
  double ratio_here = 0;          ///< at least every key's quotient of the two
  double reach = 0;               ///< sum of ph
  double UD = 0, LD = 0, denominator = 1;
  double sum_error = 0;   ///< of the sum of weights by accumulation alone: UD without merges and rounded weights
  double merge = 0;       ///< what merging through log-sum-exp adds to the logarithm of the sum
  double factor = 2;      ///< of underflow (P7)
  double lam_weight = 0;  ///< absolute error of a weight by underflow of exp
  double lam_twice = 0;   ///< what two underflows in a row make of each other, which no weight caps (C39)
  double lse_allowed = 0;
  double weight_gain = 1;           ///< e^{T + residual}, with the errors of exponentials: no weight exceeds it
  double vanished_gain = 1;         ///< the same for keys that carry no weight, in a block of nothing else, and for
                                    ///< scores stored after their maximum was taken
  bool capped = false;              ///< a weight may have grown beyond what doubles hold: S is its cap
  bool in_domain = true;            ///< D1, D1b, D2, D5
  std::int64_t big = 0, small = 0;  ///< keys by weight: above u_a, below; the rest carry none
};

/// UD and the least denominator 1 - UD - LD where the sum of weights errs by `sum_error` alone.
struct Denominator {
  double UD = 0, least = 1;
};
[[nodiscard]] Denominator denominator_of(const Profile& p, const RowKeys& row, const KeyTerms& terms, double sum_error);

/// Reusable memory of one thread.
struct BoundScratch {
  std::vector<double> a, tm, E, ph, pp, caps;
  std::vector<double> g;               ///< the scores with 0 for that of a sink
  std::vector<double> shifted, added;  ///< beside slopes: the scores of the kernel's form; sizes of what is added
  std::vector<double> kap, of_tanh;    ///< where products are capped: the most that tanh grows by, and its error
  std::vector<double> lse_E;           ///< errors of the exponents where nothing is centred: for the log-sum-exp
  std::vector<double> big_ph, big_pp, small_ph, small_pp;
  std::vector<std::int64_t> big_index, small_index, big_key, small_key;
  std::vector<double> S, A, A_small, nothing, S_lost, lost;
  std::vector<float> centre, single_ph, single_pp;
  bool all_big = false;
};

/// Fills `scratch` (E, ph, pp, lists of keys) for element_bounds.
[[nodiscard]] KeyTerms key_terms(const Profile& p, const RowKeys& row, const double* q, BoundScratch& scratch);

struct ElementTerms {
  double allowed = 0;
  double hull = 0;         ///< see ElementBound
  double certificate = 0;  ///< of the evaluation, when RowKeys::unit > 0; else the r_k given
  double score = 0;        ///< S without the errors of the values: what not knowing the scores may move the answer by
  Excuse excuse = Excuse::none;
  bool finite_required = true;  ///< false: see ElementBound
  bool trusted = true;          ///< false: the bound owes more than 2^-10 of itself to r_k; evaluate with a smaller one
  // What `allowed` is made of (error-bounds.md 1.1), from above.
  double scores = 0;     ///< S
  double radius = 0;     ///< what S has added to every |v_jk - o_k|
  double values = 0;     ///< A+
  double sums = 0;       ///< error of the sum of weights times values, by accumulation alone
  double underflow = 0;  ///< LN
  double size = 0;       ///< |o_k|
};

/// What normalisation, dropout, the output format and the evaluation in double make of an error `before` them, and of
/// an answer of that size, in units of what dropout has multiplied.
struct Finish {
  explicit Finish(const Profile& p)
      : Uf(join(join(pw(p.u_a, p.c_div), p.u_gained), p.u_o)),
        lam((1 + Uf) * ((p.c_div + (p.u_gained > 0 ? 1 : 0)) * p.lam_a + p.lam_o)) {}
  [[nodiscard]] double operator()(double before, double size) const {
    return (1 + 0x1p-30) * ((1 + Uf) * before + Uf * size + lam);
  }
  double Uf, lam;
};

/// What the sum of n weights times values, `big` of them above u_a, errs by in relation to the sum of sizes: in any
/// order
/// (`plain`), and refined (1.2).
struct Accumulation {
  Accumulation(const Profile& p, std::int64_t n, std::int64_t big);
  double plain, chain, local, merges;
};

/// B_k of each element. `o` are the values with radius `r` (nullptr: the certificate of the double pass, computed
/// here). Relative error of `allowed` against the formula: at most 2^-20.
void element_bounds(const Profile& p, const RowKeys& row, const KeyTerms& terms, const RowValues& values,
                    const double* o, const double* r, BoundScratch& scratch, ElementTerms* out);

}  // namespace attest::detail
