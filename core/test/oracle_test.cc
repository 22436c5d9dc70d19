#include "attest/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "attest/error_bound.h"

namespace attest {
namespace {

struct Spec {
  DType dtype = DType::f32;
  std::int64_t queries = 4, keys = 24, dk = 8, dv = 5;
  double spread = 1, scale = 0.35355339059327373;
};

Case random_case(std::mt19937_64& random, const Spec& spec) {
  std::normal_distribution<double> normal;
  const auto tensor = [&](std::int64_t rows, std::int64_t columns, double size) {
    std::vector<double> values(static_cast<std::size_t>(rows * columns));
    for (double& value : values) value = size * normal(random);
    return Tensor(spec.dtype, Shape{1, 1, rows, columns}, values);
  };
  Case c;
  c[Slot::q] = tensor(spec.queries, spec.dk, spec.spread);
  c[Slot::k] = tensor(spec.keys, spec.dk, 1);
  c[Slot::v] = tensor(spec.keys, spec.dv, 1);
  c.scale = spec.scale;
  return c;
}

/// Two-pass attention in float, each operation rounded once; `wrong` spoils it.
enum class Fault { none, scale, drop_last_key };
Tensor two_pass(const Case& c, Fault fault = Fault::none) {
  const std::int64_t M = c.q().shape()[2], N = c.k().shape()[2], dk = c.q().shape()[3], dv = c.v().shape()[3];
  const std::int64_t n = fault == Fault::drop_last_key ? N - 1 : N;
  const float scale = static_cast<float>(c.scale * (fault == Fault::scale ? 1.01 : 1.0));
  Tensor out(DType::f32, Shape{1, 1, M, dv});
  std::vector<float> s(static_cast<std::size_t>(N));
  for (std::int64_t i = 0; i < M; ++i) {
    float m = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < n; ++j) {
      float x = 0;
      for (std::int64_t e = 0; e < dk; ++e)
        x += static_cast<float>(c.q()[i * dk + e]) * static_cast<float>(c.k()[j * dk + e]);
      s[static_cast<std::size_t>(j)] = x * scale;
      m = std::max(m, s[static_cast<std::size_t>(j)]);
    }
    float sum = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      float& w = s[static_cast<std::size_t>(j)];
      w = std::exp(w - m);
      sum += w;
    }
    for (std::int64_t k = 0; k < dv; ++k) {
      float o = 0;
      for (std::int64_t j = 0; j < n; ++j) o += s[static_cast<std::size_t>(j)] * static_cast<float>(c.v()[j * dv + k]);
      out.set(i * dv + k, static_cast<double>(o / sum));
    }
  }
  return out;
}

TEST(oracle, accepts_a_plain_kernel_and_refuses_a_broken_one) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    Spec spec;
    spec.spread = round % 2 ? 4 : 1;
    const Case c = random_case(random, spec);
    const Arithmetic universal = universal_arithmetic(DType::f32, DType::f32);
    const Verdict right = judge_attention(c, two_pass(c), {}, universal);
    EXPECT_EQ(right.outcome, Outcome::held) << right.reason;
    EXPECT_LT(right.utilisation, 0.7);
    EXPECT_GT(right.utilisation, 1e-3);
    EXPECT_EQ(right.level, 1);
    EXPECT_EQ(judge_attention(c, two_pass(c, Fault::scale), {}, universal).outcome, Outcome::violated);
    EXPECT_EQ(judge_attention(c, two_pass(c, Fault::drop_last_key), {}, universal).outcome, Outcome::violated);
  }
}

/// Two-pass attention in double.
Tensor two_pass_f64(const Case& c, double factor = 1) {
  const std::int64_t M = c.q().shape()[2], N = c.k().shape()[2], dk = c.q().shape()[3], dv = c.v().shape()[3];
  Tensor out(DType::f64, Shape{1, 1, M, dv});
  std::vector<double> s(static_cast<std::size_t>(N));
  for (std::int64_t i = 0; i < M; ++i) {
    double m = -std::numeric_limits<double>::infinity(), sum = 0;
    for (std::int64_t j = 0; j < N; ++j) {
      double x = 0;
      for (std::int64_t e = 0; e < dk; ++e) x += c.q()[i * dk + e] * c.k()[j * dk + e];
      s[static_cast<std::size_t>(j)] = x * c.scale * factor;
      m = std::max(m, s[static_cast<std::size_t>(j)]);
    }
    for (double& w : s) sum += w = std::exp(w - m);
    for (std::int64_t k = 0; k < dv; ++k) {
      double o = 0;
      for (std::int64_t j = 0; j < N; ++j) o += s[static_cast<std::size_t>(j)] * c.v()[j * dv + k];
      out.set(i * dv + k, o / sum);
    }
  }
  return out;
}

TEST(oracle, settles_f64_kernels_in_double_double) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    Spec spec;
    spec.dtype = DType::f64;
    spec.spread = round % 2 ? 4 : 1;
    const Case c = random_case(random, spec);
    const Arithmetic universal = universal_arithmetic(DType::f64, DType::f64);
    const Tensor out = two_pass_f64(c);
    const Verdict right = judge_attention(c, out, {}, universal);
    EXPECT_EQ(right.outcome, Outcome::held) << right.reason;
    EXPECT_EQ(right.level, 2);
    const Verdict balls = judge_attention(c, out, {}, universal, {.first_level = 3});
    EXPECT_EQ(balls.level, 3);
    EXPECT_NEAR(right.utilisation, balls.utilisation, 1e-5 * balls.utilisation);
    EXPECT_EQ(judge_attention(c, two_pass_f64(c, 1 + 1e-11), {}, universal).outcome, Outcome::violated);
  }
}

}  // namespace
}  // namespace attest
