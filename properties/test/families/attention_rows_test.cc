// Each theorem about rows of Q, K and V goes red for a kernel that breaks it, and for no other reason.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "properties/test/catalogue/spoilt.h"

namespace attest {
namespace {

Manifest claiming(std::vector<Claim> claims) {
  Manifest manifest = toy_manifest();
  manifest.claims = std::move(claims);
  return manifest;
}

std::unique_ptr<Kernel> unclaiming(Tamper tamper) {
  return spoilt(std::move(tamper), claiming({}));
}

const char* const names[] = {"attention.query-deletion", "attention.query-locality", "attention.key-value-permutation",
                             "attention.permutation-equivariance"};

TEST(AttentionRows, HoldForARightKernel) {
  for (const bool claims : {false, true}) {
    const auto kernel =
        toy_kernel(Bug::none, claiming(claims ? std::vector{Claim::batch_invariant} : std::vector<Claim>{}));
    for (const char* const name : names) {
      const OutcomeCounts n = tally_of(name, *kernel, 300);
      EXPECT_EQ(n.violated, 0) << name;
      EXPECT_GT(n.held, 240) << name;
    }
  }
}

TEST(AttentionRows, SeeAnAnswerThatDependsOnTheNumberOfRows) {
  const auto kernel = unclaiming([](const attest_problem& p, attest_result& r) {
    each(r, [&](std::int64_t, double old) { return old * (1 + 1e-3 * static_cast<double>(p.q.shape[2])); });
  });
  EXPECT_GT(tally_of("attention.query-deletion", *kernel, 300).violated, 200);
}

TEST(AttentionRows, SeeNaNOfAnotherRow) {
  const auto kernel = unclaiming([](const attest_problem& p, attest_result& r) {
    double all = 0;
    for (std::int64_t i = 0; i < p.q.shape[2]; ++i) all += 0 * element(p.q, 0, 0, i, 0);
    each(r, [&](std::int64_t, double old) { return old + all; });
  });
  EXPECT_GT(tally_of("attention.query-locality", *kernel, 300).violated, 200);
  EXPECT_EQ(tally_of("attention.query-deletion", *kernel, 300).violated, 0);
}

TEST(AttentionRows, SeeKeysThatCountByTheirPlace) {
  const auto kernel = unclaiming([](const attest_problem& p, attest_result& r) {
    if (p.k.shape[2] == 0) return;
    each(r, [&](std::int64_t, double old) { return old + 1e-3 * element(p.v, 0, 0, 0, 0); });
  });
  EXPECT_GT(tally_of("attention.key-value-permutation", *kernel, 300).violated, 100);
  EXPECT_EQ(tally_of("attention.query-deletion", *kernel, 300).violated, 0);
}

TEST(AttentionRows, SeeRowsThatCountByTheirPlace) {
  const auto kernel = unclaiming([](const attest_problem&, attest_result& r) {
    each(r, [&](std::int64_t i, double old) { return old * (1 + 1e-3 * static_cast<double>(i)); });
  });
  EXPECT_GT(tally_of("attention.permutation-equivariance", *kernel, 300).violated, 100);
}

TEST(AttentionRows, HoldAClaimOfBitsToTheBit) {
  // An error far inside the bound: half an ulp, for some numbers of rows.
  const Tamper tamper = [](const attest_problem& p, attest_result& r) {
    if (p.q.shape[2] % 2 == 0) each(r, [&](std::int64_t, double old) { return std::nextafter(old, 1e300); });
  };
  const auto claimed = spoilt(tamper, claiming({Claim::batch_invariant})), unclaimed = unclaiming(tamper);
  EXPECT_GT(tally_of("attention.query-deletion", *claimed, 300).violated, 200);
  EXPECT_EQ(tally_of("attention.query-deletion", *unclaimed, 300).violated, 0);
}

}  // namespace
}  // namespace attest
