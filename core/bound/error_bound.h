// The proved bound: how far a kernel of the declared arithmetic may be from the exact answer of a problem
// (error-bounds.md; section 1.7 overrides the rest, and "C3" below is correction 3 of it).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/problem/problem.h"
#include "core/support/words.h"

namespace attest {

/// pw(u, c) = (1+u)^c - 1, without cancellation.
[[nodiscard]] double pw(double u, double count);
/// a (+) b = (1+a)(1+b) - 1.
[[nodiscard]] inline double join(double a, double b) {
  return a + b + a * b;
}

/// Which of q, k and v have factors, between which numbers these are, and the largest products with them.
struct DescaleInputs {
  struct Of {
    bool there = false;
    double least = 1, most = 1;
  };
  Of q, k, v;
  double largest_q = 0, largest_k = 0;
  [[nodiscard]] bool any() const { return q.there || k.there || v.there; }
};

/// What a profile depends on beside the arithmetic. One head; tau is `scale`.
struct ProfileInputs {
  std::int64_t keys = 0;  ///< N, hidden keys included (blocks are counted over all of them)
  std::int64_t dk = 1;
  double scale = 1.0;
  bool bias = false;  ///< some visible mask entry is not 0
  MaskConvention convention = MaskConvention::post_scale;
  DType mask = DType::f32;  ///< the mask's own dtype (matters with mask_format)
  /// Those of k and v, where they have others than q (with flushes_inputs).
  std::optional<DType> k{}, v{};
  std::optional<DType> sink{};  ///< that of the sinks, where there are some
  double softcap = 0;           ///< C; 0: none
  bool drops = false;           ///< weights are dropped
  double dropout_p = 0;         ///< p; 0: no weight is divided by 1 - p
  double slope = 0;             ///< m; 0: none
  double most_distance = 0;     ///< no distance and no position is larger
  bool causal = false;
  DescaleInputs descale{};
};

/// The symbols of error-bounds.md, "Profile parameters". Roundoffs are relative, lam_* absolute (underflow), H_*
/// ranges.
struct Profile {
  ProfileInputs of;
  double u_score = 0;         ///< unit roundoff of the score format, to nearest: u_sc = u_b = u_e = u_lse
  double u_s = 0, lam_s = 0;  ///< accumulation of q.k; n_s = dk, +1 with the bias in the sum
  std::int64_t n_s = 0;
  bool prescaled = false;               ///< q*tau may be rounded before the product
  double u_qpre = 0, lam_q = 0;         ///< rounding of q*tau
  DType prescaled_format = DType::f32;  ///< what q*tau is kept in
  double u_raw = 0, lam_raw = 0;        ///< q.k stored (u_x)
  double th_scale = 0, lam_scale = 0;   ///< thS: roundings of the scaled product, stored form included
  double u_sink = 0;                    ///< roundings relative to |sink|
  double th_of_scale = 0;               ///< error of the scale as a constant; th_tau, where there is no cap
  // Of a cap: the argument z = t/C, its tanh, and C times that; th_tau below is then the error of C (1.10).
  double th_argument = 0, eps_tanh = 0, abs_tanh = 0, th_cap = 0, lam_cap = 0;
  /// Of a slope (1.12): the form it has in this problem, roundings of what it adds to a score, relative and absolute,
  /// of the sum that it is in beside a mask, of what becomes of that sum where it is divided, and of the shift of a
  /// row.
  SlopeForm slope_form = SlopeForm::distance;
  double u_slope = 0, lam_slope = 0, u_both = 0, th_divided = 0, u_shift = 0;
  double th_bias = 0, lam_bias = 0;  ///< thB: roundings after the bias, stored form included
  double u_bc = 0, lam_bc = 0;       ///< roundings relative to |b_j| (C5)
  bool bias_in_sum = false;
  double th_tau = 0, th_l2e = 0;  ///< errors of the constants
  double u_e = 0, c_e = 0;        ///< roundings of the exponent
  double lam_exponent = 0;        ///< what each exponent may lose where a result on its way underflows
  double c_m = 0;                 ///< residuals of m that do not telescope
  double lazy = 0;                ///< T, nats
  bool fixed_shift = false;       ///< the exponent may be formed without a reference point
  bool takes_no_maximum = false;  ///< declared so: the kernel itself takes none
  double eps_exp = 0;             ///< relative error of exp
  double lam_e = 0;               ///< absolute error of exp where it underflows
  bool exp_vanishes = false;      ///< exp of very negative numbers is 0 (C21)
  double rescalings = 0;          ///< R
  bool lse_merge = false;         ///< split merge through log-sum-exp, without renormalisation
  double u_lse = 0, eps_log = 0;
  double u_p = 0, lam_p = 0;  ///< rounding of the weights
  bool p_in_denom = false;
  double u_a = 0, lam_a = 0;  ///< accumulation over keys
  bool nearest = true;        ///< rn
  bool depth_declared = false;
  Arithmetic declared;  ///< what this is the profile of; h is accumulation_depth(declared, keys, visible keys)
  double extra = 0;     ///< further roundings per term of the sums over keys
  double c_div = 1;
  bool norm_first = false;
  bool stored = false;  ///< the maximum may have been taken before the score was stored (C19)
  double u_o = 0, lam_o = 0;
  double lam_in = 0;            ///< subnormal inputs read as zero
  double H_s = 0, u_range = 0;  ///< narrowest format of a score, and its unit roundoff
  /// Of dropout (1.11): 1/(1 - p), from above, which the values of kept weights are multiplied by; what a weight or its
  /// value errs by for it, relative and by underflow, and what the output does.
  double gain = 1, u_drop = 0, lam_drop = 0, u_gained = 0;
  double H_drop = std::numeric_limits<double>::infinity();  ///< of the values, where they are what is multiplied
  /// Of factors of q and k (1.13): roundings of what they multiply, or are multiplied into.
  double u_factors = 0;
  double H_a = 0, H_p = 0, H_o = 0, H_q = 0;
  double least_scale = 0;         ///< smallest scale that is a normal number in every format it may be kept in
  double least_weight = 0;        ///< smallest normal number of the score's and of the accumulating format
  double vanishing_exponent = 0;  ///< e to less is nothing, whatever value it meets in the sum (C28, C48)
  bool base2 = false, folded = false;
  double score_precision = 24;  ///< bits p of the accumulator of q.k, for the exactness rule
  double score_least_bit = 0;   ///< smallest positive number of the score format that is not flushed
  DType score_format = DType::f32;
  std::vector<DType> stored_formats;  ///< formats scores are written to
  bool any_mask_format = false;
  DType mask_format = DType::f32;

