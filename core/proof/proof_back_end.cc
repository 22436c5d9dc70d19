#include "core/proof/proof_back_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/proof/evaluation.h"
#include "core/proof/finite_field.h"
#include "core/proof/sign.h"
#include "core/support/errors.h"
#include "core/support/infinity.h"
#include "core/support/names.h"

namespace attest {
namespace {

constexpr auto nothing_known = [](std::uint32_t) { return false; };

/// The back ends that draw nothing.
class Certain : public ProofBackEnd {
 public:
  [[nodiscard]] std::optional<SymbolicCertificate> certificate(const ExpressionScope&, std::uint32_t,
                                                               std::uint32_t) override {
    return std::nullopt;
  }
  [[nodiscard]] bool made_sure(const ExpressionScope&, double) override { return true; }
  [[nodiscard]] double log2_error() const override { return -infinity; }
};

/// A scope and what was evaluated in it.
template <class Scope>
struct Held {
  template <class... Arguments>
  Held(const ExpressionScope& graph, NodeMap& places, Arguments&&... arguments)
      : scope(std::forward<Arguments>(arguments)...), evaluation(graph, scope, places) {}
  Scope scope;
  Evaluation<Scope> evaluation;
};

/// A ring for what is compared now, just large enough: elements of one output row share their exponentials, those of
/// different rows none, and polynomials cost as many words as their ring has indeterminates.
class SymbolicBackEnd final : public Certain {
 public:
  [[nodiscard]] BackEnd kind() const override { return BackEnd::symbolic; }
  [[nodiscard]] bool identical(const ExpressionScope& graph, std::uint32_t a, std::uint32_t b) override {
    Evaluation<SymbolicScope>& numbers = ring_for(graph, {a, b});
    const Symbolic left = numbers.at(a), right = numbers.at(b);
    return attest::identical(left, right);
  }
  [[nodiscard]] bool known_nonnegative(const ExpressionScope& graph, std::uint32_t x) override {
    return ring_for(graph, {x, x}).at(x).is_known_nonnegative();
  }
  [[nodiscard]] bool known_positive(const ExpressionScope& graph, std::uint32_t x) override {
    return ring_for(graph, {x, x}).at(x).is_known_positive();
  }
  [[nodiscard]] std::string difference(const ExpressionScope& graph, std::uint32_t a, std::uint32_t b) override {
    return certificate(graph, a, b)->difference;
  }
  [[nodiscard]] std::optional<SymbolicCertificate> certificate(const ExpressionScope& graph, std::uint32_t a,
                                                               std::uint32_t b) override {
    Evaluation<SymbolicScope>& numbers = ring_for(graph, {a, b});
    const Symbolic left = numbers.at(a), right = numbers.at(b);
    return attest::certificate(left, right);
  }

 private:
  [[nodiscard]] Evaluation<SymbolicScope>& ring_for(const ExpressionScope& graph, std::array<std::uint32_t, 2> roots) {
    const auto room = [](const ExpressionNeeds& n) { return n.inputs + n.references + n.exponentials + n.logarithms; };
    if (held_) {
      Evaluation<SymbolicScope>& numbers = held_->evaluation;
      const ExpressionNeeds more =
          needs_of(graph, roots, seen_, [&](std::uint32_t node) { return numbers.knows(node); });
      if (held_->scope.size() + room(more) <= room_) return numbers;
    }
    held_.reset();
    room_ = room(needs_of(graph, roots, seen_, nothing_known)) + spare;
    return held_.emplace(graph, places_, room_).evaluation;
  }
  /// For the values of a further column.
  static constexpr std::size_t spare = 4;
  NodeMap seen_, places_;
  std::optional<Held<SymbolicScope>> held_;
  std::size_t room_ = 0;
};

/// A field for the exponentials of what is compared now; the errors of all fields of a pass add up, those of passes
/// with other draws multiply.
class FieldBackEnd final : public ProofBackEnd {
 public:
  [[nodiscard]] BackEnd kind() const override { return BackEnd::finite_field; }
  [[nodiscard]] bool identical(const ExpressionScope& graph, std::uint32_t a, std::uint32_t b) override {
    if (!agree(graph, a, b)) return false;
    pairs_.push_back({a, b});
    return true;
  }
  [[nodiscard]] bool known_nonnegative(const ExpressionScope&, std::uint32_t) override {
    throw NotTreated("is an inequality, and a finite field has no order");
  }
  [[nodiscard]] bool known_positive(const ExpressionScope&, std::uint32_t) override {
    throw NotTreated("is an inequality, and a finite field has no order");
  }
  [[nodiscard]] std::string difference(const ExpressionScope&, std::uint32_t, std::uint32_t) override {
    return "something that is not zero at a random point";
  }
  [[nodiscard]] std::optional<SymbolicCertificate> certificate(const ExpressionScope&, std::uint32_t,
                                                               std::uint32_t) override {
    return std::nullopt;
  }
  [[nodiscard]] bool made_sure(const ExpressionScope& graph, double wanted) override {
    end_pass();
    for (int pass = 1; log2_error() > wanted; ++pass) {
      if (pass == 16) throw ProofTooLarge(fmt::format("16 passes leave an error of 2^{:.1f}", log2_error()));
      for (const auto& [a, b] : pairs_)
        if (!agree(graph, a, b)) return false;
      end_pass();
    }
    return true;
  }
  [[nodiscard]] double log2_error() const override { return log2_passes_; }

