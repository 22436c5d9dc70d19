// Problems as matrices of a core scalar, and its numbers as any reader's: what the core's kernels and its functions by
// name share.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "core/definition/attention.h"
#include "core/definition/multihead.h"
#include "core/kernel/formal.h"
#include "core/kernel/wide.h"
#include "core/scalars/every_scalar.h"
#include "core/support/flint_caches.h"

namespace attest {

/// Decimal digits of core:mpfr, core:mpfi and core:arb: about 200 bits. The products of doubles are exact from 32
/// digits on.
inline constexpr unsigned run_time_digits = 61;

/// Sets the precision of scalars that have one at run time, for the time of a call.
template <class T>
struct CallPrecision {};
template <>
struct CallPrecision<Mpfr> {
  PrecisionScope<Mpfr> numbers{run_time_digits};
};
template <>
struct CallPrecision<Interval> {
  PrecisionScope<Mpfr> middles{run_time_digits};
  PrecisionScope<Interval> intervals{run_time_digits};
};

template <>
struct CallPrecision<Arb> {
  CallPrecision() { detail::free_flint_caches_at_thread_end(); }
  PrecisionScope<Arb> balls{run_time_digits};
};

inline DType dtype_of(const attest_tensor& t) {
  return static_cast<DType>(t.dtype);
}

/// A number of a case. On expressions it is what the double stands for.
template <class T>
T input(double value) {
  return ScalarTraits<T>::from_double(value);
}
template <>
inline Expression input<Expression>(double value) {
  return GenericInputs::current().at(value);
}

template <class T>
T load(const attest_tensor& t, std::int64_t offset) {
  return input<T>(load_element(t.data, dtype_of(t), offset));
}

/// An enclosure so loose that its midpoint says nothing of the number in it.
class LooseEnclosure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws LooseEnclosure where an interval is wider than 2^-55 of its largest number: huge scores, whose exponentials
/// run-time precision cannot hold. One without endpoints is NaN and passes; so does every number of another scalar.
template <class T>
void refuse_loose([[maybe_unused]] const T& x) {
  if constexpr (std::is_same_v<T, Interval>) {
    mpfr_srcptr left = &x.backend().data()->left, right = &x.backend().data()->right;
    if (mpfr_nan_p(left) != 0 || mpfr_nan_p(right) != 0 || mpfr_equal_p(left, right) != 0) return;
    Mpfr width, largest;
    mpfi_diam_abs(width.backend().data(), x.backend().data());
    mpfi_mag(largest.backend().data(), x.backend().data());
    if (!isfinite(width) || width > ldexp(largest, -55))
      throw LooseEnclosure("the enclosure of an output is too loose to be rounded to one number");
  } else if constexpr (std::is_same_v<T, Arb>) {
    if (x.is_undefined() || mag_is_zero(arb_radref(x.ball())) != 0) return;
    // 2^-56 of the midpoint: the radius is half of the width.
    arf_t allowed;
    arf_init(allowed);
    arf_mul_2exp_si(allowed, arb_midref(x.ball()), -56);
    const bool loose = arf_cmpabs_mag(allowed, arb_radref(x.ball())) < 0;
    arf_clear(allowed);
    if (loose) throw LooseEnclosure("the enclosure of an output is too loose to be rounded to one number");
  }
}

/// One rounding from T to the tensor's format: f32 not by way of double, the 16-bit formats only from scalars that
/// double holds exactly (no kernel pairs another scalar with them).
template <class T>
void store(const attest_tensor& t, std::int64_t offset, const T& x) {
  if (dtype_of(t) == DType::f32) {
    static_cast<float*>(t.data)[offset] = ScalarTraits<T>::to_float(x);
  } else {
    store_element(t.data, dtype_of(t), offset, ScalarTraits<T>::to_double(x));
  }
}

/// The last two axes of a tensor of rank 2 to 4, at indices a and b of those before them.
template <class T>
Matrix<T> matrix_at(const attest_tensor& t, std::int64_t a = 0, std::int64_t b = 0) {
  const int row = t.rank - 2, column = t.rank - 1;
  const std::int64_t start = offset_in(t, t.rank > 2 ? a : 0, t.rank > 3 ? b : 0);
  Matrix<T> m(t.shape[row], t.shape[column]);
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j) m(i, j) = load<T>(t, start + i * t.stride[row] + j * t.stride[column]);
  return m;
}

