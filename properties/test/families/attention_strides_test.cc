// attention.strides against kernels that are wrong about memory, each in one way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/problem/memory.h"
#include "properties/test/catalogue/spoilt.h"
#include "properties/test/property_fixture.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

/// Elements from the first to the last of a view, both counted.
std::int64_t span_of(const attest_tensor& t) {
  std::int64_t span = 1;
  for (int axis = 0; axis < t.rank; ++axis) span += (t.shape[axis] - 1) * t.stride[axis];
  return span;
}

bool empty(const attest_tensor& t) {
  return t.data == nullptr || t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3] == 0;
}

/// Takes the strides where they stay inside the tensor's memory, or at most a guard zone of doubles beyond it: a wrong
/// kernel of these tests must not read or write what belongs to somebody else.
void take_strides(attest_tensor& t, const attest_tensor& wrong) {
  if (!empty(t) && span_of(wrong) <= span_of(t) + 8) t = wrong;
}

attest_tensor dense(attest_tensor t) {
  std::int64_t stride = 1;
  for (int axis = t.rank - 1; axis >= 0; --axis) {
    t.stride[axis] = stride;
    stride *= t.shape[axis];
  }
  return t;
}

using Mistake = std::function<void(attest_problem&, attest_result&)>;

std::unique_ptr<Kernel> wrong_kernel(const Mistake& before, const Mistake& after = {}) {
  Manifest manifest = claiming_manifest();
  manifest.strides = manifest.lse = true;
  return function_kernel(
      "toy", std::move(manifest), [=](const attest_problem& problem, attest_result& result, std::string& m) {
        attest_problem p = problem;
        attest_result r = result;
        for (std::int64_t row = 0; r.lse.data != nullptr && row < p.q.shape[0] * p.q.shape[1] * p.q.shape[2]; ++row) {
          const std::int64_t i = row % p.q.shape[2], head = row / p.q.shape[2];
          store_element(r.lse.data, DType::f64, offset_in(r.lse, head / p.q.shape[1], head % p.q.shape[1], i), 0.0);
        }
        if (before) before(p, r);
        const int status = toy_attention(Bug::none, p, r, m);
        if (after) after(p, r);
        return status;
      });
}

/// Found, and what remains of a finding is one layout.
void expect_caught(const std::unique_ptr<Kernel>& kernel, const std::string& mistake) {
  const Tried t = tried("attention.strides", *kernel, DType::f64, 200);
  EXPECT_GE(t.violated, 5) << mistake << ": " << t.reason;
  if (t.violated == 0) return;
  const Property& property = property_named("attention.strides");
  const Case small =
      shrink(property, *kernel, project(generate(property, DType::f64, 1, t.first_violated), kernel->manifest()));
  EXPECT_EQ(check_case(property, *kernel, small).outcome, Outcome::violated) << mistake;
  EXPECT_THAT(small.provenance.strides.value(), NeverSays(" ")) << mistake;
}

TEST(Strides, HoldForARightKernel) {
  const auto kernel = wrong_kernel({});
  for (const DType dtype : {DType::f64, DType::f32}) {
    const Tried t = tried("attention.strides", *kernel, dtype, 500);
    EXPECT_EQ(t.violated, 0) << t.reason;
    EXPECT_GE(t.held, 450);
  }
}

TEST(Strides, CatchWhatIsReadUnderOtherStrides) {
  expect_caught(wrong_kernel([](attest_problem& p, attest_result&) { take_strides(p.k, dense(p.k)); }),
                "k is taken to be dense");
  // Where no poison can show it, only the row-major run does.
  expect_caught(wrong_kernel([](attest_problem& p, attest_result&) {
                  if (span_of(p.k) == span_of(dense(p.k))) take_strides(p.k, dense(p.k));
                }),
                "k without gaps is taken to be dense");
  expect_caught(wrong_kernel([](attest_problem& p, attest_result&) { take_strides(p.mask, dense(p.mask)); }),
                "the mask is taken to be dense");
  expect_caught(wrong_kernel([](attest_problem& p, attest_result&) {
                  attest_tensor v = p.v;
                  // As written for dk = dv, where row-major memory shows nothing.
                  if (p.q.shape[3] == p.v.shape[3]) v.stride[2] = p.q.stride[2];
                  take_strides(p.v, v);
                }),
                "v is read with q's row stride");
  expect_caught(wrong_kernel([](attest_problem& p, attest_result&) {
                  attest_tensor v = p.v;
                  v.stride[3] = 1;
                  take_strides(p.v, v);
                }),
                "the last stride of v is taken to be 1");
  expect_caught(wrong_kernel([](attest_problem& p, attest_result&) {
                  for (attest_tensor* const t : {&p.q, &p.k, &p.v}) {
                    attest_tensor wrong = *t;
                    for (int axis = 0; axis < t->rank; ++axis)
                      if (t->stride[axis] == 0) wrong.stride[axis] = 1;
                    take_strides(*t, wrong);
                  }
                }),
                "stride 0 is taken to be 1");
}

