// Stream: a fast source of random numbers whose values are the same bits on every machine and with every compiler.
// The distributions of <random> differ between standard libraries, and log, cos and exp differ in their last bit
// between C libraries; so everything here is integer arithmetic, +, -, *, / and sqrt, which IEEE 754 defines to the
// bit.
#pragma once

#include <cstdint>

namespace attest {

/// SplitMix64 (Steele, Lea and Flood 2014): statistically sound for filling tensors, one multiply-and-shift chain a
/// number. Not thread-safe; a value type.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A whole number in [0, n), 1 <= n < 2^32; the bias is below n/2^32.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }
  /// A whole number in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  /// True once in `n` calls.
  bool one_in(std::int64_t n) { return below(n) == 0; }
  /// Uniform in [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  /// `size` or -size. (A product like sign() * unit() would leave to the compiler which of the two is drawn first, and
  /// with it the value: one draw an expression.)
  double either(double size) { return (next() >> 63) != 0 ? size : -size; }

  /// Close to standard normal: the sum of four uniforms (Irwin-Hall) from the four 16-bit lanes of one number, mean 0,
  /// variance 1, at most 3.47 in size. Heavier tails are a kind of their own.
  double gaussian() {
    const std::uint64_t lanes = next();
    const auto sum = static_cast<std::int64_t>((lanes & 0xffff) + ((lanes >> 16) & 0xffff) + ((lanes >> 32) & 0xffff) +
                                               (lanes >> 48));
    // Each lane has mean 65535/2 and variance (2^32 - 1)/12; 2^-16 sqrt(3) normalises the sum of four (to 2^-32).
    return static_cast<double>(2 * sum - 4 * 65535) * 0x1.bb67ae8584caap-17;
  }
  /// Tails like Cauchy's, density ~ 1/x^2: a ratio of uniforms, cut at +-1000.
  double heavy() {
    const double numerator = 2 * unit() - 1, denominator = unit() + 0x1p-10;
    return numerator / denominator;
  }

 private:
  std::uint64_t state_;
};

}  // namespace attest