template <class T>
std::optional<Vector<T>> vector_of(const attest_tensor& t) {
  if (t.data == nullptr) return std::nullopt;
  Vector<T> v(t.shape[0]);
  for (Index i = 0; i < v.size(); ++i) v(i) = load<T>(t, i * t.stride[0]);
  return v;
}

template <class T>
MaskStack<T> masks_of(const attest_tensor& t, std::int32_t convention, std::int32_t causal) {
  Mask<T> common;
  common.causal = static_cast<Causal>(causal);
  common.convention = static_cast<MaskConvention>(convention);
  if (t.data == nullptr) return MaskStack<T>::two_d(common);
  std::vector<Mask<T>> pages;
  for (std::int64_t b = 0; b < t.shape[0]; ++b) {
    for (std::int64_t h = 0; h < t.shape[1]; ++h) {
      Mask<T> page = common;
      if (dtype_of(t) == DType::boolean) {
        page.allowed = matrix_at<double>(t, b, h).unaryExpr([](double x) { return x != 0.0; });
      } else {
        page.additive = matrix_at<T>(t, b, h);
      }
      pages.push_back(std::move(page));
    }
  }
  return MaskStack<T>::four_d(std::move(pages), t.shape[0], t.shape[1]);
}

/// The definition on T, a result per batch entry and head.
template <class T>
std::vector<AttentionResult<T>> attention_results(const attest_problem& p) {
  const Index batch = p.q.shape[0], heads = p.q.shape[1], kv_heads = p.k.shape[1];
  const auto pages = [&](const attest_tensor& t) {
    std::vector<Matrix<T>> all;
    for (Index b = 0; b < t.shape[0]; ++b)
      for (Index h = 0; h < t.shape[1]; ++h) all.push_back(matrix_at<T>(t, b, h));
    return all;
  };
  return grouped_attention(pages(p.q), pages(p.k), pages(p.v), batch, heads, kv_heads, input<T>(p.scale),
                           masks_of<T>(p.mask, p.mask_convention, p.causal));
}

template <class T>
MultiheadWeights<T> weights_of(const attest_multihead_problem& p) {
  MultiheadWeights<T> w;
  w.q = {.weight = matrix_at<T>(p.w_q), .bias = vector_of<T>(p.b_q)};
  w.k = {.weight = matrix_at<T>(p.w_k), .bias = vector_of<T>(p.b_k)};
  w.v = {.weight = matrix_at<T>(p.w_v), .bias = vector_of<T>(p.b_v)};
  if (p.w_o.data != nullptr) w.w_o = matrix_at<T>(p.w_o);
  w.b_o = vector_of<T>(p.b_o);
  w.bias_k = vector_of<T>(p.bias_k);
  w.bias_v = vector_of<T>(p.bias_v);
  w.heads = p.heads;
  return w;
}

/// The batch entries of a tensor [batch, rows, columns].
template <class T>
std::vector<Matrix<T>> entries_at(const attest_tensor& t) {
  std::vector<Matrix<T>> all;
  all.reserve(static_cast<std::size_t>(t.shape[0]));
  for (Index b = 0; b < t.shape[0]; ++b) all.push_back(matrix_at<T>(t, b));
  return all;
}

/// Writes an output per batch entry, [batch, M, d_o]. Throws as refuse_loose.
template <class T>
void store_entries(const std::vector<Matrix<T>>& outputs, const attest_tensor& out) {
  for (Index b = 0; b < static_cast<Index>(outputs.size()); ++b) {
    const Matrix<T>& entry = outputs[static_cast<std::size_t>(b)];
    for (Index i = 0; i < entry.rows(); ++i)
      for (Index c = 0; c < entry.cols(); ++c) {
        refuse_loose(entry(i, c));
        store(out, offset_in(out, b, i, c), entry(i, c));
      }
  }
}

