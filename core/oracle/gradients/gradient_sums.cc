#include "core/oracle/gradients/gradient_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/bound/underflow.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

constexpr double unit = 0x1p-53;

}  // namespace

void GradientSumsHere::clear(std::int64_t rows, std::int64_t columns) {
  width = columns;
  for (auto* array : {&value, &error, &here, &size}) array->assign(static_cast<std::size_t>(rows * columns), 0.0);
}

GradientColumns GradientSumsHere::row(std::int64_t i) {
  const std::int64_t at = i * width;
  return {value.data() + at, error.data() + at, size.data() + at};
}

ElementBound excused_element(Excuse why) {
  ElementBound bound;
  bound.excuse = why;
  bound.value = bound.certificate = std::numeric_limits<double>::quiet_NaN();
  bound.allowed = infinity;
  bound.finite_required = false;
  return bound;
}

ElementBound bound_of_sum(const BackwardProfile& kernel, const SumHere& sum, double scale, double phi, bool grouped) {
  ElementBound bound;
  bound.value = scale * sum.value;
  bound.certificate =
      (1 + 0x1p-20) * scale * sum.here + 8 * unit * std::fabs(bound.value) + (sum.size > 0 ? 0x1p-1070 : 0);
  bound.allowed = gradient_bound(kernel, sum.of_kernel, scale, phi, grouped);
  if (!(scale * sum.of_kernel.parts + bound.allowed <= kernel.H_o)) {
    bound.excuse = std::isfinite(bound.allowed) ? Excuse::overflow : Excuse::infinite;
    bound.finite_required = false;
  } else if (sum.size > 0 && bound.allowed >= scale * sum.size &&
             bound.allowed > 2 * kernel.u_o * scale * sum.of_kernel.exact) {
    bound.excuse = Excuse::vacuous;
  }
  return bound;
}

ArgumentSums::ArgumentSums(DType dtype, std::int64_t elements, double scale)
    : dtype_(dtype), scale_(scale), elements_(static_cast<std::size_t>(elements)) {}

void ArgumentSums::cover(std::int64_t at) {
  Excuse& excuse = elements_[static_cast<std::size_t>(at)].excuse;
  if (excuse == Excuse::padding) excuse = Excuse::none;
}

void ArgumentSums::add(std::int64_t at, const ArgumentTerm& term, const ArgumentShare& share) {
  Element& to = elements_[static_cast<std::size_t>(at)];
  to.sum.value += term.value, to.sum.error += term.error, to.sum.here += term.here;
  to.sum.size += term.size, to.sum.most += term.most;
  to.of_groups = to.of_groups || (to.terms > 0 && to.group != group_);
  to.group = group_;
  ++to.terms;
  if (!keeps_terms()) return;
  kept_.push_back({at, term.value, term.most, share});
  too_many_ = std::ssize(kept_) > most_alarmed_terms;
  if (too_many_) kept_ = {};
}

void ArgumentSums::take_profile(const BackwardProfile& kernel) {
  kernel_ = kernel;
  // The gradient is in the argument's own dtype.
  const Format &out = format_of(dtype_), &sums = format_of(kernel.declared.accumulate);
  kernel_.u_o = out.unit > sums.unit ? out.unit : 0;
  const bool narrower = out.unit > sums.unit || out.min_subnormal > sums.min_subnormal;
  kernel_.lam_o = narrower ? underflow_of(out, kernel.scores.declared.flushes_subnormals, false) : 0;
  kernel_.H_o = out.largest;
}

SumHere ArgumentSums::sum_of(const Element& of) const {
  const double added = pw(kernel_.u_a, of.terms + 1), apart = u_apart(of);
  SumHere sum{.value = of.sum.value, .size = of.sum.size};
  sum.here = of.sum.here + (of.terms + 4) * unit * of.sum.size;
  const double lost = 2 * (of.terms + 1) * (kernel_.lam_a + (apart > 0 ? kernel_.lam_o : 0)) * kernel_.gain;
  const double exact = std::fabs(sum.value) + sum.here;
  sum.of_kernel = {.exact = exact, .error = of.sum.error + join(added, apart) * of.sum.most + lost, .parts = exact};
  return sum;
}

double ArgumentSums::phi() const {
  // What late dropout multiplies in the end it multiplies here too.
  const bool late = kernel_.declared.late_dropout && kernel_.th_gain > 0;
  return scale_ != 1 || late ? kernel_.phi : 0;
}

ElementBound ArgumentSums::bound(std::int64_t at) const {
  const Element& of = elements_[static_cast<std::size_t>(at)];
  if (of.excuse != Excuse::none) return excused_element(of.excuse);
  const double most = of.sum.most * (1 + pw(kernel_.u_a, of.terms + 1)) * std::max(1.0, scale_);
  if (!(most <= std::min(kernel_.H_a, kernel_.H_o))) return excused_element(Excuse::overflow);
  return bound_of_sum(kernel_, sum_of(of), scale_, phi(), /*grouped=*/false);
}

void ArgumentSums::sort_terms() {
  first_.assign(elements_.size() + 1, 0);
  for (const Kept& term : kept_) ++first_[static_cast<std::size_t>(term.at) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  std::vector<Kept> sorted(kept_.size());
  std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
  for (const Kept& term : kept_) sorted[next[static_cast<std::size_t>(term.at)]++] = term;
  kept_ = std::move(sorted);
}

ElementAlarm ArgumentSums::alarm(std::int64_t at) {
  const Element& of = elements_[static_cast<std::size_t>(at)];
  const ElementBound proved = bound(at);
  ElementAlarm alarm{proved.allowed, proved.allowed, false};
  if (proved.excuse != Excuse::none || !kernel_.scores.nearest || !keeps_terms()) return alarm;
  if (first_.empty()) sort_terms();
  random_sum_.clear();
  const double rounded = 1 + u_apart(of);
  for (std::size_t e = first_[static_cast<std::size_t>(at)]; e < first_[static_cast<std::size_t>(at) + 1]; ++e) {
    const Kept& term = kept_[e];
    const ArgumentShare share = of.of_groups ? ArgumentShare{} : term.share;
    random_sum_.add(term.value, term.most * rounded, share.drop, share.root * rounded);
  }
  ElementSums sums = sum_of(of).of_kernel;
  sums.error = random_sum_.error(sums.error, pw(kernel_.u_a, of.terms + 1), kernel_.u_a, probability_);
  const double allowed = gradient_bound(kernel_, sums, scale_, phi(), /*grouped=*/false);
  alarm.allowed = allowed <= proved.allowed ? allowed : proved.allowed;
  alarm.covered = true;
  return alarm;
}

double ArgumentSums::size(std::int64_t at) const {
  return scale_ * elements_[static_cast<std::size_t>(at)].sum.size;
}

}  // namespace attest::detail
