#include "properties/language/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "core/kernel/formal.h"
#include "core/problem/sight.h"
#include "core/support/printed.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

bool has_claim(const std::vector<Claim>& claims, Claim claim) {
  return std::ranges::find(claims, claim) != claims.end();
}

Verdict not_listed(Gradient gradient) {
  return skipped(fmt::format("the manifest's backward.gradients do not list {}", name_of(gradient)));
}

AllowedError allowed_by(const ElementBound& b) {
  return {b.allowed, b.excuse, b.finite_required, b.value, b.certificate};
}

}  // namespace

struct BackwardRun::Passes {
  Case problem;
  BackwardInputs given;
  Tensor own_lse;
  std::array<Values, gradient_count> gradients;
  // What bounds follow from.
  Arithmetic forward{};
  BackwardArithmetic backward{};
  GradientOptions options{};
  bool ignores_dead_values = false;  ///< of the forward pass
  std::optional<GradientBounds> bounds{};
  std::optional<AttentionBounds> out_bounds{};

  AllowedError bound(Gradient gradient, std::int64_t e) {
    if (!bounds) bounds = gradient_bounds(forward_of(problem), given, forward, backward, options);
    return allowed_by((*bounds)[static_cast<std::size_t>(gradient)][static_cast<std::size_t>(e)]);
  }
  AllowedError bound_of_out(std::int64_t e) {
    if (!out_bounds) out_bounds = attention_bounds(forward_of(problem), forward, ignores_dead_values);
    return allowed_by(out_bounds->elements[static_cast<std::size_t>(e)]);
  }
  /// Of those that `judged` chooses.
  [[nodiscard]] std::array<Verdict, gradient_count> verdicts(const GradientOptions& how,
                                                             const std::function<bool(Gradient)>& judged) const {
    std::array<Tensor, gradient_count> found;
    for (const Gradient one : every_gradient)
      if (const auto at = static_cast<std::size_t>(one); judged(one)) found[at] = gradients[at].tensor();
    std::array<Verdict, gradient_count> all =
        judge_gradients(forward_of(problem), given, found, forward, backward, how);
    for (const Gradient of : every_gradient) {
      const auto at = static_cast<std::size_t>(of);
      Verdict& one = all[at];
      if (one.outcome == Outcome::violated && how.at == GradientsAt::definition)
        one.compared = {{std::make_shared<const Case>(problem), one.element, found[at][one.element], of}};
      // It is no element of an output.
      one.element = -1;
    }
    return all;
  }
  void take(const Manifest& manifest, const Case& c) {
    problem = c;
    given.d_out = c[Slot::d_out], given.d_lse = c[Slot::d_lse];
    if (GenericInputs::in_use()) return;
    forward = manifest.arithmetic_for(c), backward = manifest.backward_arithmetic_for(c);
    options.ignores_dead_values = has_claim(manifest.backward_terms.claims, Claim::ignores_dead_values);
    ignores_dead_values = manifest.claims_to(Claim::ignores_dead_values);
  }
  void run_backward(Kernel& kernel, const GradientChoice& wanted = all_gradients) {
    Reply back = kernel.backward(problem, {given.out, given.lse, wanted, own_lse}, problem.dtype());
    if (back.status != CallStatus::ok) throw_without_output(kernel.manifest(), problem, back.status, back.message);
    gradients = std::move(back.gradients);
  }
};

namespace {

/// The problem that comes before the backward pass. Throws NoAnswer where nothing is asked of it.
Case asked_forward(const Kernel& kernel, const Case& c) {
  Case forward = forward_of(within_reach(kernel, c));
  if (kernel.manifest().backward_terms.masked_row == MaskedGradient::undeclared && has_fully_masked_row(forward))
    throw NoAnswer{
        skipped("has a row without a key; the manifest's backward.masked_row does not say what becomes of "
                "its gradients")};
  return forward;
}

}  // namespace

BackwardRun::BackwardRun(Kernel& kernel, const Case& c) : passes_(std::make_shared<Passes>()) {
  const Case forward = asked_forward(kernel, c);
  Passes& passes = *passes_;
  passes.take(kernel.manifest(), c);
  if (!GenericInputs::in_use()) {
    Reply reply = answer(kernel, forward, c.dtype(), /*want_lse=*/true);
    passes.given.out = std::move(reply.out.tensor()), passes.given.lse = std::move(reply.lse.tensor());
    passes.own_lse = std::move(reply.own_lse.tensor());
  }
  passes.run_backward(kernel);
}

BackwardRun::BackwardRun(Kernel& kernel, const Case& c, BackwardCall answers) : passes_(std::make_shared<Passes>()) {
  static_cast<void>(asked_forward(kernel, c));
  Passes& passes = *passes_;
  passes.take(kernel.manifest(), c);
  passes.given.out = std::move(answers.out), passes.given.lse = std::move(answers.lse);
  passes.own_lse = std::move(answers.own_lse);
  passes.options.at = GradientsAt::answers;
  passes.run_backward(kernel);
}

BackwardRun BackwardRun::again(Kernel& kernel) const {
  return asked_for(kernel, all_gradients);
}

BackwardRun BackwardRun::asked_for(Kernel& kernel, const GradientChoice& some) const {
  BackwardRun other = *this;
  other.passes_ = std::make_shared<Passes>(*passes_);
  other.passes_->run_backward(kernel, some);
  return other;
}