  /// Operations on the sums of n keys that are neither products nor additions: two for each new reference; of parts
  /// that are merged in a tree as many as there are parts, each divided by its sum and rescaled twice.
  [[nodiscard]] double rescaling_operations(double n) const { return 2 * rescalings + (lse_merge ? 3 * n : 0); }
};

/// The profile of a kernel that declares `arithmetic`.
[[nodiscard]] Profile profile_of(const Arithmetic& arithmetic, const ProfileInputs& inputs);

/// Why a row or element is not judged; none: it is.
enum class Excuse {
  none,
  fully_masked,  ///< no visible key: the documents define no answer
  not_finite,    ///< NaN or Inf in the row of q, in a visible key or value, or in a hidden one the kernel may touch
  overflow,      ///< outside the domain of definition (section 2, D1-D5)
  infinite,      ///< no finite bound
  vacuous,       ///< the bound does not tell right from wrong; see ElementBound::vacuous
  padding,       ///< a row of no sequence
  own_dropout    ///< what is dropped is drawn by the kernel
};
template <>
struct Words<Excuse> {
  static constexpr std::array<std::string_view, 8> names{
      "none",           "fully masked",  "not finite", "outside the domain",
      "infinite bound", "vacuous bound", "padding",    "dropout of its own"};
};
/// Has the whole row no answer?
[[nodiscard]] constexpr bool is_of_row(Excuse excuse) {
  return excuse == Excuse::fully_masked || excuse == Excuse::not_finite || excuse == Excuse::padding ||
         excuse == Excuse::own_dropout;
}

/// What the proof says about one output element.
struct ElementBound {
  double value = 0;        ///< the exact answer, to within `certificate`
  double certificate = 0;  ///< proved: |exact - value| <= certificate
  double allowed = 0;      ///< B: proved of every kernel of the declared arithmetic; inf: none
  /// Proved: no kernel of the declared arithmetic leaves the range of the visible values of the column by more (B with
  /// S = 0 and |o|, A+ -> max|v|; error-bounds.md, section 4). Scores do not enter, so it is small where B is vacuous.
  /// inf: as large as the values, or nothing is proved; always of a multihead case.
  double hull = std::numeric_limits<double>::infinity();
  /// none, or why a finite answer is not required, or why passing the bound is not counted as held. An element whose
  /// bound is vacuous is still violated when it exceeds it.
  ///
  /// Vacuous: accepting every convex combination of the visible values (B >= max|v - o|) because the scores are not
  /// known well enough (S, the score part, is at least half of B), or what is left of B without S as large as the
  /// largest value. Where the values hardly differ, or there is one key, the score part is small and what is left is
  /// the error of normalisation and output: sharp, and judged.
  Excuse excuse = Excuse::none;
  /// false: NaN or Inf is excused although a finite answer is judged. A kernel that folds the maximum into exp2, and
  /// parts the keys into blocks or splits, may meet one of nothing but keys masked by a huge finite number (beyond
  /// -1.4e9 in f32) and lose the row; most get it right.
  bool finite_required = true;
};

struct RowBound {
  Excuse excuse = Excuse::none;  ///< of the row as a whole; its elements carry it too
  int level = 1;                 ///< of the evaluation: 1 double, 3 balls
  double lse = 0;                ///< exact log-sum-exp, to within lse_certificate; -inf when fully masked
  double lse_certificate = 0;
  double lse_allowed = 0;  ///< section 1.6, for an lse rounded to the score format
  /// Largest E_j over the keys that carry weight; of a multihead case the largest over the heads. While it is at most
  /// 1/4 the bound of a kernel with every roundoff smaller by one factor is smaller by that factor, but for underflow
  /// (section 5, scaling lemma: no cap is active then).
  double most_E = 0;
};

/// Bounds of a whole attention case; elements as out, rows as lse, row-major.
struct AttentionBounds {
  std::vector<RowBound> rows;          ///< batch * heads * M
  std::vector<ElementBound> elements;  ///< batch * heads * M * dv
};

/// Flat indices of rows of an output, batch * heads * M of them, ascending and each once; nothing: all rows. Any row
/// may be looked at without the others (attention.query-deletion).
using AskedRows = std::optional<std::span<const std::int64_t>>;

/// Exact values and bounds of a valid attention case, of the rows asked for and no others. For laws between runs: |lhs
/// - rhs| <= allowed + allowed, each on its own inputs. `ignores_dead_values`: the kernel claims it, so hidden keys
/// cannot excuse a row.
[[nodiscard]] AttentionBounds attention_bounds(const Problem& c, const Arithmetic& arithmetic,
                                               bool ignores_dead_values = false, AskedRows rows = {});
/// The same of a valid multihead case (error-bounds.md 1.5 as corrected by 1.7): rows are batch * M, elements as out;
/// nothing is said of an lse.
[[nodiscard]] AttentionBounds multihead_bounds(const Problem& c, const Arithmetic& arithmetic,
                                               bool ignores_dead_values = false);

}  // namespace attest