 private:
  [[nodiscard]] bool agree(const ExpressionScope& graph, std::uint32_t a, std::uint32_t b) {
    const std::array<std::uint32_t, 2> roots{a, b};
    const auto known = [&](std::uint32_t node) { return held_ && held_->evaluation.knows(node); };
    used_ += needs_of(graph, roots, seen_, known).exponentials;
    for (;;) {
      if (!held_ || used_ > room_) {
        end_field();
        room_ = used_ = needs_of(graph, roots, seen_, nothing_known).exponentials;
        held_.emplace(graph, places_, FieldSeed::drawn(), sides_share_ ? room_ / 2 + 2 : room_ + 1);
      }
      try {
        return agree_here(a, b);
      } catch (const ProofTooLarge&) {
        if (!sides_share_) throw;
        // What this field found equal before stays counted.
        sides_share_ = false;
        end_field();
      }
    }
  }
  [[nodiscard]] bool agree_here(std::uint32_t a, std::uint32_t b) {
    const Residue left = held_->evaluation.at(a), right = held_->evaluation.at(b);
    return attest::identical(left, right);
  }
  void end_field() {
    if (!held_) return;
    pass_ += std::exp2(held_->scope.log2_error());
    held_.reset();
  }
  void end_pass() {
    end_field();
    // A sum of up to 2^32 terms in double.
    log2_passes_ += std::log2(pass_ * (1 + 0x1p-20));
    pass_ = 0;
  }

  NodeMap seen_, places_;
  std::optional<Held<FieldScope>> held_;
  std::size_t room_ = 0, used_ = 0;
  /// Where the two sides are equal, the exponentials of one are mostly those of the other times a common factor, and a
  /// fingerprint needs a residue for each that is independent: half the room does, until it does not.
  bool sides_share_ = true;
  double pass_ = 0, log2_passes_ = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
};

struct SignInputs {
  using Number = Sign;
  [[nodiscard]] static Sign real(const std::string&) { return Sign::number(SignSet::any); }
  [[nodiscard]] static Sign positive(const std::string&) { return Sign::number(SignSet::positive); }
};

class SignBackEnd final : public Certain {
 public:
  [[nodiscard]] BackEnd kind() const override { return BackEnd::sign; }
  [[nodiscard]] bool identical(const ExpressionScope&, std::uint32_t, std::uint32_t) override {
    throw NotTreated("is an equality, and signs have none");
  }
  [[nodiscard]] bool known_nonnegative(const ExpressionScope& graph, std::uint32_t x) override {
    return signs_of(graph, x).within(SignSet::zero | SignSet::positive);
  }
  [[nodiscard]] bool known_positive(const ExpressionScope& graph, std::uint32_t x) override {
    return signs_of(graph, x).within(SignSet::positive);
  }
  [[nodiscard]] std::string difference(const ExpressionScope&, std::uint32_t, std::uint32_t) override {
    return "unknown";
  }

 private:
  [[nodiscard]] SignSet signs_of(const ExpressionScope& graph, std::uint32_t x) {
    if (!held_) held_.emplace(graph, places_);
    return held_->evaluation.at(x).signs();
  }
  NodeMap places_;
  std::optional<Held<SignInputs>> held_;
};

class TaintBackEnd final : public Certain {
 public:
  [[nodiscard]] BackEnd kind() const override { return BackEnd::taint; }
  [[nodiscard]] bool identical(const ExpressionScope&, std::uint32_t a, std::uint32_t b) override {
    if (a != b) throw NotTreated("compares what is computed from other inputs, or by other operations");
    return true;
  }
  [[nodiscard]] bool known_nonnegative(const ExpressionScope&, std::uint32_t) override {
    throw NotTreated("is an inequality, and what a number depends on says nothing of its size");
  }
  [[nodiscard]] bool known_positive(const ExpressionScope&, std::uint32_t) override {
    throw NotTreated("is an inequality, and what a number depends on says nothing of its size");
  }
  [[nodiscard]] std::string difference(const ExpressionScope&, std::uint32_t, std::uint32_t) override {
    return "unknown";
  }
};

}  // namespace

BackEnd back_end_from(std::string_view name) {
  if (const auto found = named<BackEnd>(name)) return *found;
  throw UsageError(
      fmt::format("--back-end {} is not known{}", in_quotes(name), suggestion(name, Words<BackEnd>::names)));
}

std::unique_ptr<ProofBackEnd> make_back_end(BackEnd kind) {
  switch (kind) {
    case BackEnd::symbolic:
      return std::make_unique<SymbolicBackEnd>();
    case BackEnd::finite_field:
      return std::make_unique<FieldBackEnd>();
    case BackEnd::sign:
      return std::make_unique<SignBackEnd>();
    case BackEnd::taint:
      return std::make_unique<TaintBackEnd>();
  }
  return nullptr;
}

}  // namespace attest