BackwardRun BackwardRun::known_as(Case c) const {
  BackwardRun other = *this;
  other.passes_ = std::make_shared<Passes>(*passes_);
  other.passes_->problem = std::move(c);
  other.passes_->bounds.reset(), other.passes_->out_bounds.reset();
  return other;
}

const Case& BackwardRun::problem() const {
  return passes_->problem;
}
const BackwardInputs& BackwardRun::given() const {
  return passes_->given;
}
BackwardCall BackwardRun::answers() const {
  return {passes_->given.out, passes_->given.lse, all_gradients, passes_->own_lse};
}
Verdict BackwardRun::absent(Gradient gradient) const {
  if (has_argument_of(passes_->problem, gradient)) return not_listed(gradient);
  return skipped(gradient == Gradient::sink ? "has no sinks" : "has no additive mask");
}
bool BackwardRun::has(Gradient gradient) const {
  return passes_->gradients[static_cast<std::size_t>(gradient)].present();
}

Result BackwardRun::of(Gradient gradient) const {
  if (!has(gradient)) throw NoAnswer{absent(gradient)};
  return Result(
      std::make_shared<const Run>(passes_->problem, passes_->gradients[static_cast<std::size_t>(gradient)],
                                  [passes = passes_, gradient](std::int64_t e) { return passes->bound(gradient, e); }));
}

Result BackwardRun::out(Kernel& kernel) const {
  if (GenericInputs::in_use()) return run(kernel, forward_of(passes_->problem));
  return Result(std::make_shared<const Run>(forward_of(passes_->problem), passes_->given.out,
                                            [passes = passes_](std::int64_t e) { return passes->bound_of_out(e); }));
}

Verdict BackwardRun::judged(GradientsAt at, std::int64_t rows, double alarm) const {
  GradientOptions options = passes_->options;
  options.at = at, options.rows = rows, options.alarm_probability = alarm;
  std::array<Verdict, gradient_count> all = passes_->verdicts(options, [](Gradient) { return true; });
  std::int64_t judged = 0, there = 0;
  for (const Verdict& one : all) judged += one.rows_judged, there += one.rows;
  Verdict worst = std::move(all[0]);
  for (std::size_t other = 1; other < all.size(); ++other) worst = worse_of({std::move(worst), std::move(all[other])});
  worst.rows_judged = judged, worst.rows = there;
  return worst;
}

Verdict BackwardRun::judged(Gradient gradient, std::int64_t rows, double alarm) const {
  if (!has(gradient)) return absent(gradient);
  GradientOptions options = passes_->options;
  options.rows = rows, options.alarm_probability = alarm;
  options.measure_errors = true;
  return passes_->verdicts(options, [&](Gradient one) { return one == gradient; })[static_cast<std::size_t>(gradient)];
}

Match gradient_bits_if(const Kernel& kernel, std::initializer_list<Claim> claims) {
  const bool all = std::ranges::all_of(
      claims, [&](Claim claim) { return has_claim(kernel.manifest().backward_terms.claims, claim); });
  return all ? bits_if(kernel, claims) : Match::bound;
}

Match match_of_dead_gradients(const Kernel& kernel) {
  if (gradient_bits_if(kernel, {Claim::deterministic}) == Match::bound) return Match::bound;
  const bool dead = gradient_bits_if(kernel, {Claim::ignores_dead_values}) == Match::bits;
  return dead ? Match::bits : Match::values;
}

Match match_of_unseen_rows(const Kernel& kernel) {
  const Match match = gradient_bits_if(kernel, {Claim::deterministic, Claim::batch_invariant});
  return match == Match::bound ? match : Match::values;
}

Verdict each_gradient(const BackwardRun& run, std::initializer_list<Gradient> gradients,
                      const std::function<Verdict(Gradient)>& law) {
  Verdict worst = skipped(std::string(no_such_gradient));
  for (const Gradient gradient : gradients)
    if (run.has(gradient)) worst = worse_of({std::move(worst), law(gradient)});
  return worst;
}

Verdict each_gradient(const BackwardRun& run, const std::function<Verdict(Gradient)>& law) {
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v, Gradient::mask, Gradient::sink}, law);
}

Verdict about(Gradient gradient, Verdict verdict) {
  verdict.element = -1;
  verdict.compared.clear();
  if (!verdict.reason.empty() && verdict.outcome == Outcome::violated)
    verdict.reason = fmt::format("{}: {}", name_of(gradient), verdict.reason);
  return verdict;
}

Verdict gradients_agree(Gradient gradient, Sides sides, Match match) {
  return about(gradient, agree_in_domain(sides, match));
}
Verdict gradients_agree(Gradient gradient, NumberSides sides) {
  return about(gradient, agree(sides));
}

Verdict gradients_scale(Gradient gradient, Sides sides, double factor, Match match) {
  const auto& [left, right] = sides;
  if (match != Match::bound && (factor == 1 || factor == -1) && !left.run().out().is<Expressions>()) {
    for (std::int64_t e = 0; e < left.elements(); ++e) {
      const double x = left.run().out()[left.origin(e)], y = factor * right.run().out()[right.origin(e)];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      return about(gradient, violated(Violation::bits,
                                      fmt::format("element {} is {} and {} was expected of a deterministic kernel", e,
                                                  printed(x), printed(y))));
    }
    return {};
  }
  return gradients_agree(gradient, {Numbers(left), Numbers(right).scaled(factor)});
}

}  // namespace attest
