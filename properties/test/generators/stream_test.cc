#include "properties/generators/stream.h"

#include <gtest/gtest.h>

#include <cmath>

namespace attest {
namespace {

// Every saved seed stands for a case; these values must never change.
TEST(Stream, GivesTheSameBitsEverywhere) {
  Stream stream(0);
  EXPECT_EQ(stream.next(), 0xe220a8397b1dcdafU);  // the reference implementation's first number for seed 0
  EXPECT_EQ(Stream(1).gaussian(), -0x1.3c2abbf70061ap-1);
  EXPECT_EQ(Stream(1).heavy(), 0x1.6d17cccce80a5p-3);
  EXPECT_EQ(Stream(1).uniform(0.01, 2.0), 0x1.23306abfaa3f9p+0);
}

TEST(Stream, GaussianHasMean0AndVariance1) {
  constexpr int n = 1'000'000;
  double sum = 0, squares = 0, fourth = 0, largest = 0;
  Stream stream(7);
  for (int i = 0; i < n; ++i) {
    const double x = stream.gaussian();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    largest = std::max(largest, std::abs(x));
  }
  // Five standard deviations of each mean; the fourth moment of the sum of four uniforms is 3 - 6/5/4 = 2.7.
  EXPECT_LE(std::abs(sum / n), 5.0 / std::sqrt(n));
  EXPECT_LE(std::abs(squares / n - 1.0), 5 * std::sqrt(1.7 / n));
  EXPECT_LE(std::abs(fourth / n - 2.7), 0.05);
  EXPECT_LE(largest, 2 * std::sqrt(3.0));
  EXPECT_GE(largest, 3.2);
}

TEST(Stream, HeavyHasTailsLikeCauchys) {
  constexpr int n = 200'000;
  int beyond_ten = 0, beyond_hundred = 0;
  Stream stream(8);
  for (int i = 0; i < n; ++i) {
    const double x = std::abs(stream.heavy());
    ASSERT_LE(x, 1024.0);
    beyond_ten += x > 10;
    beyond_hundred += x > 100;
  }
  EXPECT_GE(beyond_ten, n / 40);
  EXPECT_LE(beyond_ten, n / 10);
  EXPECT_GE(beyond_hundred, n / 500);
}

TEST(Stream, BelowReachesEveryValueAndNoOther) {
  Stream stream(9);
  int count[7] = {};
  for (int i = 0; i < 7000; ++i) {
    const auto value = stream.below(7);
    ASSERT_TRUE(value >= 0 && value < 7);
    ++count[value];
  }
  for (const int times : count) EXPECT_NEAR(times, 1000, 150);
}

}  // namespace
}  // namespace attest
