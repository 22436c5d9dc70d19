// Expression: a scalar of the core that computes nothing and writes down what is to be computed, so that one run of the
// core can be evaluated afterwards on any scalar of proofs (evaluation.h), and one row of it without the others.
//
// An expression is a node of an acyclic graph. Equal steps on equal nodes are one node, in the order of their operands:
// two expressions with the same node ask for the same operations on the same inputs in the same order. What is so equal
// is equal for all reals, and bit by bit in any deterministic arithmetic, and inputs that the node does not reach
// cannot reach the number, whatever they hold.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/definition/scalar.h"
#include "core/proof/proof.h"

namespace attest {

/// How a node came to be.
enum class Step : std::uint8_t {
  input,     ///< left: its number
  constant,  ///< left: its number
  sum,       ///< of left and right, as all below
  difference,
  product,
  quotient,
  exponential,  ///< of left
  logarithm,    ///< of left
  tangent,      ///< the hyperbolic one, of left
  reference,    ///< the reference point of the row that left lists; the same row has the same one
  list          ///< left: the list before, itself for the first; right: what is added
};

struct ExpressionNode {
  Step step = Step::input;
  bool positive = false;  ///< > 0 whatever the inputs are, as far as signs of the parts tell
  std::uint32_t left = 0, right = 0;
};

/// A node, -inf, or undefined. All operands of an operation come from the ExpressionScope that is current.
class Expression {
 public:
  Expression() = default;  ///< undefined: any use throws UndefinedUsed
  [[nodiscard]] ProofKind kind() const { return kind_; }
  /// Of a number; throws UndefinedUsed or InfinityMisused otherwise.
  [[nodiscard]] std::uint32_t node() const;

  friend Expression operator+(const Expression& a, const Expression& b);
  friend Expression operator-(const Expression& a, const Expression& b);
  friend Expression operator*(const Expression& a, const Expression& b);
  friend Expression operator/(const Expression& a, const Expression& b);

 private:
  friend class ExpressionScope;
  friend struct ScalarTraits<Expression>;
  Expression(ProofKind kind, std::uint32_t node) : kind_(kind), node_(node) {}

  ProofKind kind_ = ProofKind::undefined;
  std::uint32_t node_ = 0;  ///< of a number
};

/// The nodes of one proof. While it lives, expressions of this thread are made in it; scopes nest.
class ExpressionScope {
 public:
  ExpressionScope();
  ~ExpressionScope();
  ExpressionScope(const ExpressionScope&) = delete;
  ExpressionScope& operator=(const ExpressionScope&) = delete;

  /// A fresh input: any real number, or any positive one.
  [[nodiscard]] Expression real(const std::string& name) { return input(name, false); }
  [[nodiscard]] Expression positive(const std::string& name) { return input(name, true); }

  [[nodiscard]] const ExpressionNode& operator[](std::uint32_t node) const {
    return (*pages_[node / page_size])[node % page_size];
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::string& name(std::uint32_t input) const { return names_[input]; }
  [[nodiscard]] double constant(std::uint32_t number) const { return constants_[number]; }

  /// Throws ProofError where there is none.
  [[nodiscard]] static ExpressionScope& current();
  /// The node of that step, an old one where there is one already. Throws ProofTooLarge beyond 2^31.
  [[nodiscard]] std::uint32_t made(Step step, bool positive, std::uint32_t left, std::uint32_t right = 0);
  [[nodiscard]] std::uint32_t made(double constant);

 private:
  [[nodiscard]] Expression input(const std::string& name, bool positive);
  void grow();

  // In pages, so that nodes never move: a proof may have 10^8.
  static constexpr std::size_t page_size = std::size_t{1} << 12U;
  using Page = std::array<ExpressionNode, page_size>;
  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t size_ = 0;
  std::vector<std::uint32_t> slots_;  ///< open addressing over nodes, +1; 0: free
  std::vector<std::string> names_;
  std::vector<double> constants_;
  std::unordered_map<double, std::uint32_t> constant_nodes_;
  ExpressionScope* before_;
};

template <>
struct ScalarTraits<Expression> {
  static constexpr std::string_view name = "expression";
  /// Exact. Throws ProofError outside an ExpressionScope.
  [[nodiscard]] static Expression from_double(double value);
  [[nodiscard]] static double to_double(const Expression&) {
    throw NotRepresentable("an expression is not a number that a double could hold");
  }
  [[nodiscard]] static Expression minus_infinity() { return {ProofKind::minus_infinity, 0}; }
  [[nodiscard]] static bool is_minus_infinity(const Expression& x) { return x.kind() == ProofKind::minus_infinity; }
  [[nodiscard]] static Expression undefined() { return {}; }
  [[nodiscard]] static Expression exp(const Expression& x);  ///< exp(-inf) = 0
  [[nodiscard]] static Expression log(const Expression& x);
  [[nodiscard]] static Expression tanh(const Expression& x);
  /// A node of the row; what it stands for is the evaluating scalar's choice.
  [[nodiscard]] static Expression reference_point(std::span<const Expression> row);
};

}  // namespace attest

namespace Eigen {
template <>
struct NumTraits<attest::Expression> : attest::proof::EigenTraits<attest::Expression> {};
}  // namespace Eigen
