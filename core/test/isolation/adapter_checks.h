// What the tests of adapters share: programs to look for, masks, and answers held to a loose tolerance.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/test/isolation/kernel_problem.h"
#include "core/test/isolation/opening.h"

namespace attest::testing_process {

/// Two entries of 3 and 2 keys, of which the last comes with the call.
inline Case appending_case() {
  Case c = attention_case(DType::f32, {2, 3, 3, 4, 5, 5});
  c[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{3, 2});
  c.append = 1;
  return c;
}

inline bool succeeds(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// Whether a module of Python is installed, without the second that importing PyTorch takes.
inline bool imports(const std::string& module) {
  const std::string code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(\"" + module + "\") is None)";
  return succeeds("/usr/bin/python3 -c '" + code + "'");
}

inline double tolerance(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 1e-5 : 0.05;
}

inline void expect_attention(Kernel& kernel, const Case& c) {
  const Reply reply = kernel.run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << kernel.id() << ": " << reply.message;
  EXPECT_EQ(reply.out.tensor().dtype(), c.dtype());
  EXPECT_LE(largest_difference(reply.out, attention_answer(c)), tolerance(c.dtype())) << kernel.id();
}

inline void expect_multihead(Kernel& kernel, const Case& c) {
  const Reply reply = kernel.run(c);
  ASSERT_EQ(reply.status, CallStatus::ok) << kernel.id() << ": " << reply.message;
  EXPECT_LE(largest_difference(reply.out, multihead_answer(c)), tolerance(c.dtype())) << kernel.id();
}

/// True and false by turns, with key 0 open to every row; or finite numbers and -inf.
inline Tensor mask_of(DType dtype, const Shape& shape) {
  Tensor mask(dtype, shape);
  for (std::int64_t i = 0; i < mask.elements(); ++i) {
    const bool open = i % shape[3] == 0 || i % 7 % 3 != 0;
    if (dtype == DType::boolean) {
      mask.set(i, open ? 1.0 : 0.0);
    } else {
      mask.set(i, open ? static_cast<double>(i % 5) / 4.0 : -std::numeric_limits<double>::infinity());
    }
  }
  return mask;
}

inline std::vector<Shape> mask_shapes(const Case& c, std::int64_t batch, std::int64_t heads, std::int64_t rows) {
  const std::int64_t keys = c.operation == Operation::attention ? c.k().shape()[2] : c.k().shape()[1];
  return {{1, 1, rows, keys}, {batch, 1, rows, keys}, {1, heads, rows, keys}, {batch, heads, rows, keys}};
}

/// Under masks of the kinds, one for all and one for each of the batch entries and heads.
inline void expect_attention_under_masks(Kernel& kernel, Case c, const std::vector<DType>& kinds) {
  const Shape q = c.q().shape();
  for (const DType kind : kinds) {
    for (const Shape& shape : mask_shapes(c, q[0], q[1], q[2])) {
      c[Slot::mask] = mask_of(kind, shape);
      expect_attention(kernel, c);
    }
  }
}

/// All 2^16 (2^8) bit patterns as q [1, 1, patterns, 1] of a 16- (8-) bit dtype, with one key.
inline Case every_pattern(DType dtype) {
  const std::int64_t patterns = size_of(dtype) == 2 ? 65536 : 256;
  Case c;
  c[Slot::q] = Tensor(dtype, {1, 1, patterns, 1});
  for (std::int64_t i = 0; i < patterns; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto bits = c[Slot::q].bytes();
    if (patterns == 256) {
      bits[at] = static_cast<std::byte>(i);
    } else {
      bits[2 * at] = static_cast<std::byte>(i & 255);
      bits[2 * at + 1] = static_cast<std::byte>(i >> 8);
    }
  }
  c[Slot::k] = c[Slot::v] = Tensor(dtype, {1, 1, 1, 1});
  return c;
}

}  // namespace attest::testing_process
