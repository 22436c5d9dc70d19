#include "probe_claims.h"

#include <fmt/format.h>

#include "property.h"
#include "redeclared_kernel.h"

namespace attest {
namespace {

constexpr std::int64_t cases = 200;

/// The kernel as one that makes these claims and no other.
RedeclaredKernel claiming(Kernel& kernel, Manifest manifest, std::vector<Claim> claims) {
  manifest.claims = std::move(claims);
  return {kernel, std::move(manifest)};
}

ProbedClaim probed(RedeclaredKernel kernel, Claim claim, const std::vector<const char*>& properties, DType dtype) {
  std::int64_t held = 0;
  for (const char* const name : properties) {
    const Property& property = *properties_matching(name).at(0);
    for (std::int64_t k = 0; k < cases; ++k) {
      const Case c = project(generate(property, dtype, /*run_seed=*/1, k), kernel.manifest());
      const Verdict verdict = check_case(property, kernel, c);
      if (verdict.outcome == Outcome::violated)
        return {claim, Outcome::violated, fmt::format("not in case {} of {}: {}", k, name, verdict.reason)};
      held += verdict.outcome == Outcome::held;
    }
  }
  if (held < cases / 10) return {claim, Outcome::inconclusive, "cannot be told"};
  return {claim, Outcome::held, fmt::format("held in {} cases", held)};
}

}  // namespace

std::vector<ProbedClaim> probe_claims(Kernel& kernel, const Manifest& manifest, DType dtype) {
  const auto alone = [&](Claim claim, const std::vector<const char*>& properties) {
    return probed(claiming(kernel, manifest, {claim}), claim, properties, dtype);
  };
  std::vector<ProbedClaim> claims{
      alone(Claim::deterministic, {"attention.repeatable"}),
      alone(Claim::batch_invariant, {"batch.independence", "attention.query-deletion", "attention.query-locality"}),
      alone(Claim::padding_invariant, {"masked.tail-padding"})};
  // Hidden values that matter are looked at with bits, which a kernel that is not deterministic has none of.
  constexpr Claim dead = Claim::ignores_dead_values;
  if (claims.front().verdict == Outcome::held) {
    claims.push_back(
        probed(claiming(kernel, manifest, {dead, Claim::deterministic}), dead, {"masked.suppression"}, dtype));
  } else {
    claims.push_back({dead, Outcome::inconclusive, "cannot be told of a kernel that is not deterministic"});
  }
  return claims;
}

}  // namespace attest