TEST(Strides, CatchWhatIsReadBetweenElements) {
  expect_caught(wrong_kernel({},
                             [](attest_problem& p, attest_result& r) {
                               if (empty(p.k) || empty(r.out) || p.k.shape[2] < 2 || p.k.stride[3] != 1) return;
                               if (p.k.stride[2] <= p.k.shape[3]) return;
                               // As a vector load that takes in what lies behind the row, times 0.
                               const double behind = load_element(p.k.data, DType::f64, p.k.shape[3]);
                               const double first = load_element(r.out.data, DType::f64, 0);
                               store_element(r.out.data, DType::f64, 0, first + 0 * behind);
                             }),
                "the gap behind a row of k is read");
}

TEST(Strides, CatchWhatIsWrittenElsewhere) {
  expect_caught(wrong_kernel([](attest_problem&, attest_result& r) { take_strides(r.out, dense(r.out)); }),
                "out is written densely");
  expect_caught(wrong_kernel({},
                             [](attest_problem&, attest_result& r) {
                               const bool gap = r.out.stride[3] == 1 && r.out.stride[2] > r.out.shape[3];
                               // With more heads it may be another head's element.
                               if (empty(r.out) || r.out.shape[1] > 1 || r.out.shape[2] < 2 || !gap) return;
                               store_element(r.out.data, DType::f64, r.out.shape[3], 0.0);
                             }),
                "the gap behind a row of out is written");
  expect_caught(wrong_kernel([](attest_problem&, attest_result& r) {
                  if (r.lse.data != nullptr && r.lse.stride[2] > 1 && r.lse.shape[2] > 1)
                    store_element(r.lse.data, DType::f64, 1, 0.25);
                }),
                "lse is written densely");
  expect_caught(wrong_kernel({},
                             [](attest_problem&, attest_result& r) {
                               const bool other = r.lse.data != nullptr && r.lse.stride[2] > 1;
                               if (other && !empty(r.out)) store_element(r.lse.data, DType::f64, 0, 0.25);
                             }),
                "lse is another number under other strides");
}

TEST(Strides, AreNotAskedOfAKernelThatTakesNone) {
  Manifest manifest = claiming_manifest();
  const auto kernel = toy_kernel(Bug::none, manifest);
  const Verdict verdict = verdict_on(property_named("attention.strides"), *kernel, DType::f64, 0);
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
  EXPECT_THAT(verdict.reason, Says("the manifest's strides is false"));
  Case c = generate(property_named("attention.strides"), DType::f64, 1, 0);
  EXPECT_EQ(c, project(c, manifest));
  c.provenance.strides.reset();
  EXPECT_THAT(check_case(property_named("attention.strides"), *kernel, c).reason, Says("row-major throughout"));
}

TEST(Strides, OfACaseHoldForEveryProperty) {
  // A kernel that is wrong about strides is found by any property on a case that has some.
  const auto kernel = wrong_kernel([](attest_problem& p, attest_result&) { take_strides(p.k, dense(p.k)); });
  int violated = 0;
  for (std::int64_t k = 0; k < 50; ++k) {
    const Case c = generate(property_named("attention.strides"), DType::f64, 1, k);
    violated += check_case(toy_property, *kernel, c).outcome == Outcome::violated;
  }
  EXPECT_GE(violated, 5);
}

// A gradient by the output lies in memory as what comes after attention leaves it: behind a sum it is repeated.
TEST(Strides, OfGradientsByAnswersAreAllThatThereAre) {
  for (const Slot slot : {Slot::d_out, Slot::d_lse}) {
    std::map<MemoryLayout, int> drawn;
    int apart = 0;
    for (std::int64_t k = 0; k < 400; ++k) {
      const Case c = generate(property_named("backward.strides"), DType::f32, 1, k);
      if (!c[slot].present()) continue;
      const Layouts layouts = layouts_of(c);
      ++drawn[layouts[slot]];
      apart += layouts[slot] != layouts.out;
    }
    for (int layout = 0; layout < static_cast<int>(MemoryLayout::far_rows); ++layout)
      EXPECT_GE(drawn[static_cast<MemoryLayout>(layout)], 5) << name_of(slot) << " " << layout;
    EXPECT_GE(apart, 80) << name_of(slot) << ": a kernel that takes the strides of the output for its own is right";
  }
}

TEST(Strides, RepeatWhatIsEqual) {
  int repeated = 0, cases = 0;
  for (std::int64_t k = 0; k < 300; ++k) {
    const Case c = generate(property_named("attention.strides"), DType::f64, 1, k);
    for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::mask}) {
      if (layouts_of(c)[slot] != MemoryLayout::repeated || c[slot].elements() < 2) continue;
      ++cases;
      const attest_tensor view = c[slot].view();
      repeated += place(MemoryLayout::repeated, view).elements < c[slot].elements();
    }
  }
  EXPECT_GE(cases, 80);
  EXPECT_EQ(repeated, cases);
}

}  // namespace
}  // namespace attest
