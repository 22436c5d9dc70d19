// The loops of a verdict over keys alone, compiled and chosen as inner_loops.h says.
#pragma once

#include <cstdint>

namespace attest::detail {

/// Arrays over the keys of a row, of n entries each; what the bound knows (const) and derives of a key. The names are
/// those of RowKeys and BoundScratch.
struct KeyArrays {
  const double *s, *t, *size, *g, *la, *alpha;
  const double* b;   ///< nullptr: no bias
  const double* in;  ///< RowKeys::input_error; nullptr: none
  double *a, *tm, *E, *ph, *pp;
};

/// Constants of a row, of which a profile and a row leave many 0.
struct KeyConstants {
  double tau = 0;  ///< |tau|
  double on_size = 0, on_t = 0, on_s = 0, on_b = 0, constant = 0;
  double th_tau = 0, th_l2e = 0, g_mean = 0, s_mean = 0, shift_error = 0;
  double M = 0, Mabs = 0, s_top = 0;
  double twice_lazy = 0, lazy = 0;
  bool fixed_shift = false, lse_merge = false;
  double thE = 0, residual = 0, lse_on_Q = 0, lse_on_D = 0, rest = 0;
  double dead = 0;  ///< la + E below which a weight is 0
  double unit_here = 0, unit = 0, exp_here = 0;
  double u_a = 0;
};

/// What makes the error of a score of that of its scaled product, in a row whose products are capped: error-bounds.md
/// 1.10, whose symbols these are.
struct CapConstants {
  double cap = 0;                     ///< C
  double argument = 0, lam_z = 0;     ///< th_z, and what z errs by absolutely
  double relative = 0, absolute = 0;  ///< of tanh
  double th_cap = 0, th_tau = 0;      ///< of the product with C, and of the constant C
  double th_bias = 0, on_b = 0, constant = 0;
};

/// What adding a slope's part l makes of the error of a score: error-bounds.md 1.12, whose symbols these are.
struct SlopeConstants {
  double shift = 0;              ///< m p, in the form of columns
  double on_slope = 0;           ///< of |l'|
  double on_both = 0;            ///< of |g|, |b| and |l'|
  double divided = 0, on_s = 0;  ///< of the error before, and of |s'|
  double constant = 0;
};

/// Largest values; at least 0 where nothing negative can be meant.
struct ScoreRange {
  double M = 0, top = 0, bottom = 0, s_top = 0;
  double size = 0, bias = 0;
};
struct ErrorRange {
  double E = 0, Q = 0;     ///< over the keys that carry weight
  double vanished_Q = 0;   ///< over those that do not
  double here = 0, a = 0;  ///< over the keys that carry weight
  double least_E = 0;      ///< smallest, over the keys that carry weight; inf where none does
  bool finite = true;      ///< every E
};
struct WeightSums {
  double reach = 0, denominators = 0;  ///< sum ph, sum min(u_a, pp)
  std::int64_t big = 0;                ///< keys with pp > u_a
};

/// What a row's scores tell of it; NaN scores leave `most` as it is.
struct RowScores {
  double most = 0;       ///< largest score
  double most_size = 0;  ///< largest X_j
  bool finite = true;    ///< every score and X_j
};

struct KeyLoops {
  /// t[j] = tau x[j], s[j] = t[j] + b[j] (b may be nullptr). t may be x.
  RowScores (*scores)(const double* x, const double* size, const double* b, double tau, std::int64_t n, double* t,
                      double* s);
  /// c[j] = cap tanh(t[j]/cap), to a relative 2^-50, and s[j] = c[j] + b[j] (b may be nullptr). Returns the largest s.
  /// All arrays are padded.
  double (*cap)(const double* t, const double* b, double cap, std::int64_t n, double* c, double* s);
  /// a[j], the error of t[j], becomes that of the score; kap[j] is the most that tanh grows by, of_tanh[j] its
  /// error. All arrays are padded.
  void (*cap_errors)(const KeyArrays& x, std::int64_t n, const CapConstants& c, double* kap, double* of_tanh);
  /// l[j] = -slope |position - key[j]| and added[j] = l[j] + b[j] (b may be nullptr, and added be l). All arrays are
  /// padded.
  void (*slope_terms)(const double* key, const double* b, double slope, double position, std::int64_t n, double* l,
                      double* added);
  /// a[j], the error of g[j] + b[j] (b may be nullptr), becomes that of the score. All arrays are padded.
  void (*slope_errors)(const KeyArrays& x, const double* g, const double* b, const double* l, std::int64_t n,
                       const SlopeConstants& c);
  /// la[j] = (s[j] - m) - log_sum and alpha[j] *= inverse.
  void (*normalise)(const double* s, std::int64_t n, double m, double log_sum, double inverse, double* la,
                    double* alpha);
  /// caps[j]: the most that the weight of key j loses absolutely, min(lam_p, pp[j]) of its rounding and lam_weight of
  /// its exponential, or where that `vanishes` no more than 17/16 of the weight and what its rounding loses (C39). The
  /// weight is at most exp(la + E - z). Returns the least.
  double (*lost_weights)(const KeyArrays& x, std::int64_t n, double lam_p, double lam_weight, double dead, double z,
                         bool vanishes, double* caps);
  /// As floats, to nearest.
  void (*narrow)(const double* from, std::int64_t n, float* to);
  /// sum_j alpha_j g_j and sum_j alpha_j s_j.
  void (*means)(const KeyArrays& x, std::int64_t n, double& g_mean, double& s_mean);
  /// a and tm of every key, without the terms in k1 and in.
  void (*score_errors)(const KeyArrays& x, std::int64_t n, const KeyConstants& c);
  ScoreRange (*score_range)(const KeyArrays& x, std::int64_t n, const KeyConstants& c);
  /// E of every key.
  ErrorRange (*errors)(const KeyArrays& x, std::int64_t n, const KeyConstants& c);
  /// ph and pp of every key where no E of a live key exceeds 1/16.
  WeightSums (*weights)(const KeyArrays& x, std::int64_t n, const KeyConstants& c);
};

/// The fastest loops this processor runs.
[[nodiscard]] const KeyLoops& key_loops();
/// By name, for tests: "baseline" always; "avx2" and "avx512", nullptr where they cannot run.
[[nodiscard]] const KeyLoops* key_loops_named(const char* name);

}  // namespace attest::detail
