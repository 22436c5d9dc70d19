// dropout.rate holds for kernels that draw each weight by itself, and goes red for each other way to draw;
// dropout.same-mask for those whose backward pass draws what the forward pass does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/call/drawn_keep.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/test/cases.h"
#include "core/test/names.h"
#include "core/test/says.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernels.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

constexpr const char* law = "dropout.rate";

TEST(DropoutRate, HoldsForRightKernels) {
  for (const char* const id : {"core:double", "builtin:flash", "builtin:two-pass", "builtin:lazy"}) {
    const auto kernel = registered(id);
    for (const DType dtype : kernel->manifest().dtypes) {
      const Tried t = tried(law, *kernel, dtype, /*cases=*/150);
      EXPECT_EQ(t.violated, 0) << id << " " << name_of(dtype) << ", case " << t.first_violated << ": " << t.reason;
      EXPECT_GT(t.held, 120) << id << " " << name_of(dtype);
    }
  }
}

TEST(DropoutRate, IsAskedOfKernelsThatDraw) {
  auto kernel = asked_otherwise([](Case&) {});
  kernel.manifest().variants.at("dropout").own = false;
  const Tried t = tried(law, kernel, DType::f32, /*cases=*/60);
  EXPECT_EQ(t.skipped, 60);
  const Verdict verdict = verdict_on(property_named(law), kernel, DType::f32, /*k=*/1);
  EXPECT_THAT(verdict.reason, Says("does not list \"own\""));
}

TEST(DropoutRate, CasesHaveNoMaskThatIsGiven) {
  for (std::int64_t k = 0; k < 200; ++k) {
    const Case c = generate(property_named(law), DType::f32, /*run_seed=*/1, k, default_shapes);
    EXPECT_TRUE(draws_own_dropout(c)) << k;
  }
  for (const char* const other : {"attention.oracle", "dropout.none", "masked.zero-mask"})
    for (std::int64_t k = 0; k < 400; ++k)
      EXPECT_FALSE(draws_own_dropout(generate(property_named(other), DType::f32, /*run_seed=*/1, k))) << other << k;
}

/// What a kernel does, and what is said of it.
struct Mistake {
  const char* name;
  const char* said;
};

class DropoutRateSees : public testing::TestWithParam<Mistake> {};

TEST_P(DropoutRateSees, AndSaysWhy) {
  Spoilt kernel(wrong_kernel(GetParam().name).fault);
  const Tried t = tried(law, kernel, DType::f64, /*cases=*/200);
  EXPECT_GT(t.violated, 0);
  EXPECT_THAT(t.reason, Says(GetParam().said));
}

constexpr Mistake mistakes[]{{"keeps what it draws by the rate", "are kept; at"},
                             {"draws by eighths", "are kept; at"},
                             {"draws no first key", "of key 0 are kept"},
                             {"draws nothing in the first row", "of row 0 are kept"},
                             {"draws twice as much in every other head", "of head "},
                             {"draws twice as much in every other entry of a batch", "are kept; at"},
                             {"draws one mask for all heads", "head 0 and 1 drop the same"},
                             {"draws one mask for all entries of a batch", "batch entry 0 and 1 drop the same"},
                             {"draws one mask for all rows", "row 0 and "},
                             {"draws one mask for all keys", "drop the same of "},
                             {"draws without the seed", "drop the same of "},
                             {"draws anew at every call", "a second call"},
                             {"draws by its queries", ""},
                             {"does not divide what it draws", ""},
                             {"divides what it draws by the rate", ""},
                             {"normalises what it draws", ""},
                             {"has log-sum-exps of what it draws", "lse"},
                             {"draws the second row as the first", "row 0 and 1 drop the same of "},
                             {"draws the second key as the first", "key 0 and 1 drop the same of "},
                             {"draws otherwise where it is asked the same again", "a second call"},
                             {"is NaN where it keeps one of equal weights", "where Q = 0 and V"}};
INSTANTIATE_TEST_SUITE_P(Mistakes, DropoutRateSees, testing::ValuesIn(mistakes),
                         [](const auto& mistake) { return test::name_of_test(mistake.param.name); });

