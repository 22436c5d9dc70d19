// Every theorem of softmax: held by right kernels, and broken by a kernel made for it.
#include <gtest/gtest.h>

#include <cmath>

#include "core/problem/sight.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

TEST(Softmax, HoldsOnRightKernels) {
  for (const std::string_view id : {"builtin:flash", "builtin:flash-exp2", "builtin:lazy", "builtin:split-k"}) {
    const auto kernel = registered(id);
    for (const DType dtype : kernel->manifest().dtypes) {
      for (const Property& property : softmax_properties()) {
        const Tried t = tried(property.name, *kernel, dtype, 60);
        EXPECT_EQ(t.violated, 0) << id << ' ' << name_of(dtype) << ' ' << property.name << " k = " << t.first_violated
                                 << ": " << t.reason;
        EXPECT_GE(t.held, 54) << id << ' ' << name_of(dtype) << ' ' << property.name;
      }
    }
  }
  for (const std::string_view id : {"core:half", "core:cpp_bin_float_50", "core:mpfi", "core:arb"}) {
    const auto kernel = registered(id);
    for (const Property& property : softmax_properties()) {
      const Tried t = tried(property.name, *kernel, kernel->manifest().dtypes[0], 10);
      EXPECT_EQ(t.violated, 0) << id << ' ' << property.name << " k = " << t.first_violated << ": " << t.reason;
      EXPECT_GE(t.held, 8) << id << ' ' << property.name;
    }
  }
}

struct Broken {
  std::string_view property;
  Tampered kernel;
};

TEST(Softmax, EachTheoremFindsAKernelThatBreaksIt) {
  const auto first_column = [](Reply& reply, auto change) {
    const std::int64_t n = reply.out.elements() == 0 ? 1 : reply.out.shape()[3];
    for (std::int64_t e = 0; e < reply.out.elements(); e += n) reply.out.set(e, change(reply.out[e]));
  };
  const auto raised = [&] {
    return answered_otherwise([=](Reply& reply) { first_column(reply, [](double x) { return x * 1.05; }); });
  };
  /// Adds what depends on the row's place: the first of more than one row is wrong.
  const auto first_row = [] {
    return answered_otherwise([](Reply& reply) {
      if (reply.out.elements() > 0 && reply.out.shape()[2] > 1) reply.out.set(0, 0.75 * reply.out[0] + 0.01);
    });
  };
  /// The largest entry of q, wherever it is, moves every row.
  const auto leaks = [] {
    return Tampered(registered("builtin:two-pass"), [](Case& c) {
      double most = 0;
      for (std::int64_t e = 0; e < c.q().elements(); ++e) most = std::max(most, std::fabs(c.q()[e]));
      if (!(most <= 1e9)) c.scale *= 0.5;
      if (most > 4) c.scale *= 0.5;
    });
  };
  Broken broken[] = {
      {"softmax.rows-sum-to-one", raised()},
      {"softmax.nonnegative",
       answered_otherwise([=](Reply& reply) { first_column(reply, [](double x) { return x < 1e-6 ? -1e-7 : x; }); })},
      {"softmax.permutation-equivariance", raised()},
      {"softmax.column-permutation", raised()},
      {"softmax.row-locality", leaks()},
      {"softmax.row-permutation", first_row()},
      {"softmax.columnwise-is-transpose", first_row()},
      // No maximum is taken: the reference point is a constant, beyond which e^x is cut off.
      {"softmax.shift-invariance", Tampered(registered("builtin:two-pass"),
                                            [](Case& c) {
                                              c[Slot::q] = Tensor(c.q());
                                              for (std::int64_t e = 0; e < c.q().elements(); ++e)
                                                c[Slot::q].set(e, std::fmin(c.q()[e], 2.0));
                                            })},
      {"softmax.monotone",
       answered_otherwise([=](Reply& reply) { first_column(reply, [](double x) { return 1 - x; }); })},
  };
  ASSERT_EQ(std::size(broken), softmax_properties().size());
  for (auto& [name, kernel] : broken) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      EXPECT_GE(tried(name, kernel, dtype, 100).violated, 1) << name << " in " << name_of(dtype);
    }
  }
}

TEST(Softmax, NeverNaNForFiniteScores) {
  Tampered kernel = answered_otherwise([](Reply& reply) {
    if (reply.out.elements() > 1) reply.out.set(1, NAN);
  });
  const Tried t = tried("softmax.nonnegative", kernel, DType::f32, 10);
  EXPECT_GE(t.violated, 5);
  EXPECT_EQ(t.reason, "weight 1 is nan; it must be at least 0, and a number");
}

TEST(Softmax, IsOfACaseWithoutAMask) {
  const Property& property = property_named("softmax.monotone");
  Case c = generate(property, DType::f32, 1, 0);
  c.causal = Causal::top_left;
  const auto kernel = registered("builtin:two-pass");
  const Verdict verdict = check_case(property, *kernel, c);
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
  EXPECT_TRUE(verdict.reason.starts_with("has the causal form top-left")) << verdict.reason;
}

}  // namespace
}  // namespace attest
