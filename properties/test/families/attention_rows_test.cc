// Each theorem about rows of Q, K and V goes red for a kernel that breaks it, and for no other reason.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "properties/catalogue/property.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

using Tamper = std::function<void(const attest_problem&, attest_result&)>;

/// The plain kernel, its answer then spoilt.
std::unique_ptr<Kernel> spoilt(Tamper tamper, std::vector<Claim> claims = {}) {
  Manifest manifest = toy_manifest();
  manifest.claims = std::move(claims);
  return function_kernel("toy", manifest,
                         [tamper = std::move(tamper)](const attest_problem& p, attest_result& r, std::string& m) {
                           const int status = toy_attention(Bug::none, p, r, m);
                           tamper(p, r);
                           return status;
                         });
}

void each(attest_result& r, const std::function<double(std::int64_t i, double old)>& value) {
  const std::int64_t M = r.out.shape[2], dv = r.out.shape[3], cells = r.out.shape[0] * r.out.shape[1] * M * dv;
  const auto dtype = static_cast<DType>(r.out.dtype);
  for (std::int64_t e = 0; e < cells; ++e)
    store_element(r.out.data, dtype, e, value(e / dv % M, load_element(r.out.data, dtype, e)));
}

struct Count {
  int held = 0, violated = 0, other = 0;
};
Count count(std::string_view name, Kernel& kernel, int cases = 300) {
  const Property& property = *properties_matching(name).at(0);
  Count n;
  for (int k = 0; k < cases; ++k) {
    const Case c = generate(property, DType::f64, 1, k);
    const Outcome outcome = check_case(property, kernel, project(c, kernel.manifest())).outcome;
    (outcome == Outcome::held ? n.held : outcome == Outcome::violated ? n.violated : n.other) += 1;
  }
  return n;
}

const char* const names[] = {"attention.query-deletion", "attention.query-locality", "attention.key-value-permutation",
                             "attention.permutation-equivariance"};

TEST(AttentionRows, HoldForARightKernel) {
  for (const bool claims : {false, true}) {
    const auto kernel = spoilt([](const attest_problem&, attest_result&) {},
                               claims ? std::vector<Claim>{Claim::batch_invariant} : std::vector<Claim>{});
    for (const char* const name : names) {
      const Count n = count(name, *kernel);
      EXPECT_EQ(n.violated, 0) << name;
      EXPECT_GT(n.held, 240) << name;
    }
  }
}

TEST(AttentionRows, SeeAnAnswerThatDependsOnTheNumberOfRows) {
  const auto kernel = spoilt([](const attest_problem& p, attest_result& r) {
    each(r, [&](std::int64_t, double old) { return old * (1 + 1e-3 * static_cast<double>(p.q.shape[2])); });
  });
  EXPECT_GT(count("attention.query-deletion", *kernel).violated, 200);
}

TEST(AttentionRows, SeeNaNOfAnotherRow) {
  const auto kernel = spoilt([](const attest_problem& p, attest_result& r) {
    double all = 0;
    for (std::int64_t i = 0; i < p.q.shape[2]; ++i) all += 0 * element(p.q, 0, 0, i, 0);
    each(r, [&](std::int64_t, double old) { return old + all; });
  });
  EXPECT_GT(count("attention.query-locality", *kernel).violated, 200);
  EXPECT_EQ(count("attention.query-deletion", *kernel).violated, 0);
}

TEST(AttentionRows, SeeKeysThatCountByTheirPlace) {
  const auto kernel = spoilt([](const attest_problem& p, attest_result& r) {
    if (p.k.shape[2] == 0) return;
    each(r, [&](std::int64_t, double old) { return old + 1e-3 * element(p.v, 0, 0, 0, 0); });
  });
  EXPECT_GT(count("attention.key-value-permutation", *kernel).violated, 100);
  EXPECT_EQ(count("attention.query-deletion", *kernel).violated, 0);
}

TEST(AttentionRows, SeeRowsThatCountByTheirPlace) {
  const auto kernel = spoilt([](const attest_problem&, attest_result& r) {
    each(r, [&](std::int64_t i, double old) { return old * (1 + 1e-3 * static_cast<double>(i)); });
  });
  EXPECT_GT(count("attention.permutation-equivariance", *kernel).violated, 100);
}

TEST(AttentionRows, HoldAClaimOfBitsToTheBit) {
  // An error far inside the bound: half an ulp, for some numbers of rows.
  const Tamper tamper = [](const attest_problem& p, attest_result& r) {
    if (p.q.shape[2] % 2 == 0) each(r, [&](std::int64_t, double old) { return std::nextafter(old, 1e300); });
  };
  const auto claimed = spoilt(tamper, {Claim::batch_invariant}), unclaimed = spoilt(tamper);
  EXPECT_GT(count("attention.query-deletion", *claimed).violated, 200);
  EXPECT_EQ(count("attention.query-deletion", *unclaimed).violated, 0);
}

}  // namespace
}  // namespace attest
