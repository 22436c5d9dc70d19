// Problems whose answers show single roundings: many rows in one call, each with sums or weights that are known
// exactly.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/case.h"

namespace attest {

/// One term of a sum, by its place.
struct SumTerm {
  std::int64_t at = 0;
  double value = 0;
};
/// The terms of one sum that are not 0.
using SumTerms = std::vector<SumTerm>;

/// A key and its score, which is the sum of `pieces`: of as many dimensions, each held by every dtype.
struct ScoredKey {
  std::int64_t at = 0;
  std::vector<double> pieces;
};

/// What the weight of one key is beside that of a key of the largest score.
struct WeightQuestion {
  std::vector<double> pieces;         ///< of the target's score, of at most 8 bits each
  std::int64_t target = 0;            ///< where the target is
  std::vector<double> top;            ///< pieces of the largest score; empty: 0
  std::int64_t tops = 0;              ///< where the keys of the largest score begin: top_keys() of them
  std::vector<ScoredKey> others;      ///< further keys, without a value
  std::optional<long double> near{};  ///< about the weight; nothing: exp of the difference
};

using Weights = std::vector<long double>;
/// What the weights of the questions are exactly, without a softcap.
[[nodiscard]] Weights exact_weights(const std::vector<WeightQuestion>& questions);
/// The largest relative error; infinite where an answer is no number.
[[nodiscard]] long double largest_error(const Weights& found, const Weights& right);

/// Asks the attention entry of a kernel in one dtype. Keys that a question does not name have weights of nothing beside
/// the others.
class ArithmeticQuestions {
 public:
  ArithmeticQuestions(Kernel& kernel, DType dtype);

  /// Why nothing can be asked; empty: it can.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  /// The finest that the kernel offers: it shows most.
  [[nodiscard]] DType output() const { return output_; }
  /// Of the values, which may have a format of their own.
  [[nodiscard]] DType values() const { return formats_.v; }
  /// q or k is in f16, whose products reach 2^29 and no further.
  [[nodiscard]] bool is_short() const { return dtype_ == DType::f16 || formats_.k == DType::f16; }
  [[nodiscard]] const Manifest& manifest() const { return kernel_.manifest(); }
  [[nodiscard]] Kernel& kernel() { return kernel_; }
  /// The fewest keys that the limits allow from that number on; nothing where there are none or the problem would be
  /// too large.
  [[nodiscard]] std::optional<std::int64_t> keys_from(std::int64_t keys) const;
  /// The same, or the most that are allowed where those are fewer, but 4 at least.
  [[nodiscard]] std::optional<std::int64_t> keys_near(std::int64_t keys) const;
  /// The fewest head dimensions from that number on of which 1/sqrt is a power of two where no other scale is taken.
  [[nodiscard]] std::optional<std::int64_t> head_dim_from(std::int64_t dk) const;

  /// q.k over `dk` dimensions of which these are the products, times the scale, as the weight of a key shows it:
  /// infinite or NaN where it is too far from 1. Nothing where the kernel does not answer. All terms are powers of two,
  /// or a few bits more.
  [[nodiscard]] std::optional<std::vector<double>> products(const std::vector<SumTerms>& sums, std::int64_t dk);
  /// Sums over `keys` keys of weight 1 and of these values, of which `visible` count; the others have a score far
  /// below. The sums, up to the roundings of a division.
  [[nodiscard]] std::optional<std::vector<double>> sums(const std::vector<SumTerms>& sums, std::int64_t keys,
                                                        const std::vector<std::int64_t>& visible);
  /// 1 / (sum of the weights) of a key of score 0 and of others of that score, at those places of `keys`.
  [[nodiscard]] std::optional<double> denominator(std::int64_t top, double score, const std::vector<std::int64_t>& at,
                                                  std::int64_t keys);
  /// The weights, read to some `bits` bits: NaN where the answer is none. An output of few bits is asked twice, the
  /// second time for what is left of the first answer.
  [[nodiscard]] std::optional<Weights> weights(const std::vector<WeightQuestion>& questions, std::int64_t keys);
  /// Problems have so many rows from now on, or as many as are allowed; they have one at first. All rows are the same.
  void ask_rows(std::int64_t rows) { rows_ = rows; }
  /// The rows of problems of so many keys.
  [[nodiscard]] std::int64_t rows(std::int64_t keys) const;
  /// Keys of the largest score in a question for weights: each takes a piece of the expected weight away.
  [[nodiscard]] std::int64_t top_keys() const { return top_keys_; }
  void read_bits(int bits);
  /// Problems have a softcap from now on; 0: none. Scores of weights are what becomes of their pieces then.
  void cap(double softcap) { softcap_ = softcap; }
  /// Any problem: the answer by batch entry and column, of the first head and the last row, which sees every key.
  [[nodiscard]] std::optional<std::vector<double>> ask(const Case& c, DType output);
  /// An empty problem: one scale, q and k and v of 0.
  [[nodiscard]] Case blank(std::int64_t batch, std::int64_t keys, std::int64_t dk, std::int64_t dv) const;
  /// Sets an element in every head, and of q in every row.
  static void set(Case& c, Slot slot, std::int64_t batch, std::int64_t row, std::int64_t column, double x);
  [[nodiscard]] std::int64_t value_dim(std::int64_t wanted, std::int64_t dk) const;
  [[nodiscard]] double scale(std::int64_t dk) const;
  /// What the last call that brought no answer came to.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  [[nodiscard]] std::optional<Weights> weights_once(const std::vector<WeightQuestion>& questions, std::int64_t keys);
  [[nodiscard]] long double score_of(const std::vector<double>& pieces) const;
  /// exp of what the target lies below the largest score.
  [[nodiscard]] long double expected_of(const WeightQuestion& asked) const;

  Kernel& kernel_;
  DType dtype_, output_;
  KvDtypes formats_;
  std::string why_not_, failure_;
  std::int64_t top_keys_ = 1, rows_ = 1;
  int bits_ = 24;  ///< of a weight that are read
  double softcap_ = 0;
};

}  // namespace attest
