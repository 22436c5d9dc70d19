// What tests ask of the two scopes in which inputs are indeterminates: whole matrices of them, whether logarithms are
// represented, and a statement run in a finite field until it is sure.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/definition/matrix.h"
#include "core/proof/finite_field.h"

namespace attest::test {

/// Residues have no logarithms.
template <class Scope>
inline constexpr bool has_log = !std::is_same_v<typename Scope::Number, Residue>;

/// rows x cols fresh indeterminates name00, name01, ...
template <class Scope>
[[nodiscard]] Matrix<typename Scope::Number> fresh_matrix(Scope& scope, const std::string& name, Index rows,
                                                          Index cols) {
  Matrix<typename Scope::Number> a(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) a(i, j) = scope.real(name + std::to_string(i) + std::to_string(j));
  return a;
}
template <class Scope>
[[nodiscard]] Vector<typename Scope::Number> fresh_vector(Scope& scope, const std::string& name, Index size) {
  Vector<typename Scope::Number> a(size);
  for (Index i = 0; i < size; ++i) a(i) = scope.real(name + std::to_string(i));
  return a;
}

/// Whether a statement was found true, and how surely.
struct FieldVerdict {
  bool holds = false;
  double log2_error = 0;          ///< of "holds"; a false one is certain
  std::vector<std::string> runs;  ///< FieldScope::report() of each, seeds included
};
/// Runs the statement in scopes of fresh seeds until it is false once or the product of the errors is at most 2^-60.
/// Throws ProofTooLarge where 16 scopes do not reach that.
[[nodiscard]] inline FieldVerdict proved_in_finite_field(const std::function<bool(FieldScope&)>& statement) {
  constexpr double wanted_log2 = -60;
  FieldVerdict verdict;
  for (int scopes = 0; scopes < 16; ++scopes) {
    FieldScope scope;
    verdict.holds = statement(scope);
    verdict.runs.push_back(scope.report());
    // An error above 1 says nothing, and less than nothing is not counted.
    verdict.log2_error += std::min(scope.log2_error(), 0.0);
    if (!verdict.holds || verdict.log2_error <= wanted_log2) return verdict;
  }
  throw ProofTooLarge("16 scopes leave too large an error: " + verdict.runs.back());
}

}  // namespace attest::test