TEST(DropoutSameMask, HoldsForRightKernels) {
  for (const char* const id : {"core:double", "builtin:flash", "builtin:two-pass", "builtin:split-k"}) {
    const auto kernel = registered(id);
    for (const DType dtype : kernel->manifest().dtypes) {
      const Tried t = tried("dropout.same-mask", *kernel, dtype, /*cases=*/100);
      EXPECT_EQ(t.violated, 0) << id << " " << name_of(dtype) << ", case " << t.first_violated << ": " << t.reason;
      EXPECT_GT(t.held, 70) << id << " " << name_of(dtype);
    }
  }
}

TEST(DropoutSameMask, IsAskedOfBackwardPassesThatDraw) {
  auto kernel = asked_otherwise([](Case&) {});
  kernel.manifest().backward_terms.own_dropout = false;
  EXPECT_EQ(tried("dropout.same-mask", kernel, DType::f32, /*cases=*/60).skipped, 60);
  const Verdict verdict = verdict_on(property_named("dropout.same-mask"), kernel, DType::f32, /*k=*/1);
  EXPECT_THAT(verdict.reason, Says("backward.own_dropout is false"));
}

TEST(DropoutSameMask, SeesAGradientOfAnotherMask) {
  for (const auto& [name, said] : {std::pair{"draws dv another mask than its output", "dv["},
                                   std::pair{"draws dq and dk another mask than its output", "d"}}) {
    const WrongKernel& wrong = wrong_kernel(name);
    Spoilt kernel(wrong.fault, wrong.backward);
    const Tried t = tried("dropout.same-mask", kernel, DType::f64, /*cases=*/100);
    EXPECT_GT(t.violated, 30) << name;
    EXPECT_THAT(t.reason, Says(said));
    EXPECT_EQ(tried("dropout.rate", kernel, DType::f64, /*cases=*/60).violated, 0) << name;
  }
}

// A cap that the format does not hold makes NaN of every score.
TEST(DropoutRate, ARowOutsideTheDomainSaysNothing) {
  Case c = test::one_query(DType::f16, {0}, {0}, {1});
  c[Slot::q] = Tensor(DType::f16, {1, 1, 2, 1});
  c.softcap = 262144, c.dropout_p = 0.125, c.dropout_seed = 5;
  const auto kernel = registered("core:half");
  const Verdict rate = check_case(property_named(law), *kernel, c);
  EXPECT_EQ(rate.outcome, Outcome::excused) << rate.reason;
  c[Slot::d_out] = Tensor(DType::f16, {1, 1, 2, 1});
  const Verdict same_mask = check_case(property_named("dropout.same-mask"), *kernel, c);
  EXPECT_EQ(same_mask.outcome, Outcome::excused) << same_mask.reason;
}

/// Keeps weights with a probability that is a multiple of 1/levels.
Spoilt in_levels(double levels) {
  return Spoilt([levels](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (draws_own_dropout(c)) {
      const Shape shape{batch_of(c), heads_of(c), queries_of(c), keys_of(c)};
      const double rate = std::round(levels * c.dropout_p) / levels;
      c[Slot::keep] = mapped(Tensor(DType::boolean, shape), [&](std::int64_t e, double) {
        return keeps_at(c.dropout_seed, e / shape[3], e % shape[3], rate) ? 1.0 : 0.0;
      });
      c.dropout_seed = 0;
    }
    return kernel.run(c, output, want_lse);
  });
}

class Declared : public ForwardingKernel {
 public:
  Declared(double levels, std::int64_t declared)
      : ForwardingKernel(std::make_unique<Spoilt>(in_levels(levels))), manifest_(inner().manifest()) {
    manifest_.variants.at("dropout").keep_levels = declared;
  }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return nullptr; }

 private:
  Manifest manifest_;
};

TEST(DropoutRate, LetsAShareBeAMultipleOfWhatIsDeclared) {
  for (const std::int64_t declared : {0, 64, 8}) {
    Declared kernel(8, declared);
    const Tried t = tried(law, kernel, DType::f64, /*cases=*/200);
    EXPECT_EQ(t.violated > 0, declared != 8) << declared << ": " << t.reason;
  }
}

}  // namespace
}  // namespace attest
