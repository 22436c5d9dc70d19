// Upper bounds of sizes: Arb's mag_t, whose exponents are without limit and whose every operation rounds up.
#pragma once

#include <vector>

#include "core/scalars/arb_header.h"

namespace attest::detail {

/// A number >= 0 that is known from above.
class Mag {
 public:
  Mag() { mag_init(x_); }
  Mag(double size) : Mag() { mag_set_d(x_, size); }  // NOLINT: a size is one
  /// The largest size in a ball.
  explicit Mag(const arb_t ball) : Mag() { arb_get_mag(x_, ball); }
  Mag(const Mag& other) { mag_init_set(x_, other.x_); }
  Mag(Mag&& other) noexcept : Mag() { mag_swap(x_, other.x_); }
  Mag& operator=(const Mag& other) {
    mag_set(x_, other.x_);
    return *this;
  }
  Mag& operator=(Mag&& other) noexcept {
    mag_swap(x_, other.x_);
    return *this;
  }
  ~Mag() { mag_clear(x_); }
  [[nodiscard]] static Mag power_of_two(double exponent) {
    Mag power(1.0);
    mag_mul_2exp_si(power.x_, power.x_, static_cast<slong>(exponent));
    return power;
  }
  [[nodiscard]] static Mag of(long double size);

  [[nodiscard]] mag_srcptr data() const { return x_; }
  [[nodiscard]] mag_ptr data() { return x_; }
  [[nodiscard]] bool is_infinite() const { return mag_is_inf(x_) != 0; }
  /// From above; smaller than every such number is the smallest.
  [[nodiscard]] long double size() const;

  friend Mag operator+(Mag a, const Mag& b) {
    mag_add(a.x_, a.x_, b.x_);
    return a;
  }
  friend Mag operator*(Mag a, const Mag& b) {
    mag_mul(a.x_, a.x_, b.x_);
    return a;
  }
  Mag& operator+=(const Mag& b) {
    mag_add(x_, x_, b.x_);
    return *this;
  }
  /// a b more.
  void add_product(const Mag& a, const Mag& b) { mag_addmul(x_, a.x_, b.x_); }
  friend Mag exp(const Mag& a) {
    Mag e;
    mag_exp(e.x_, a.x_);
    return e;
  }
  friend Mag expm1(const Mag& a) {
    Mag e;
    mag_expm1(e.x_, a.x_);
    return e;
  }
  friend bool operator<(const Mag& a, const Mag& b) { return mag_cmp(a.x_, b.x_) < 0; }
  friend bool operator<=(const Mag& a, const Mag& b) { return mag_cmp(a.x_, b.x_) <= 0; }

 private:
  mag_t x_;
};

using Mags = std::vector<Mag>;

}  // namespace attest::detail
