// The kernel over C functions: what it hands to the function, and every way a function can misbehave.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/test/cases.h"
#include "core/test/replies.h"

namespace attest {
namespace {

constexpr std::array all_dtypes{DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2};

Case small_case(DType dtype) {
  return test::attention_of({.heads = 2, .queries = 3, .keys = 4, .dk = 2, .dv = 5},
                            [&](Slot slot, const Shape& shape) {
                              return test::filled(dtype, shape, [&] { return slot == Slot::q ? 0.5 : 0; });
                            });
}

Manifest manifest_for(DType dtype) {
  Manifest manifest;
  manifest.name = "test";
  manifest.dtypes = {dtype};
  return manifest;
}

/// Runs `attention` on the small case of a dtype.
Reply reply_of(AttentionFunction attention, DType dtype = DType::f32, bool want_lse = false) {
  return function_kernel("test:it", manifest_for(dtype), std::move(attention))->run(small_case(dtype), dtype, want_lse);
}

std::int64_t elements_of(const attest_tensor& t) {
  std::int64_t elements = 1;
  for (int axis = 0; axis < t.rank; ++axis) elements *= t.shape[axis];
  return elements;
}

void fill(const attest_tensor& t, double value) {
  for (std::int64_t i = 0; i < elements_of(t); ++i) store_element(t.data, static_cast<DType>(t.dtype), i, value);
}

int write_all(const attest_problem&, attest_result& result, std::string&) {
  fill(result.out, 1.5);
  if (result.lse.data != nullptr) fill(result.lse, -2.0);
  return ATTEST_OK;
}

TEST(FunctionKernel, HandsOverTheProblemAndReturnsTheOutput) {
  for (const DType dtype : all_dtypes) {
    const Reply reply = reply_of(
        [dtype](const attest_problem& p, attest_result& r, std::string& message) {
          EXPECT_EQ(p.size, offsetof(attest_problem, variants));
          EXPECT_EQ(r.size, sizeof(attest_result));
          EXPECT_EQ(p.q.shape[2], 3);
          EXPECT_EQ(p.v.shape[3], 5);
          EXPECT_EQ(p.mask.data, nullptr);
          EXPECT_EQ(r.lse.data, nullptr);
          EXPECT_EQ(r.out.stride[1], 15);
          EXPECT_EQ(load_element(p.q.data, dtype, 7), 0.5);
          return write_all(p, r, message);
        },
        dtype);
    ASSERT_EQ(reply.status, CallStatus::ok) << name_of(dtype) << ": " << reply.message;
    EXPECT_EQ(reply.out.tensor().dtype(), dtype);
    EXPECT_EQ(reply.out.shape(), (Shape{1, 2, 3, 5}));
    for (std::int64_t i = 0; i < reply.out.elements(); ++i) EXPECT_EQ(reply.out[i], 1.5);
    EXPECT_FALSE(reply.lse.present());
  }
}

TEST(FunctionKernel, ReturnsTheLogSumExpWhereWanted) {
  const Reply reply = reply_of(write_all, DType::bf16, true);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.lse.tensor().dtype(), DType::f64);
  EXPECT_EQ(reply.lse.shape(), (Shape{1, 2, 3}));
  EXPECT_EQ(reply.lse[5], -2.0);
}

TEST(FunctionKernel, TheOutputMayBeWiderThanTheInput) {
  const auto kernel = function_kernel("test:it", manifest_for(DType::bf16), write_all);
  const Reply reply = kernel->run(small_case(DType::bf16), DType::f32, false);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out.tensor().dtype(), DType::f32);
}

TEST(FunctionKernel, AnUnwrittenElementIsAFailure) {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t hole : {std::int64_t{0}, std::int64_t{13}, std::int64_t{29}}) {
      const Reply reply = reply_of(
          [&](const attest_problem&, attest_result& r, std::string&) {
            for (std::int64_t i = 0; i < 30; ++i) {
              if (i != hole) store_element(r.out.data, dtype, i, 1.0);
            }
            return ATTEST_OK;
          },
          dtype);
      EXPECT_EQ(reply.status, CallStatus::failed) << name_of(dtype);
      EXPECT_FALSE(reply.out.present());
      EXPECT_EQ(reply.message,
                "left 1 of 30 elements of out [1, 2, 3, 5] unwritten, the first at flat index " + std::to_string(hole));
    }
  }
}

