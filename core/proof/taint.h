// Taint: a scalar of the core that knows of a number only which inputs it was computed from. What an output does not
// list cannot reach it, whatever the input holds, NaN and infinities included: it was never looked at. That proves
// locality, suppression and the absence of leaks; an input that is listed may still cancel.
#pragma once

#include <algorithm>
#include <iterator>
#include <memory>
#include <vector>

#include "core/definition/scalar.h"
#include "core/proof/proof.h"

namespace attest {

/// The inputs that a number depends on at most, by their numbers; or -inf; or undefined.
class Taint {
 public:
  using Sources = std::vector<std::uint32_t>;  ///< ascending

  Taint() = default;  ///< undefined: any use throws UndefinedUsed
  [[nodiscard]] static Taint input(std::uint32_t source) { return {ProofKind::number, Sources{source}}; }
  [[nodiscard]] static Taint constant() { return {ProofKind::number, Sources{}}; }
  Taint(ProofKind kind, Sources sources) : kind_(kind), sources_(std::move(sources)) {}

  [[nodiscard]] ProofKind kind() const { return kind_; }
  /// Throws UndefinedUsed where the value is.
  [[nodiscard]] const Sources& sources() const {
    proof::require_defined(kind_);
    return sources_;
  }
  [[nodiscard]] bool depends_on(std::uint32_t source) const {
    return std::binary_search(sources().begin(), sources().end(), source);
  }

  friend Taint operator+(const Taint& a, const Taint& b) { return {proof::sum(a.kind_, b.kind_), joined(a, b)}; }
  friend Taint operator-(const Taint& a, const Taint& b) { return {proof::difference(a.kind_, b.kind_), joined(a, b)}; }
  /// -inf times anything throws InfinityMisused: this scalar knows no signs.
  friend Taint operator*(const Taint& a, const Taint& b) {
    return {proof::product(a.kind_, b.kind_, /*a_positive=*/false, /*b_positive=*/false), joined(a, b)};
  }
  friend Taint operator/(const Taint& a, const Taint& b) { return {proof::quotient(a.kind_, b.kind_), joined(a, b)}; }

 private:
  static Sources joined(const Taint& a, const Taint& b) {
    Sources all;
    std::set_union(a.sources_.begin(), a.sources_.end(), b.sources_.begin(), b.sources_.end(), std::back_inserter(all));
    return all;
  }

  ProofKind kind_ = ProofKind::undefined;
  Sources sources_;
};

template <>
struct ScalarTraits<Taint> {
  static constexpr std::string_view name = "taint";
  [[nodiscard]] static Taint from_double(double value) { return {proof::kind_of(value), {}}; }
  [[nodiscard]] static double to_double(const Taint&) { throw NotRepresentable("a taint is not a number of its own"); }
  [[nodiscard]] static Taint minus_infinity() { return {ProofKind::minus_infinity, {}}; }
  [[nodiscard]] static bool is_minus_infinity(const Taint& x) { return x.kind() == ProofKind::minus_infinity; }
  [[nodiscard]] static Taint undefined() { return {}; }
  [[nodiscard]] static Taint exp(const Taint& x) { return {ProofKind::number, x.sources()}; }
  [[nodiscard]] static Taint log(const Taint& x) {
    if (is_minus_infinity(x)) throw InfinityMisused("log(-inf)");
    return {ProofKind::number, x.sources()};
  }
  [[nodiscard]] static Taint tanh(const Taint& x) { return exp(x); }
  /// Looks at the whole row.
  [[nodiscard]] static Taint reference_point(std::span<const Taint> row) {
    Taint all = Taint::constant();
    for (const Taint& x : row) {
      if (is_minus_infinity(x)) throw InfinityMisused("a reference point among hidden scores");
      all = all + x;
    }
    return all;
  }
};

}  // namespace attest

namespace Eigen {
template <>
struct NumTraits<attest::Taint> : attest::proof::EigenTraits<attest::Taint> {};
}  // namespace Eigen
