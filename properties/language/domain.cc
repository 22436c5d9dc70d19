#include "properties/language/domain.h"

namespace attest {
namespace {

bool in_domain(const Result& result, std::int64_t e) {
  const AllowedError bound = result.run().bound(result.origin(e));
  return bound.finite_required && bound.excuse != Excuse::fully_masked && bound.excuse != Excuse::not_finite &&
         bound.excuse != Excuse::overflow;
}

}  // namespace

Match match_of_dead_values(const Kernel& kernel) {
  if (!kernel.manifest().claims_to(Claim::deterministic)) return Match::bound;
  return kernel.manifest().claims_to(Claim::ignores_dead_values) ? Match::bits : Match::values;
}

Verdict agree_in_domain(Sides sides, Match match) {
  const auto& [left, right] = sides;
  Verdict all = agree({left, right}, match, /*about_bits=*/true);
  if (match == Match::bound || all.outcome != Outcome::violated || left.shape() != right.shape()) return all;
  Indices inside;
  for (std::int64_t e = 0; e < left.elements(); ++e)
    if (in_domain(left, e) && in_domain(right, e)) inside.push_back(e);
  if (inside.empty()) return {.outcome = Outcome::excused, .reason = "fully masked or outside the domain"};
  const Shape shape{static_cast<std::int64_t>(inside.size())};
  Verdict judged = agree({left.at(shape, inside), right.at(shape, inside)}, match);
  if (judged.element >= 0) judged.element = inside[static_cast<std::size_t>(judged.element)];
  return judged;
}

}  // namespace attest