TEST(FunctionKernel, AnUnwrittenLogSumExpIsAFailure) {
  expect_ending(reply_of(
                    [](const attest_problem&, attest_result& r, std::string&) {
                      fill(r.out, 0.0);
                      return ATTEST_OK;
                    },
                    DType::f32, true),
                CallStatus::failed, Says("6 of 6 elements of lse"));
}

TEST(FunctionKernel, HalfOfTheOutputsHoldNumbersAsAnEarlierCallLeavesThem) {
  constexpr int cases = 64;
  int with_numbers = 0;
  for (int number = 0; number < cases; ++number) {
    const Case c = test::attention_of(
        {.heads = 2, .queries = 30, .keys = 1, .dk = 2, .dv = 10}, [&](Slot slot, const Shape& shape) {
          return test::filled(DType::f32, shape, [&] { return slot == Slot::q ? number : 0; });
        });
    std::set<double> found;
    const auto look = [&](const attest_problem& problem, attest_result& result, std::string& message) {
      for (std::int64_t i = 0; i < elements_of(result.out); ++i)
        found.insert(load_element(result.out.data, DType::f32, i));
      return write_all(problem, result, message);
    };
    ASSERT_EQ(function_kernel("test:it", manifest_for(DType::f32), look)->run(c, DType::f32, false).status,
              CallStatus::ok);
    // A fill of one number has one; two of 600 that are drawn are hardly ever alike.
    if (found.size() < 2) continue;
    ++with_numbers;
    EXPECT_GT(found.size(), 590U);
    EXPECT_GE(*found.begin(), -2.0);
    EXPECT_LT(*found.rbegin(), 2.0);
    EXPECT_LT(*found.begin(), -1.5);
    EXPECT_GT(*found.rbegin(), 1.5);
  }
  EXPECT_GT(with_numbers, cases / 8);
  EXPECT_LT(with_numbers, cases - cases / 8);
}

TEST(FunctionKernel, NoBitPatternIsMistakenForUnwritten) {
  // Whatever a kernel writes is an output, the fill's own pattern included.
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    const unsigned patterns = size_of(dtype) == 2 ? 65536 : 256;
    const unsigned step = size_of(dtype) == 2 ? 7 : 1;
    for (unsigned pattern = 0; pattern < patterns; pattern += step) {
      const Reply reply = reply_of(
          [&](const attest_problem&, attest_result& r, std::string&) {
            for (std::size_t i = 0; i < 30; ++i) {
              std::memcpy(static_cast<std::byte*>(r.out.data) + i * size_of(dtype), &pattern, size_of(dtype));
            }
            return ATTEST_OK;
          },
          dtype);
      ASSERT_EQ(reply.status, CallStatus::ok) << name_of(dtype) << " " << pattern << " " << reply.message;
    }
  }
}

TEST(FunctionKernel, AWriteOutsideIsAFailure) {
  for (const std::int64_t at : {std::int64_t{-1}, std::int64_t{30}, std::int64_t{-16}, std::int64_t{45}}) {
    const Reply reply = reply_of([at](const attest_problem&, attest_result& r, std::string&) {
      fill(r.out, 1.0);
      static_cast<float*>(r.out.data)[at] = 0.0F;
      return ATTEST_OK;
    });
    EXPECT_EQ(reply.status, CallStatus::failed) << at;
    EXPECT_NE(reply.message.find("wrote outside the tensors"), std::string::npos) << reply.message;
  }
}

TEST(FunctionKernel, AWriteToAnInputIsAFailureAndLeavesTheCaseAlone) {
  const Case c = small_case(DType::f32);
  const auto kernel =
      function_kernel("test:it", manifest_for(DType::f32), [](const attest_problem& p, attest_result& r, std::string&) {
        fill(r.out, 1.0);
        static_cast<float*>(p.k.data)[3] += 1.0F;
        return ATTEST_OK;
      });
  expect_ending(kernel->run(c), CallStatus::failed, "wrote to its input k; inputs are read-only");
  EXPECT_EQ(c.k()[3], 0.0);
}

/// Two entries that hold 2 and 0 keys, and get one each.
Case appending_case() {
  Case c = small_case(DType::f32);
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
    const Shape& one = c[slot].shape();
    c[slot] = Tensor(DType::f32, {2, one[1], one[2], one[3]});
    for (std::int64_t e = 0; e < c[slot].elements(); ++e) c[slot].set(e, static_cast<double>(e));
  }
  c[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{3, 1});
  c.append = 1;
  return c;
}

