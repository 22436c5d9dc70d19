// The probabilistic bound of gradients (gradient-bounds.md, 8): the proved one of gradient_terms.h, less what the
// additions of products and sums add to it, and with what these make of independent random errors instead. Everything
// else stays as it is proved: what is common to a row (its log-sum-exp, its output), weights, dP and dS that are
// stored, and what leans to one side (leaning.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/bound/backward_profile.h"
#include "core/bound/gradient_terms.h"
#include "core/bound/leaning.h"
#include "core/bound/row_bound.h"

namespace attest::detail {

/// A sum of which each term is known, from above.
class RandomSum {
 public:
  void clear();
  /// `size` is at least |value|. `drop`: what leaves the term's proved error, and `root` of a sum of squares enters.
  void add(double value, double size, double drop, double root);
  /// What the sum errs by: at most `proved`, which is of all its errors. Of that, `added` times the sizes is by
  /// additions, whose unit is u; `drop` and `root` are of all terms together, beside their own.
  [[nodiscard]] double error(double proved, double added, double u, double probability, double drop = 0,
                             double root = 0);
  /// The part of the sizes that leans, each u times their sum at the most, after which so many units are proved.
  [[nodiscard]] double leaning(double u);
  [[nodiscard]] double size() const { return size_; }

 private:
  std::vector<Ranked> ranked_;
  std::vector<double> sizes_, shares_;
  std::vector<unsigned char> crowded_;
  double size_ = 0, drop_ = 0, squares_ = 0;
};

/// What a row's keys are made of beside RowSizes; arrays of its visible keys.
struct AlarmedRow {
  const RowKeys& keys;
  const BoundScratch& scores;           ///< as key_terms left it
  const RowSizes& sizes;                ///< with what a kernel errs by
  const RowErrors& errors;              ///< of a kernel
  const double* weight = nullptr;       ///< P
  const double* of_weight = nullptr;    ///< dP, signed
  const std::int64_t* place = nullptr;  ///< of each key in k and v; nullptr: their order
  const double *q = nullptr, *k = nullptr, *g = nullptr, *out = nullptr, *v = nullptr;
  std::int64_t v_stride = 0;
  // Rows of the group that share q or g, up to sign and a power of two: their products err alike.
  bool equal_q = false, equal_g = false;
};

/// What the assumption makes of a row: of each key what leaves the proved errors (RowErrors) and the root of squares
/// that enters, in the same units.
class RowShares {
 public:
  void take(const BackwardProfile& p, const AlarmedRow& row);

  std::vector<double> of_k_drop, of_k_root;  ///< of dS_j among the keys of a row, without D
  std::vector<double> of_q_drop, of_q_root;  ///< of dS_j among the rows of a key
  std::vector<double> of_g_drop, of_g_root;  ///< of P_j
  double delta_drop = 0, delta_root = 0;     ///< of D
  bool delta_varies = false;                 ///< is its error another one in each row?

 private:
  /// Per key, of dP and of a score, with the part that leans added to the drop.
  struct Dot {
    double drop = 0, root = 0;
  };
  void take_dots(const BackwardProfile& p, const AlarmedRow& row);
  void take_delta(const BackwardProfile& p, const AlarmedRow& row);

  std::vector<Dot> products_, scores_;
  std::vector<unsigned char> equal_product_, equal_score_;
  std::vector<std::int64_t> all_;
  std::vector<double> scaled_q_;
  EqualDigits equal_;
  RandomSum sum_;
};

}  // namespace attest::detail