/// The definition on T, an output per batch entry.
template <class T>
std::vector<Matrix<T>> multihead_outputs(const attest_multihead_problem& p) {
  return mmhattn_batch(entries_at<T>(p.q), entries_at<T>(p.k), entries_at<T>(p.v), weights_of<T>(p), input<T>(p.scale),
                       masks_of<T>(p.mask, p.mask_convention, p.causal));
}

/// A number of a wide scalar as an interval, exact.
inline WideInterval wide_interval(const Mpfr& x) {
  Wide value;
  mpfr_set(value.backend().data(), x.backend().data(), MPFR_RNDN);
  return {value, value};
}
inline WideInterval wide_interval(const Interval& x) {
  WideInterval ends;
  mpfi_get_left(ends.lower.backend().data(), x.backend().data());
  mpfi_get_right(ends.upper.backend().data(), x.backend().data());
  return ends;
}
/// Of more digits and exponents than Wide's: rounded outward. FLINT writes exponents that are out of MPFR's range,
/// where MPFR's own functions may do anything.
inline WideInterval wide_interval(const Arb& x) {
  WideInterval ends{std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  if (x.is_undefined()) return ends;
  arb_get_interval_mpfr(ends.lower.backend().data(), ends.upper.backend().data(), x.ball());
  mpfr_check_range(ends.lower.backend().data(), 0, MPFR_RNDD);
  mpfr_check_range(ends.upper.backend().data(), 0, MPFR_RNDU);
  return ends;
}
/// Of any other binary floating-point number, such as cpp_bin_float's.
template <class T>
WideInterval wide_interval(const T& x) {
  static_assert(std::numeric_limits<T>::radix == 2, "an overload says what lies in a number of this scalar");
  using std::frexp, std::isfinite, std::isnan;
  if (isnan(x)) {
    const Wide nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
  if (!isfinite(x)) {
    const Wide infinite = static_cast<double>(x);
    return {infinite, infinite};
  }
  // The significand in pieces that a double holds: x itself may lie below every double.
  int exponent = 0;
  T rest = frexp(x, &exponent);
  Wide value = 0;
  while (rest != 0) {
    const auto piece = static_cast<double>(rest);
    value += piece;
    rest -= piece;
  }
  value = ldexp(value, exponent);
  return {value, value};
}

/// Wider than every dtype.
template <class T>
inline constexpr bool is_wide_scalar = !requires { ScalarTraits<T>::dtype; };

/// Unit roundoff of the operations of a scalar; 0 for intervals and expressions.
template <class T>
double unit_of() {
  if constexpr (std::is_same_v<T, Interval> || std::is_same_v<T, Arb> || std::is_same_v<T, Expression>) {
    return 0;
  } else if constexpr (std::is_same_v<T, Mpfr>) {
    // Boost's run-time precision is in digits, and MPFR's in bits at least as many as they need.
    return std::ldexp(1.0, -static_cast<int>(mpfr_get_prec(Mpfr(0).backend().data())));
  } else {
    return static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  }
}

/// The matrices one after another, as one array of that shape, in the scalar's own numbers.
template <class T>
Values numbers_of(const std::vector<Matrix<T>>& pages, const Shape& shape) {
  const auto for_each = [&](auto take) {
    for (const Matrix<T>& page : pages)
      for (Index i = 0; i < page.rows(); ++i)
        for (Index j = 0; j < page.cols(); ++j) take(page(i, j));
  };
  if constexpr (std::is_same_v<T, Expression>) {
    std::vector<Expression> formulas;
    for_each([&](const T& x) { formulas.push_back(x); });
    return Expressions(shape, std::move(formulas));
  } else if constexpr (is_wide_scalar<T>) {
    std::vector<WideInterval> wide;
    for_each([&](const T& x) { wide.push_back(wide_interval(x)); });
    return Enclosures(shape, std::move(wide), unit_of<T>());
  } else {
    Tensor tensor(ScalarTraits<T>::dtype, shape);
    for_each([&, e = std::int64_t{0}](const T& x) mutable { tensor.set(e++, ScalarTraits<T>::to_double(x)); });
    return tensor;
  }
}
template <class T>
Values numbers_of(const Matrix<T>& a) {
  return numbers_of(std::vector<Matrix<T>>{a}, {a.rows(), a.cols()});
}

}  // namespace attest
