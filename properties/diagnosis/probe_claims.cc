#include "properties/diagnosis/probe_claims.h"

#include <fmt/format.h>

#include "properties/catalogue/property.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

constexpr std::int64_t cases = 200;

/// The kernel as one that makes these claims and no other.
RedeclaredKernel claiming(Kernel& kernel, Manifest manifest, std::vector<Claim> claims) {
  manifest.claims = std::move(claims);
  return {kernel, std::move(manifest)};
}

/// attention.repeatable, asked of the other entry with the cases of one of its properties.
Property multihead_repeatable(const char* of) {
  Property property = *properties_matching(of).at(0);
  const Property& repeatable = *properties_matching("attention.repeatable").at(0);
  property.name = repeatable.name;
  property.hypotheses = repeatable.hypotheses;
  property.check = repeatable.check;
  return property;
}

std::vector<Property> named(const std::vector<const char*>& names) {
  std::vector<Property> properties;
  properties.reserve(names.size());
  for (const char* const name : names) properties.push_back(*properties_matching(name).at(0));
  return properties;
}

ProbedClaim probed(RedeclaredKernel kernel, Claim claim, const std::vector<Property>& properties, DType dtype) {
  std::int64_t held = 0;
  for (const Property& property : properties) {
    for (std::int64_t k = 0; k < cases; ++k) {
      const Case c = project(generate(property, dtype, /*run_seed=*/1, k), kernel.manifest());
      const Verdict verdict = check_case(property, kernel, c);
      if (verdict.outcome == Outcome::violated)
        return {claim, Outcome::violated, fmt::format("not in case {} of {}: {}", k, property.name, verdict.reason)};
      held += verdict.outcome == Outcome::held;
    }
  }
  if (held < cases / 10) return {claim, Outcome::inconclusive, "cannot be told"};
  return {claim, Outcome::held, fmt::format("held in {} cases", held)};
}

}  // namespace

std::vector<ProbedClaim> probe_claims(Kernel& kernel, const Manifest& manifest, DType dtype) {
  const bool attention = manifest.attention;
  const auto with = [&](Claim claim, std::vector<Claim> others, const std::vector<Property>& properties) {
    others.push_back(claim);
    return probed(claiming(kernel, manifest, std::move(others)), claim, properties, dtype);
  };
  const std::vector<Property> repeatable =
      attention ? named({"attention.repeatable"})
                : std::vector{multihead_repeatable("multihead.self-permutation-equivariance"),
                              multihead_repeatable("multihead.suppression")};
  const std::vector<Property> batches =
      attention ? named({"batch.independence", "attention.query-deletion", "attention.query-locality"})
                : named({"multihead.query-deletion", "multihead.masked-query-deletion"});
  std::vector<ProbedClaim> claims{with(Claim::deterministic, {}, repeatable),
                                  with(Claim::batch_invariant, {}, batches)};
  constexpr Claim padding = Claim::padding_invariant, dead = Claim::ignores_dead_values;
  if (attention) {
    claims.push_back(with(padding, {}, named({"masked.tail-padding"})));
  } else if (claims.back().verdict == Outcome::held) {
    // Deleting the last token of self-attention deletes a query beside the padding.
    claims.push_back(with(padding, {Claim::batch_invariant}, named({"multihead.self-input-deletion"})));
  } else {
    claims.push_back({padding, Outcome::inconclusive, "cannot be told of a kernel that is not batch-invariant"});
  }
  // Hidden values that matter are looked at with bits, which a kernel that is not deterministic has none of.
  if (claims.front().verdict == Outcome::held) {
    claims.push_back(
        with(dead, {Claim::deterministic}, named({attention ? "masked.suppression" : "multihead.suppression"})));
  } else {
    claims.push_back({dead, Outcome::inconclusive, "cannot be told of a kernel that is not deterministic"});
  }
  return claims;
}

}  // namespace attest
