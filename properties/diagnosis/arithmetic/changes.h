// Changes that loosen what a kernel declares of its arithmetic, those of a kind together: explain.h tries them on the
// cases that a kernel violates.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/backward_arithmetic.h"
#include "core/measure/error_statistics.h"

namespace attest {

/// What a manifest declares of one dtype.
struct Declaration {
  Arithmetic forward;
  std::optional<BackwardArithmetic> backward = {};  ///< nothing: not stated, so universal_backward_arithmetic
  [[nodiscard]] bool operator==(const Declaration&) const = default;
};

/// What a change does to a declaration: written as what it does to one of the two.
class Loosening {
 public:
  template <std::invocable<Arithmetic&> Function>
  Loosening(Function loosen)  // NOLINT(google-explicit-constructor): a list of changes is to be read as one
      : loosen_([loosen = std::move(loosen)](Declaration& d) { loosen(d.forward); }) {}
  template <std::invocable<BackwardArithmetic&> Function>
  Loosening(Function loosen)  // NOLINT(google-explicit-constructor)
      : loosen_([loosen = std::move(loosen)](Declaration& d) {
          if (!d.backward) d.backward = universal_backward_arithmetic(d.forward);
          loosen(*d.backward);
        }) {}
  /// Some, one after the other.
  explicit Loosening(std::vector<Loosening> each)
      : loosen_([each = std::move(each)](Declaration& d) {
          for (const Loosening& one : each) one(d);
        }) {}
  void operator()(Declaration& declaration) const { loosen_(declaration); }

 private:
  std::function<void(Declaration&)> loosen_;
};

/// One change that loosens what is declared.
struct Change {
  std::string words;
  Loosening apply;
  std::string_view place = {};  ///< of a narrower format: what is kept in it
  bool sums_rounded = false;    ///< the denominator is said to sum rounded weights
  std::optional<Stage> stage = {};
};

/// The same operations in another order or form.
[[nodiscard]] std::vector<Change> rearrangements(const Arithmetic& declared);
/// One format narrower than it is declared. `capped`: a case has a softcap.
[[nodiscard]] std::vector<Change> narrowings(const Arithmetic& declared, bool capped);
/// Every number that is kept, in one format.
[[nodiscard]] std::vector<Change> everything_narrower(const Arithmetic& declared, bool capped);
/// An exp of 2^n units in the last place, the most accurate first.
[[nodiscard]] std::vector<Change> inaccurate_exps(const Arithmetic& declared);
/// A tanh of so many bits, the most accurate first.
[[nodiscard]] std::vector<Change> inaccurate_tanhs(const Arithmetic& declared);
/// What tanh may err by relative to its result, or absolutely where only that is stated.
[[nodiscard]] double allowed_of_tanh(const Arithmetic& a);

/// Other places where what is kept is divided by 1 - p.
[[nodiscard]] std::vector<Change> places_of_dropout(const Arithmetic& declared);
/// Other forms of what a slope adds under a causal form.
[[nodiscard]] std::vector<Change> forms_of_slopes(const Arithmetic& declared);
/// Other places where factors act.
[[nodiscard]] std::vector<Change> places_of_factors(const Arithmetic& declared);

/// The operations of a backward pass in another order or form.
[[nodiscard]] std::vector<Change> backward_rearrangements(const BackwardArithmetic& declared);
/// One format of a backward pass narrower than it is declared, or assumed.
[[nodiscard]] std::vector<Change> backward_narrowings(const BackwardArithmetic& declared);

/// All at once; of maxima the one that is taken last, none.
[[nodiscard]] Change all_of(const std::vector<Change>& changes);
[[nodiscard]] std::vector<Change> each_with(const Change& always, const std::vector<Change>& changes);
[[nodiscard]] std::vector<Change> pairs_of(const std::vector<Change>& changes);

}  // namespace attest