/// Writes the new key of entry b into slot slots[b] of both heads; `values` too, or k alone.
AttentionFunction writes_to(std::array<std::int64_t, 2> slots, bool values) {
  return [=](const attest_problem& p, attest_result& r, std::string&) {
    fill(r.out, 1.0);
    const auto copy = [&](const attest_tensor& from, const attest_tensor& to) {
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t h = 0; h < 2; ++h)
          std::memcpy(static_cast<float*>(to.data) + b * to.stride[0] + h * to.stride[1] +
                          slots[static_cast<std::size_t>(b)] * to.stride[2],
                      static_cast<const float*>(from.data) + b * from.stride[0] + h * from.stride[1],
                      static_cast<std::size_t>(to.shape[3]) * sizeof(float));
    };
    copy(p.k_new, p.k);
    if (values) copy(p.v_new, p.v);
    return ATTEST_OK;
  };
}

TEST(FunctionKernel, HoldsACacheAgainstWhatAnAppendLeaves) {
  const auto ending = [](std::array<std::int64_t, 2> slots, bool values) {
    return function_kernel("test:it", manifest_for(DType::f32), writes_to(slots, values))->run(appending_case());
  };
  EXPECT_EQ(ending({2, 0}, true).status, CallStatus::ok) << ending({2, 0}, true).message;
  expect_ending(ending({2, 0}, false), CallStatus::failed,
                "left v[0, 0, 2, 0] other than v_new has it; a call writes the new keys into the cache, bit for bit");
  expect_ending(ending({2, 1}, true), CallStatus::failed,
                "left k[1, 0, 0, 0] other than k_new has it; a call writes the new keys into the cache, bit for bit");
  expect_ending(ending({1, 0}, true), CallStatus::failed,
                "wrote to k[0, 0, 1, 0]; of k and v a call writes the slots of the new keys alone");
  // Behind other strides as well.
  Case strided = appending_case();
  strided.provenance.strides = "k=token-major v=every-other";
  EXPECT_EQ(function_kernel("test:it", manifest_for(DType::f32), write_all)->run(strided).status, CallStatus::failed);
}

TEST(FunctionKernel, GivesACacheThatIsWrittenAPlaceForEachElement) {
  Case c = appending_case();
  c.provenance.strides = "k=repeated v=repeated";
  for (const Slot slot : {Slot::k, Slot::v})
    for (std::int64_t e = 0; e < c[slot].elements(); ++e) c[slot].set(e, 1.0);
  int written = 0;
  const auto kernel = [&](bool appends) {
    return function_kernel("test:it", manifest_for(DType::f32),
                           [&written, appends](const attest_problem& p, attest_result& r, std::string& message) {
                             for (int axis = 0; axis < 3; ++axis) {
                               EXPECT_EQ(p.k.stride[axis] != 0, appends) << axis;
                               EXPECT_EQ(p.v.stride[axis] != 0, appends) << axis;
                             }
                             ++written;
                             return appends ? writes_to({2, 0}, true)(p, r, message) : write_all(p, r, message);
                           });
  };
  Reply reply = kernel(true)->run(c);
  EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
  c.append = 0, c[Slot::kv_lengths] = Tensor();
  reply = kernel(false)->run(c);
  EXPECT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(written, 2);
}

TEST(FunctionKernel, MapsStatusesAndExceptions) {
  const auto status_of = [](int status) {
    return reply_of([status](const attest_problem&, attest_result& r, std::string& message) {
      fill(r.out, 1.0);
      message = "because";
      return status;
    });
  };
  EXPECT_EQ(status_of(ATTEST_OK).status, CallStatus::ok);
  EXPECT_EQ(status_of(ATTEST_UNSUPPORTED).status, CallStatus::unsupported);
  EXPECT_EQ(status_of(ATTEST_UNSUPPORTED).message, "because");
  EXPECT_EQ(status_of(ATTEST_REJECTED).status, CallStatus::rejected);
  EXPECT_EQ(status_of(7).status, CallStatus::failed);
  EXPECT_EQ(status_of(-1).message, "returned status -1: because");
  EXPECT_FALSE(status_of(7).out.present());

  Reply thrown = reply_of([](const attest_problem&, attest_result&, std::string&) -> int {
    throw std::runtime_error("no memory for tiles");
  });
  expect_ending(thrown, CallStatus::failed, "threw an exception: no memory for tiles");
  thrown = reply_of([](const attest_problem&, attest_result&, std::string&) -> int { throw 3; });
  EXPECT_EQ(thrown.status, CallStatus::failed);
}

