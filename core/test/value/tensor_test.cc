// Tensors, views of any strides, and bulk decoding.
#include "core/value/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <utility>
#include <vector>

namespace attest {

/// How GoogleTest prints a parameter.
static void PrintTo(DType dtype, std::ostream* out) {
  *out << name_of(dtype);
}

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Elements 0, 1, 2, ….
Tensor counting(DType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  for (std::int64_t i = 0; i < t.elements(); ++i) t.set(i, static_cast<double>(i));
  return t;
}

TEST(Shape, CountsAndPrints) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().to_string(), "[]");
  EXPECT_EQ((Shape{2, 1, 3, 8}.elements()), 48);
  EXPECT_EQ((Shape{2, 0, 3}.elements()), 0);
  EXPECT_EQ((Shape{2, 1, 3, 8}.to_string()), "[2, 1, 3, 8]");
  EXPECT_NE((Shape{2, 1}), (Shape{2, 1, 0}));
  EXPECT_EQ(Shape(std::vector<std::int64_t>{4, 5}), (Shape{4, 5}));
}

TEST(Shape, FindsAnElementByItsAxes) {
  const Shape shape{2, 3, 4, 5};
  const Tensor t = counting(DType::f64, shape);
  std::int64_t element = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t i = 0; i < 4; ++i) {
        for (std::int64_t j = 0; j < 5; ++j, ++element) {
          EXPECT_EQ(shape.flat(b, h, i, j), element);
          EXPECT_EQ(shape.index_of(element), (std::array<std::int64_t, 4>{b, h, i, j}));
          EXPECT_EQ(t.at(b, h, i, j), static_cast<double>(element));
        }
      }
    }
  }
  EXPECT_EQ((Shape{2, 7}.flat(1, 3)), 10);
  EXPECT_EQ((Shape{2, 7}.index_of(10)), (std::array<std::int64_t, 4>{1, 3}));
  EXPECT_EQ(index_text(10, Shape{2, 7}), "[1, 3]");
  EXPECT_EQ(index_text(59, shape), "[0, 2, 3, 4]");
}

TEST(Tensor, IsAbsentUntilMade) {
  const Tensor absent;
  EXPECT_FALSE(absent.present());
  EXPECT_EQ(absent.elements(), 0);
  EXPECT_EQ(absent.view().data, nullptr);
  EXPECT_TRUE(absent.to_doubles().empty());
  EXPECT_FALSE(gather(absent.view()).present());
  EXPECT_EQ(absent, Tensor());
  EXPECT_NE(absent, Tensor(DType::f32, {0}));
}

TEST(Tensor, WithoutElementsIsPresent) {
  const Tensor empty(DType::f64, {2, 0, 3});
  EXPECT_TRUE(empty.present());
  EXPECT_EQ(empty.elements(), 0);
  EXPECT_NE(empty.view().data, nullptr);
  EXPECT_EQ(gather(empty.view()), empty);
  EXPECT_TRUE(empty.to_doubles().empty());
}

TEST(Tensor, HoldsWhatItIsGivenRoundedOnce) {
  const std::vector<double> values{1.0, 65519.0, 0x1.002000001p0, -0.0};
  const Tensor t(DType::f16, {2, 2}, values);
  EXPECT_EQ(t.bytes().size(), 8U);
  EXPECT_EQ(t[0], 1.0);
  EXPECT_EQ(t[1], 65504.0);
  EXPECT_EQ(t[2], 0x1.004p0);
  EXPECT_TRUE(std::signbit(t[3]));
  EXPECT_EQ(t.to_doubles(), (std::vector<double>{1.0, 65504.0, 0x1.004p0, -0.0}));
  EXPECT_EQ(Tensor(DType::f32, {3}).to_doubles(), std::vector<double>(3, 0.0));
}

TEST(Tensor, ComparesBits) {
  Tensor a(DType::f32, {1}, std::vector<double>{nan});
  const Tensor b = a;
  EXPECT_EQ(a, b);
  a.set(0, 0.0);
  Tensor c(DType::f32, {1});
  EXPECT_EQ(a, c);
  c.set(0, -0.0);
  EXPECT_NE(a, c);
  EXPECT_NE(Tensor(DType::f16, {1}), Tensor(DType::bf16, {1}));
  EXPECT_NE(Tensor(DType::f16, {1, 2}), Tensor(DType::f16, {2, 1}));
}

