// The loops that a verdict spends its time in, compiled for the machine's baseline and once more for AVX2 with FMA and
// chosen at run time. What they compute is certified for any order and with or without fused operations, so the choice
// changes no verdict.
#pragma once

#include <cstdint>

namespace attest::detail {

/// Keys per panel of the packed layout [panel][dk][panel_width], zero beyond the last key.
inline constexpr std::int64_t panel_width = 16;
/// Arrays over keys and columns are readable and writable up to the next multiple of this.
inline constexpr std::int64_t padding = 16;

inline constexpr std::int64_t padded(std::int64_t n) {
  return (n + padding - 1) / padding * padding;
}

/// Sums over the first keys of a query, per column (error-bounds.md 5.1); w, e and the centre c are that section's.
struct PrefixColumns {
  double* value;       ///< sum w v
  double* error;       ///< sum w e |v - c|
  double* apart;       ///< sum w |v - c|
  double* size;        ///< sum w |v|
  double* small;       ///< sum w |v| of the keys that do not count as ones of some weight
  double* plain;       ///< sum |v|
  const double* most;  ///< max |v| over all keys
  double* centre;      ///< c
};

/// What multiplies these sums in the bound; the names are those of error-bounds.md 5.1.
struct PrefixConstants {
  double inverse = 0;                           ///< 1 / sum w
  double common = 0;                            ///< C
  double G = 0, H = 0, reach = 0;               ///< 1/Z- with what weights grow by; sum of ph
  double ratio_here = 0, unit = 0, least = 0;   ///< of the certificate: of S, of A, of max |v|
  double underflow_here = 0;                    ///< likewise, where max |v| is not 0
  double plain = 0, refined = 0, of_small = 0;  ///< accumulation: of A; of A and of the small keys
  bool nearest = true;                          ///< the refined sums hold
  double u_p = 0, LN = 0, of_denominator = 0, inverse_denominator = 0;
  double Uf = 0, lam = 0;  ///< Finish
  double lam_weight = 0, lam_p = 0, big = 0, lost = 0, per_lost = 0;
};

/// What the columns of a prefix come to.
struct PrefixFound {
  bool usable = true;    ///< certificates are sharp, and no bound is vacuous
  bool centred = true;   ///< no bound is more than half as large again as with the best centre
  double most_size = 0;  ///< largest |o| + B
};

/// What multiplies each of some rows in three sums, `stride` apart, and these sums per column.
struct GradientTerms {
  const double *value, *error, *size;
  std::int64_t stride;
};
struct GradientColumns {
  double *value, *error, *size;
};

/// A row of the backward pass, per key, from above: P, |dP|, sum_c |g_c v_c|, |dP - D| and the error of P's exponent.
struct GradientRow {
  const double *weight, *of_weight, *size, *apart, *exponent;
  std::int64_t n;
};
/// What its errors are made of (gradient-bounds.md 3). The error of dP is of_size X + of_weight |dP| + of_nothing.
struct GradientFactors {
  double of_size, of_weight, of_nothing;
  double in_sum;    ///< more of it where D is in the sum
  double common;    ///< Ec
  double grown;     ///< e^Ec - 1
  double delta;     ///< eD
  double u_here;    ///< of P in dS
  double lam_here;  ///< of P in dS, by underflow
  double lost;      ///< of dS, by underflow
  double th;        ///< of what dS is made of
  double u_stored;  ///< of dS
  double lam_stored;
  double u_weight;  ///< of P in dv
  double lam_weight;
};
/// RowErrors per key.
struct GradientRowErrors {
  double *of_k, *of_q, *scores, *of_g, *weights;
};
/// The largest of the row: E + Ec, |dP - D| with its error, |dS|, |P| in dv, X.
struct GradientRowMost {
  double exponent, apart, score, weight, size;
};

struct InnerLoops {
  /// One panel from rows of k ([here <= panel_width][dk]): panel[c][l] = k[l][c], 0 for l >= here; sums[l] = |k_l|_1.
  /// Raises `most` to the largest |k|. Returns whether all are finite.
  bool (*pack)(const double* k, std::int64_t here, std::int64_t dk, double* panel, double* sums, double* most);
  /// Lowers low, raises high and adds to abs_sum per column over `n` rows of `stride`. Returns whether all are finite.
  bool (*columns)(const double* v, std::int64_t n, std::int64_t stride, double* low, double* high, double* abs_sum);
  /// x[j] = q.k_j and size[j] = sum_c |q_c k_jc| for every key of `count` panels.
  void (*dots)(const double* q, std::int64_t dk, const double* panels, std::int64_t count, double* x, double* size);
  /// x[j] alone.
  void (*plain_dots)(const double* q, std::int64_t dk, const double* panels, std::int64_t count, double* x);
  /// w[j] = exp(s[j] - m) for j < n, with s[j] <= m + 33, to a relative error of 2^-50; 0 below exp(-708). Returns the
  /// sum. s and w may be the same array.
  double (*weights)(const double* s, std::int64_t n, double m, double* w);
  /// o[k] = sum_j w[j] v[row(j)][k], k < padded stride; row(j) = index ? index[j] : j. Stride is a multiple of 4.
  void (*combine)(const double* w, const std::int64_t* index, std::int64_t n, const double* v, std::int64_t stride,
                  double* o);
  /// spread[k] += sum_j ph[j] |v[row(j)][k] - o[k]|, size[k] += sum_j pp[j] |v[row(j)][k]|.
  void (*spread)(const double* ph, const double* pp, const std::int64_t* index, std::int64_t n, const double* v,
                 std::int64_t stride, const double* o, double* spread, double* size);

