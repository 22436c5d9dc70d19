// The generic core, on each of its scalars, as kernels under test: "core:float", "core:half", "core:mpfr", …

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "attest/attention.h"
#include "attest/kernel_under_test.h"
#include "attest/multihead.h"
#include "attest/scalars/bin_float.h"
#include "attest/scalars/half.h"
#include "attest/scalars/mpfi.h"
#include "attest/scalars/mpfr.h"
#include "attest/wide.h"

namespace attest {
namespace {

/// Decimal digits of core:mpfr and core:mpfi: about 200 bits. The products of doubles are exact from 32 digits on.
constexpr unsigned run_time_digits = 61;

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

DType dtype_of(const attest_tensor& t) {
  return static_cast<DType>(t.dtype);
}

template <class T>
T load(const attest_tensor& t, std::int64_t offset) {
  return ScalarTraits<T>::from_double(load_element(t.data, dtype_of(t), offset));
}

/// One rounding from T to the tensor's format: f32 not by way of double, the 16-bit formats only from scalars that
/// double holds exactly (no manifest below pairs another scalar with them).
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
  return grouped_attention(pages(p.q), pages(p.k), pages(p.v), batch, heads, kv_heads,
                           ScalarTraits<T>::from_double(p.scale), masks_of<T>(p.mask, p.mask_convention, p.causal));
}

template <class T>
int run_attention(const attest_problem& p, attest_result& result, std::string& message) try {
  [[maybe_unused]] const CallPrecision<T> precision;
  const Index batch = p.q.shape[0], heads = p.q.shape[1];
  const std::vector<AttentionResult<T>> results = attention_results<T>(p);
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      const AttentionResult<T>& page = results[static_cast<std::size_t>(b * heads + h)];
      for (Index i = 0; i < page.out.rows(); ++i) {
        for (Index c = 0; c < page.out.cols(); ++c)
          store(result.out, offset_in(result.out, b, h, i, c), page.out(i, c));
        if (result.lse.data != nullptr) store(result.lse, offset_in(result.lse, b, h, i), page.lse(i));
      }
    }
  }
  return ATTEST_OK;
} catch (const UsageError& error) {
  message = error.what();
  return ATTEST_REJECTED;
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

/// The definition on T, an output per batch entry.
template <class T>
std::vector<Matrix<T>> multihead_outputs(const attest_multihead_problem& p) {
  const auto entries = [](const attest_tensor& t) {
    std::vector<Matrix<T>> all;
    for (Index b = 0; b < t.shape[0]; ++b) all.push_back(matrix_at<T>(t, b));
    return all;
  };
  return mmhattn_batch(entries(p.q), entries(p.k), entries(p.v), weights_of<T>(p),
                       ScalarTraits<T>::from_double(p.scale), masks_of<T>(p.mask, p.mask_convention, p.causal));
}

template <class T>
int run_multihead(const attest_multihead_problem& p, attest_result& result, std::string& message) try {
  [[maybe_unused]] const CallPrecision<T> precision;
  const std::vector<Matrix<T>> outputs = multihead_outputs<T>(p);
  for (Index b = 0; b < static_cast<Index>(outputs.size()); ++b) {
    const Matrix<T>& out = outputs[static_cast<std::size_t>(b)];
    for (Index i = 0; i < out.rows(); ++i)
      for (Index c = 0; c < out.cols(); ++c) store(result.out, offset_in(result.out, b, i, c), out(i, c));
  }
  return ATTEST_OK;
} catch (const UsageError& error) {
  message = error.what();
  return ATTEST_REJECTED;
}

/// `inner` is the format every operation of the scalar rounds to, or f64 where the scalar is wider than that: then one
/// rounding to the output is all there is, and f64 is the loosest true statement the manifest has words for.
Arithmetic core_arithmetic(DType dtype, DType inner) {
  Arithmetic a;
  a.input = a.output = dtype;
  a.score_sums = a.accumulate = a.weights = inner;
  a.exp_ulp = 1.0;
  a.base2 = false;
  a.folded_exp2 = false;
  a.split_merge = false;
  a.normalise_first = true;
  a.max = MaxPolicy::running;
  a.block = 0;
  a.bias_in_sum = false;
  a.division_roundings = 1;
  return a;
}

/// A number of a wide scalar as an interval, exact.
WideInterval wide_interval(const Mpfr& x) {
  Wide value;
  mpfr_set(value.backend().data(), x.backend().data(), MPFR_RNDN);
  return {value, value};
}
WideInterval wide_interval(const Interval& x) {
  WideInterval ends;
  mpfi_get_left(ends.lower.backend().data(), x.backend().data());
  mpfi_get_right(ends.upper.backend().data(), x.backend().data());
  return ends;
}
template <unsigned digits>
WideInterval wide_interval(const boost::multiprecision::number<boost::multiprecision::cpp_bin_float<digits>,
                                                               boost::multiprecision::et_off>& x) {
  if (isnan(x)) {
    const Wide nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
  // Significant bits in pieces that a double holds.
  Wide value = 0;
  auto rest = x;
  while (rest != 0) {
    const double piece = rest.template convert_to<double>();
    value += piece;
    if (!std::isfinite(piece)) break;
    rest -= piece;
  }
  return {value, value};
}

/// Unit roundoff of the operations of a scalar wider than double; 0 for intervals.
template <class T>
constexpr bool is_wide_scalar = false;
template <>
constexpr bool is_wide_scalar<BinFloat50> = true;
template <>
constexpr bool is_wide_scalar<BinFloat100> = true;
template <>
constexpr bool is_wide_scalar<Mpfr> = true;
template <>
constexpr bool is_wide_scalar<Interval> = true;

template <class T>
double unit_of() {
  if constexpr (std::is_same_v<T, Interval>) return 0;
  // Boost's run-time precision is in digits, and MPFR's in bits at least as many as they need.
  if constexpr (std::is_same_v<T, Mpfr>)
    return std::ldexp(1.0, -static_cast<int>(mpfr_get_prec(Mpfr(0).backend().data())));
  return static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
}

/// A kernel on a wide scalar: rounded to a dtype as any other, or as it is.
template <class T>
class WideKernel final : public Kernel {
 public:
  explicit WideKernel(std::unique_ptr<Kernel> rounded) : rounded_(std::move(rounded)) {}
  [[nodiscard]] const std::string& id() const override { return rounded_->id(); }
  [[nodiscard]] const Manifest& manifest() const override { return rounded_->manifest(); }
  [[nodiscard]] Reply run(const Case& c, DType output, bool want_lse) override {
    return rounded_->run(c, output, want_lse);
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<WideKernel<T>>(rounded_->clone());
  }
  [[nodiscard]] bool is_wide() const override { return true; }
  [[nodiscard]] WideReply run_wide(const Case& c) override try {
    [[maybe_unused]] const CallPrecision<T> precision;
    WideReply reply;
    reply.unit = unit_of<T>();
    const auto keep = [&](const Matrix<T>& out) {
      for (Index i = 0; i < out.rows(); ++i)
        for (Index k = 0; k < out.cols(); ++k) reply.out.push_back(wide_interval(out(i, k)));
    };
    if (c.operation == Operation::attention) {
      for (const AttentionResult<T>& page : attention_results<T>(c.problem())) keep(page.out);
    } else {
      for (const Matrix<T>& out : multihead_outputs<T>(c.multihead_problem())) keep(out);
    }
    return reply;
  } catch (const UsageError& error) {
    return {.status = CallStatus::rejected, .message = error.what(), .out = {}};
  }

 private:
  std::unique_ptr<Kernel> rounded_;
};

template <class T>
KernelEntry entry(std::vector<DType> dtypes, DType inner, std::string summary) {
  std::string id = "core:" + std::string(ScalarTraits<T>::name);
  Manifest manifest;
  manifest.name = id;
  manifest.version = "1";
  for (const DType dtype : dtypes) manifest.arithmetic.emplace(dtype, core_arithmetic(dtype, inner));
  manifest.dtypes = std::move(dtypes);
  manifest.claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant,
                     Claim::ignores_dead_values};
  manifest.fully_masked_row = core_fully_masked_row;
  manifest.multihead = true;
  manifest.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
  manifest.causal = {Causal::top_left, Causal::bottom_right};
  manifest.grouped_query = true;
  manifest.strides = true;
  manifest.lse = true;
  auto make = [id, manifest]() -> std::unique_ptr<Kernel> {
    std::unique_ptr<Kernel> rounded = function_kernel(id, manifest, run_attention<T>, run_multihead<T>);
    if constexpr (is_wide_scalar<T>) return std::make_unique<WideKernel<T>>(std::move(rounded));
    return rounded;
  };
  return {.id = std::move(id), .summary = std::move(summary), .make = std::move(make)};
}

}  // namespace

std::vector<KernelEntry> core_kernels() {
  const std::vector<DType> wide{DType::f64, DType::f32};
  return {
      entry<float>({DType::f32}, DType::f32, "the definition in float"),
      entry<double>(wide, DType::f64, "the definition in double, f32 output rounded once"),
      entry<Eigen::half>({DType::f16}, DType::f16, "the definition with every operation in half"),
      entry<Eigen::bfloat16>({DType::bf16}, DType::bf16, "the definition with every operation in bfloat16"),
      entry<BinFloat50>(wide, DType::f64, "the definition in 50 decimal digits, rounded once"),
      entry<BinFloat100>(wide, DType::f64, "the definition in 100 decimal digits, rounded once"),
      entry<Mpfr>(wide, DType::f64, "the definition in MPFR with 61 decimal digits, rounded once"),
      entry<Interval>(wide, DType::f64, "the definition in MPFI intervals, their midpoints rounded once"),
  };
}

}  // namespace attest