TEST(Tensor, ViewsAreRowMajor) {
  const Tensor t = counting(DType::f32, {2, 3, 4, 5});
  const attest_tensor view = t.view();
  EXPECT_EQ(view.rank, 4);
  EXPECT_EQ(view.dtype, ATTEST_F32);
  EXPECT_EQ(view.data, t.bytes().data());
  const std::int64_t strides[] = {60, 20, 5, 1};
  for (int axis = 0; axis < 4; ++axis) {
    EXPECT_EQ(view.shape[axis], t.shape()[axis]);
    EXPECT_EQ(view.stride[axis], strides[axis]);
  }
  EXPECT_EQ(load_element(view.data, DType::f32, offset_in(view, 1, 2, 3, 4)), 119.0);
  const attest_tensor vector = counting(DType::f32, {7}).view();
  EXPECT_EQ(vector.rank, 1);
  EXPECT_EQ(vector.stride[0], 1);
  for (int axis = 1; axis < 4; ++axis) {
    EXPECT_EQ(vector.shape[axis], 0) << "entries beyond the rank are 0";
    EXPECT_EQ(vector.stride[axis], 0);
  }
}

TEST(Tensor, Reshapes) {
  const Tensor t = counting(DType::f16, {2, 6});
  const Tensor r = t.reshaped({1, 3, 4});
  EXPECT_EQ(r.shape(), (Shape{1, 3, 4}));
  EXPECT_EQ(r.to_doubles(), t.to_doubles());
  Tensor moved = t;
  EXPECT_EQ(std::move(moved).reshaped({1, 3, 4}), r);
}

class Strided : public testing::TestWithParam<DType> {};

TEST_P(Strided, GathersAndDecodesAnyView) {
  const DType dtype = GetParam();
  const Tensor t = counting(dtype, {3, 5});
  attest_tensor view = t.view();
  // Transposed.
  std::swap(view.shape[0], view.shape[1]);
  std::swap(view.stride[0], view.stride[1]);
  const Tensor transposed = gather(view);
  ASSERT_EQ(transposed.shape(), (Shape{5, 3}));
  std::vector<double> decoded;
  decode(view, decoded);
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) {
      EXPECT_EQ(transposed[i * 3 + j], t[j * 5 + i]);
      EXPECT_EQ(decoded[static_cast<std::size_t>(i * 3 + j)], t[j * 5 + i]);
    }
  }
  // Repeated along a new axis (stride 0), every second column.
  view = t.view();
  view.rank = 3;
  const std::int64_t shape[] = {2, 3, 3, 0};
  const std::int64_t stride[] = {0, 5, 2, 0};
  std::memcpy(view.shape, shape, sizeof(shape));
  std::memcpy(view.stride, stride, sizeof(stride));
  const Tensor repeated = gather(view);
  decode(view, decoded);
  ASSERT_EQ(repeated.elements(), 18);
  EXPECT_EQ(repeated.to_doubles(), decoded);
  for (std::int64_t i = 0; i < 18; ++i) EXPECT_EQ(repeated[i], t[i / 3 % 3 * 5 + i % 3 * 2]) << i;
}

INSTANTIATE_TEST_SUITE_P(AllDTypes, Strided,
                         testing::Values(DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3,
                                         DType::f8_e5m2, DType::boolean),
                         [](const auto& param) { return std::string(name_of(param.param)); });

TEST(Decode, IsExactForEveryPattern) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
    const std::int64_t patterns = std::int64_t{1} << (8 * size_of(dtype));
    Tensor t(dtype, {patterns});
    for (std::int64_t i = 0; i < patterns; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      std::memcpy(t.bytes().data() + static_cast<std::size_t>(i) * size_of(dtype), &bits, size_of(dtype));
    }
    const std::vector<double> values = t.to_doubles();
    for (std::int64_t i = 0; i < patterns; ++i) {
      const double one = t[i];
      const double bulk = values[static_cast<std::size_t>(i)];
      ASSERT_TRUE(std::isnan(one) ? std::isnan(bulk) : one == bulk && std::signbit(one) == std::signbit(bulk)) << i;
    }
  }
}

TEST(Decode, UsesTheMemoryAgain) {
  std::vector<double> values(100, 7.0);
  decode(counting(DType::f32, {3}).view(), values);
  EXPECT_EQ(values, (std::vector<double>{0, 1, 2}));
  decode(attest_tensor{}, values);
  EXPECT_TRUE(values.empty());
  decode(Tensor(DType::f32, Shape(), std::vector<double>{5.0}).view(), values);
  EXPECT_EQ(values, std::vector<double>{5.0}) << "rank 0 is one element";
}

}  // namespace
}  // namespace attest