  /// Is |found[k] - value[k]| (1 + 2^-50) + radius[k] <= share allowed[k] for every k < n? Of what is not a number it
  /// is not. The largest left side over allowed[k] comes back in `worst`, to a relative 2^-50.
  bool (*compare)(const double* found, const double* value, const double* radius, const double* allowed, double share,
                  std::int64_t n, double* worst);

  // The same sums over inputs that floats hold exactly, in floats: sizes, spreads and sizes of columns come out at
  // least as large as they are and at most a relative 2^-18 larger, but for an absolute n 2^-148 where terms underflow;
  // Inf or NaN where they overflow. x is computed in double as by dots.
  /// As dots, for `rows` consecutive queries with |q| in `sizes_of_q`; their results lie `room` apart.
  void (*dots_singles)(const double* q, const float* sizes_of_q, std::int64_t rows, std::int64_t dk,
                       const float* panels, std::int64_t count, std::int64_t room, double* x, double* size);
  /// As combine, in double; stride is a multiple of 8.
  void (*combine_singles)(const double* w, const std::int64_t* index, std::int64_t n, const float* v,
                          std::int64_t stride, double* o);
  /// As spread; stride is a multiple of 8. Where spread and size are 0 before.
  void (*spread_singles)(const float* ph, const float* pp, const std::int64_t* index, std::int64_t n, const float* v,
                         std::int64_t stride, const float* o, double* spread, double* size);

  /// Adds the keys [from, to) to the sums; stride is a multiple of 8. `we` and `ws` are w e, and w of the small keys
  /// (nullptr: there are none).
  void (*prefix_add)(const double* w, const double* we, const double* ws, std::int64_t from, std::int64_t to,
                     const float* v, std::int64_t stride, const PrefixColumns& sums);
  /// Sets error and apart anew, over the keys [0, n).
  void (*prefix_recentre)(const double* w, const double* we, std::int64_t n, const float* v, std::int64_t stride,
                          const PrefixColumns& sums);
  /// The value, its certificate and the bound of every column.
  PrefixFound (*prefix_columns)(const PrefixColumns& sums, std::int64_t columns, const PrefixConstants& c,
                                double* value, double* certificate, double* allowed);

  // Double-double: a number is the unevaluated sum high + low, |low| <= ulp(high). u = 2^-53. What overflows on the way
  // comes out as Inf or NaN; products below 2^-969 cost an absolute error of 2^-1070 each.
  /// q.k_j for every key of `count` panels, to within (dk+4)^2 / 2 u^2 X_j. Products of one pair are exact.
  void (*dots_dd)(const double* q, std::int64_t dk, const double* panels, std::int64_t count, double* high,
                  double* low);
  /// exp(high + low) in place, for high <= 1 and padded arrays, to a relative error of 2^-86 and an absolute one of
  /// 2^-1074; 0 below exp(-708).
  void (*exp_dd)(double* high, double* low, std::int64_t n);
  /// sum_j w[j] v[row(j)][k] as combine, to within (n+4)^2 / 2 u^2 sum_j |w[j] v[row(j)][k]|.
  void (*combine_dd)(const double* w_high, const double* w_low, const std::int64_t* index, std::int64_t n,
                     const double* v, std::int64_t stride, double* high, double* low);

  /// value[c] += sum_r of.value[r] row_r[c], and of |row_r[c]| the other two; c < n, r < count. row_r begins at
  /// rows + (index ? index[r] : r) pitch.
  void (*add_terms)(const GradientTerms& of, std::int64_t count, const double* rows, const std::int64_t* index,
                    std::int64_t pitch, std::int64_t n, const GradientColumns& sums);
  /// The errors of a row without a cap and without dropout, where no E + Ec is more than 2^-6: e^x - 1 is the first
  /// terms of its series, from above. Where one is more, what it writes is worth nothing.
  GradientRowMost (*gradient_row)(const GradientRow& row, const GradientFactors& f, const GradientRowErrors& to);
  /// Of D from the weights of such a row: the errors of its terms, and their sizes; and the largest E + Ec.
  void (*gradient_delta)(const GradientRow& row, const GradientFactors& f, double* errors, double* sizes, double* most);
  /// sum[c] += factor row[c]; c < n.
  void (*add_multiple)(double factor, const double* row, std::int64_t n, double* sum);
};

/// The fastest loops this processor runs.
[[nodiscard]] const InnerLoops& inner_loops();
/// By name, for tests: "baseline" always, "avx2" or nullptr where it cannot run.
[[nodiscard]] const InnerLoops* inner_loops_named(const char* name);

}  // namespace attest::detail
