// Formal runs: the core on expressions (expression.h), asked with the doubles of a case. Each double stands for an
// indeterminate, so that a property which moves, repeats, deletes or hides inputs moves indeterminates, and what it
// then finds equal is equal for all real inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/case.h"
#include "core/proof/expression.h"
#include "core/proof/proof_back_end.h"

namespace attest {

/// Which double of a case stands for which formula, for the time of one proof; the one made last on a thread is the one
/// in use.
///   0, ±1, ±3/4, … (at most 20 significant bits)   that number
///   -inf                                           -inf, what hides a key
///   NaN, +inf                                      a fresh indeterminate each time: whatever a dead place holds
///   ±2^k times a declared double                   ±2^k times its indeterminate
///   any other                                      a fresh indeterminate, the same for the same double
/// The last line keeps a proof sound where a property computes with inputs: what it computed is proved for any number
/// in its place. Where the theorem depends on how it was computed the two sides then differ, and nothing is proved.
/// Declared doubles have 53 random bits, so that none is the number, or the multiple, of another by chance.
class GenericInputs {
 public:
  /// What is compared is decided by the back end, which must outlive this.
  explicit GenericInputs(ProofBackEnd& back_end);
  ~GenericInputs();
  GenericInputs(const GenericInputs&) = delete;
  GenericInputs& operator=(const GenericInputs&) = delete;

  /// A number that a property states, as opposed to one that stands for any.
  [[nodiscard]] static bool is_constant(double value);
  /// `value` stands for a fresh indeterminate of that name, any real number or any positive one.
  void declare(double value, const std::string& name, bool positive = false);
  [[nodiscard]] Expression at(double value);
  /// A new double that stands for the formula, and one that stands for a fresh indeterminate.
  [[nodiscard]] double stand_for(const Expression& formula);
  [[nodiscard]] double any(bool positive = false);
  /// Doubles that nobody declared and that became indeterminates of their own.
  [[nodiscard]] std::int64_t undeclared() const { return undeclared_; }
  /// The constants that were read, other than 0, 1 and -1: what is proved is proved with these particular numbers.
  [[nodiscard]] const std::set<double>& particular() const { return particular_; }

  /// Whether two formulas are the same for all reals, by the back end: both -inf, or identical numbers. Counts those
  /// that are. Throws UndefinedUsed where one is undefined.
  [[nodiscard]] bool identical(const Expression& a, const Expression& b);
  /// >= 0, or > 0, for all reals as far as the back end can tell; counted too.
  [[nodiscard]] bool known_nonnegative(const Expression& x);
  [[nodiscard]] bool known_positive(const Expression& x);
  /// Of two numbers that are not identical, for a reader.
  [[nodiscard]] std::string difference(const Expression& a, const Expression& b);
  /// ProofBackEnd::made_sure.
  [[nodiscard]] bool made_sure(double wanted) { return back_end_.made_sure(scope_, wanted); }
  /// Comparisons so far.
  [[nodiscard]] std::int64_t comparisons() const { return comparisons_; }
  /// Keeps the certificates of comparisons from now on.
  void keep_certificates() { keeps_ = true; }
  [[nodiscard]] const std::vector<SymbolicCertificate>& certificates() const { return certificates_; }

  [[nodiscard]] static bool in_use();
  /// The one in use on this thread; throws ProofError where there is none.
  [[nodiscard]] static GenericInputs& current();

 private:
  ExpressionScope scope_;
  ProofBackEnd& back_end_;
  /// By significand in [1/2, 1): the indeterminate of that significand times 2^exponent.
  struct Known {
    Expression number;
    int exponent;
  };
  std::unordered_map<double, Known> known_;
  std::mt19937_64 doubles_;  ///< of stand_for; their seed is not that of any case's numbers
  std::set<double> particular_;
  std::int64_t undeclared_ = 0, anything_ = 0, comparisons_ = 0;
  bool keeps_ = false;
  std::vector<SymbolicCertificate> certificates_;
  GenericInputs* before_;
};

/// The core on expressions, which answers in Expressions: rows without a visible key are undefined, in out and in the
/// lse of an attention case. Its runs need a GenericInputs, and throw ProofError by name where a step is not allowed,
/// and NotTreated where a dtype is asked for.
[[nodiscard]] std::unique_ptr<Kernel> formal_kernel();

}  // namespace attest
