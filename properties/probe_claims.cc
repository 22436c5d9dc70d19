#include "probe_claims.h"

#include <fmt/format.h>

#include "attest/wide.h"
#include "property.h"

namespace attest {
namespace {

constexpr std::int64_t cases = 200;

/// The kernel as one that makes claims.
class Claiming final : public Kernel {
 public:
  Claiming(Kernel& kernel, const Manifest& manifest, std::vector<Claim> claims) : kernel_(kernel), manifest_(manifest) {
    manifest_.claims = std::move(claims);
  }
  [[nodiscard]] const std::string& id() const override { return kernel_.id(); }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Reply run(const Case& c, DType output, bool want_lse) override {
    return kernel_.run(c, output, want_lse);
  }
  [[nodiscard]] bool is_wide() const override { return kernel_.is_wide(); }
  [[nodiscard]] WideReply run_wide(const Case& c) override { return kernel_.run_wide(c); }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return kernel_.clone(); }

 private:
  Kernel& kernel_;
  Manifest manifest_;
};

ProbedClaim probed(Kernel& claiming, Claim claim, const std::vector<const char*>& properties, DType dtype) {
  std::int64_t held = 0;
  for (const char* const name : properties) {
    const Property& property = *properties_matching(name).at(0);
    for (std::int64_t k = 0; k < cases; ++k) {
      const Case c = project(generate(property, dtype, /*run_seed=*/1, k), claiming.manifest());
      const Verdict verdict = check_case(property, claiming, c);
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
    Claiming claiming(kernel, manifest, {claim});
    return probed(claiming, claim, properties, dtype);
  };
  std::vector<ProbedClaim> claims{
      alone(Claim::deterministic, {"attention.repeatable"}),
      alone(Claim::batch_invariant, {"batch.independence", "attention.query-deletion", "attention.query-locality"}),
      alone(Claim::padding_invariant, {"masked.tail-padding"})};
  // Hidden values that matter are looked at with bits, which a kernel that is not deterministic has none of.
  constexpr Claim dead = Claim::ignores_dead_values;
  if (claims.front().verdict == Outcome::held) {
    Claiming claiming(kernel, manifest, {dead, Claim::deterministic});
    claims.push_back(probed(claiming, dead, {"masked.suppression"}, dtype));
  } else {
    claims.push_back({dead, Outcome::inconclusive, "cannot be told of a kernel that is not deterministic"});
  }
  return claims;
}

}  // namespace attest
