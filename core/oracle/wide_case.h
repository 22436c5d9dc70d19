// All elements of an output of the core on a wide scalar: exact in balls, each with its bound.
#pragma once

#include <functional>
#include <vector>

#include "core/oracle/rows/wide_row.h"
#include "core/problem/problem.h"

namespace attest::detail {

/// What is known of one element. A bound of no excuse, or an infinite one, stands beside an exact value.
struct WideElement {
  arb_srcptr exact = nullptr;  ///< null: there is none
  const Mag& allowed;
  const Mag& hull;
  Excuse excuse = Excuse::none;
};

class WideCase {
 public:
  /// The case must outlive this.
  WideCase(const Problem& c, const WideRounding& rounding);
  /// visit(e, element) of every element of the output, in order.
  using Visit = std::function<void(std::int64_t, const WideElement&)>;
  void evaluate(long bits, const Visit& visit);
  [[nodiscard]] bool encloses() const { return units_.encloses; }

 private:
  void evaluate_attention(long bits, const Visit& visit);
  void evaluate_multihead(long bits, const Visit& visit);
  /// Rows of the last two axes of a tensor, as they are.
  [[nodiscard]] WideMatrix rows_of(const Tensor& a, std::int64_t page, std::int64_t zeros = 0) const;
  /// Entry `page` of x times w, with the bias, and `extra` below it where there is one.
  [[nodiscard]] WideMatrix projected(const Tensor& x, std::int64_t page, const Tensor& w, const Tensor& bias,
                                     const Tensor& extra, long bits) const;
  /// The keys that row i of head h sees, and what a mask adds to them; `appended`: one more key that nothing hides.
  void see(WideProblem& problem, std::int64_t b, std::int64_t h, std::int64_t i, bool appended) const;
  /// Y of the row whose heads' outputs are `o`.
  void joined(const WideMatrix& o, const std::vector<Excuse>& excuses, std::int64_t row, long bits,
              const Visit& visit) const;

  const Problem& c_;
  WideUnits units_;
  WideRow row_;
};

}  // namespace attest::detail