TEST(FunctionKernel, AChangedFloatingPointEnvironmentIsAFailureAndIsRestored) {
  expect_ending(reply_of([](const attest_problem& p, attest_result& r, std::string& message) {
                  std::fesetround(FE_UPWARD);
                  return write_all(p, r, message);
                }),
                CallStatus::failed, Says("floating-point environment"));
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

#ifdef __SSE2__
TEST(FunctionKernel, FlushingSubnormalsIsAChangedEnvironment) {
  for (const unsigned bit : {0x8000U, 0x0040U}) {  // FTZ, DAZ
    const Reply reply = reply_of([bit](const attest_problem& p, attest_result& r, std::string& message) {
      __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | bit);
      return write_all(p, r, message);
    });
    EXPECT_EQ(reply.status, CallStatus::failed);
    EXPECT_EQ(__builtin_ia32_stmxcsr() & 0x8040U, 0U);
  }
}
#endif

TEST(FunctionKernel, MeetsTheDeclaredAlignment) {
  Manifest manifest = manifest_for(DType::f16);
  manifest.alignment = 256;
  const auto kernel =
      function_kernel("test:it", manifest, [](const attest_problem& p, attest_result& r, std::string& message) {
        for (const void* data : {p.q.data, p.k.data, p.v.data, r.out.data}) {
          EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0U);
        }
        return write_all(p, r, message);
      });
  EXPECT_EQ(kernel->run(small_case(DType::f16)).status, CallStatus::ok);
}

TEST(FunctionKernel, ReadsBeyondATensorYieldNaN) {
  reply_of([](const attest_problem& p, attest_result& r, std::string& message) {
    EXPECT_TRUE(std::isnan(static_cast<const float*>(p.k.data)[p.k.shape[1] * p.k.stride[1]]));
    EXPECT_TRUE(std::isnan(static_cast<const float*>(p.q.data)[-1]));
    return write_all(p, r, message);
  });
}

TEST(FunctionKernel, AnOperationItLacksIsUnsupported) {
  Case c = small_case(DType::f32);
  c.operation = Operation::multihead;
  expect_ending(function_kernel("test:it", manifest_for(DType::f32), write_all)->run(c), CallStatus::unsupported,
                "has no multihead entry");
}

TEST(FunctionKernel, RunsMultiheadCases) {
  Case c;
  c.operation = Operation::multihead;
  c.heads = 1;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(DType::f32, {1, 2, 3});
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) c[slot] = Tensor(DType::f32, {3, 4});
  c[Slot::w_o] = Tensor(DType::f32, {4, 5});
  const auto kernel = function_kernel("test:it", manifest_for(DType::f32), nullptr,
                                      [](const attest_multihead_problem& p, attest_result& r, std::string&) {
                                        EXPECT_EQ(p.w_o.shape[1], 5);
                                        EXPECT_EQ(p.b_o.data, nullptr);
                                        fill(r.out, 2.0);
                                        return ATTEST_OK;
                                      });
  const Reply reply = kernel->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_EQ(reply.out.shape(), (Shape{1, 2, 5}));
}

TEST(FunctionKernel, NothingToWriteIsFine) {
  Case c = small_case(DType::f32);
  c[Slot::q] = Tensor(DType::f32, {1, 2, 0, 2});
  const auto kernel = function_kernel("test:it", manifest_for(DType::f32), write_all);
  const Reply reply = kernel->run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << reply.message;
  EXPECT_TRUE(reply.out.present());
  EXPECT_EQ(reply.out.elements(), 0);
}

TEST(FunctionKernel, AClonedKernelIsAnother) {
  const auto kernel = function_kernel("test:it", manifest_for(DType::f32), write_all);
  const auto other = kernel->clone();
  EXPECT_EQ(other->id(), "test:it");
  EXPECT_EQ(other->run(small_case(DType::f32)).out, kernel->run(small_case(DType::f32)).out);
}

/// Whatever the function has counted by then: another thread may be calling it.
TEST(FunctionKernel, AClonesFunctionBeginsAnew) {
  const auto kernel = function_kernel("test:counts", manifest_for(DType::f32),
                                      [calls = 0](const attest_problem&, attest_result&, std::string& message) mutable {
                                        message = fmt::format("call {}", ++calls);
                                        return -1;
                                      });
  const Case c = small_case(DType::f32);
  EXPECT_EQ(kernel->run(c).message, "returned status -1: call 1");
  EXPECT_EQ(kernel->run(c).message, "returned status -1: call 2");
  EXPECT_EQ(kernel->clone()->run(c).message, "returned status -1: call 1");
}

}  // namespace
}  // namespace attest
