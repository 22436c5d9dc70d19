#include "properties/road/road.h"

#include <new>
#include <string>
#include <utility>

#include "core/kernels/core_functions.h"
#include "properties/language/skip_reasons.h"
#include "properties/road/case_budget.h"

namespace attest {

Road road_judging(const Judging& judging) {
  Road road;
  road.check = [judging](const Property& property, Kernel& kernel, const Case& c) {
    return check_case(property, kernel, c, judging);
  };
  return road;
}

Road with_shapes(Road road, Shapes shapes) {
  road.generate = [shapes = std::move(shapes)](const Property& property, DType dtype, std::uint64_t seed,
                                               std::int64_t k) { return generate(property, dtype, seed, k, shapes); };
  return road;
}

Road without_projection(Road road) {
  road.project = [](Case c, const Manifest&) { return c; };
  return road;
}

Walked walk(const Road& road, const Property& property, WatchedKernel& kernel, const std::function<Case()>& draw) {
  Walked walked;
  const auto skip = [&](std::string reason) {
    walked.verdict = {.outcome = Outcome::skipped, .reason = std::move(reason)};
    return std::move(walked);
  };
  if (kernel.is_to_end()) throw Abandoned();
  if (std::string why = property.misses_of(kernel.manifest()); !why.empty()) return skip(std::move(why));
  try {
    walked.problem = road.project(draw(), kernel.manifest());
  } catch (const std::bad_alloc&) {
    return skip(std::string(out_of_memory));
  }
  if (kernel.is_wide()) {
    if (std::string why = why_too_dear_for_wide(walked.problem, kernel.digits()); !why.empty())
      return skip(std::move(why));
  }
  (void)kernel.take_sent();
  (void)kernel.take_answered();
  walked.verdict = road.check(property, kernel, walked.problem);
  walked.sent = kernel.take_sent();
  const bool answered = kernel.take_answered() > 0 || core_functions(kernel.id()) != nullptr;
  if (walked.is(Outcome::held) && !answered) return skip(std::string(why_unanswered));
  return walked;
}

}  // namespace attest
