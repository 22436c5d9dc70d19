// Test doubles: a plain attention kernel in double that can be told to be wrong, and a property that holds it to
// another evaluation of the definition with a simple tolerance, so that these tests depend on neither bound nor oracle.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/answer.h"
#include "properties/test/inspect.h"

namespace attest {

enum class Bug {
  none,
  scale,           ///< scale × 1.01
  tail,            ///< the last key is dropped when N % 16 == 1
  mask,            ///< the mask is ignored
  causal,          ///< the causal form is ignored
  head_mapping,    ///< head h reads key-value head h % kv_heads
  wide,            ///< columns of q and k from 64 on are ignored
  not_a_number,    ///< NaN where the largest score exceeds 50
  fails_when_long  ///< reports a failure for N > 20
};

inline double element(const attest_tensor& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return load_element(t.data, static_cast<DType>(t.dtype), offset_in(t, a, b, c, d));
}

inline int toy_attention(Bug bug, const attest_problem& p, attest_result& result, std::string& message) {
  const std::int64_t batch = p.q.shape[0], heads = p.q.shape[1], rows = p.q.shape[2], dk = p.q.shape[3];
  const std::int64_t kv_heads = p.k.shape[1], keys = p.k.shape[2], dv = p.v.shape[3];
  if (bug == Bug::fails_when_long && keys > 20) {
    message = "too long";
    return 7;
  }
  const std::int64_t used_keys = bug == Bug::tail && keys % 16 == 1 ? keys - 1 : keys;
  const std::int64_t used_dk = bug == Bug::wide ? std::min<std::int64_t>(dk, 64) : dk;
  const double scale = bug == Bug::scale ? 1.01 * p.scale : p.scale;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t kv = bug == Bug::head_mapping ? h % kv_heads : h / (heads / kv_heads);
      for (std::int64_t i = 0; i < rows; ++i) {
        std::vector<double> s;
        double largest = -INFINITY, sum = 0;
        for (std::int64_t j = 0; j < used_keys; ++j) {
          double x = 0, bias = 0;
          for (std::int64_t c = 0; c < used_dk; ++c) x += element(p.q, b, h, i, c) * element(p.k, b, kv, j, c);
          if (p.mask.data != nullptr && bug != Bug::mask) {
            bias = element(p.mask, p.mask.shape[0] == 1 ? 0 : b, p.mask.shape[1] == 1 ? 0 : h, i, j);
            if (p.mask.dtype == ATTEST_BOOL) bias = bias != 0 ? 0 : -INFINITY;
          }
          x = p.mask_convention == ATTEST_MASK_PRE_SCALE ? scale * (x + bias) : scale * x + bias;
          const std::int64_t shift = p.causal == ATTEST_CAUSAL_BOTTOM_RIGHT ? keys - rows : 0;
          if (p.causal != ATTEST_CAUSAL_NONE && j > i + shift && bug != Bug::causal) x = -INFINITY;
          s.push_back(x);
          largest = std::max(largest, x);
        }
        for (double& x : s) sum += x = x == -INFINITY ? 0 : std::exp(x - largest);
        for (std::int64_t c = 0; c < dv; ++c) {
          double o = 0;
          for (std::int64_t j = 0; j < used_keys; ++j) {
            if (s[static_cast<std::size_t>(j)] != 0)
              o += s[static_cast<std::size_t>(j)] / sum * element(p.v, b, kv, j, c);
          }
          if (bug == Bug::not_a_number && largest > 50) o = NAN;
          store_element(result.out.data, static_cast<DType>(result.out.dtype), offset_in(result.out, b, h, i, c), o);
        }
      }
    }
  }
  return ATTEST_OK;
}

/// A manifest without limits in f64 and f32.
inline Manifest toy_manifest() {
  Manifest manifest;
  manifest.name = "toy";
  manifest.dtypes = {DType::f64, DType::f32};
  manifest.arithmetic.usual[DType::f32] = Arithmetic();
  Arithmetic& f64 = manifest.arithmetic.usual[DType::f64];
  f64.input = f64.output = f64.score_sums = f64.accumulate = f64.weights = DType::f64;
  manifest.promises = manifest.arithmetic;
  manifest.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
  manifest.causal = {Causal::top_left, Causal::bottom_right};
  manifest.grouped_query = true;
  return manifest;
}

inline std::unique_ptr<Kernel> toy_kernel(Bug bug, Manifest manifest = toy_manifest()) {
  return function_kernel("toy", std::move(manifest), [bug](const attest_problem& p, attest_result& r, std::string& m) {
    return toy_attention(bug, p, r, m);
  });
}

/// Judges against the definition in double with a tolerance of 1e-9 of the largest value; rows without keys and rows
/// with scores beyond 1e6 are not judged.
inline Verdict toy_check(Kernel& kernel, const Case& c) {
  const Reply reply = answer(kernel, c);
  const Shape &q = c.q().shape(), &v = c.v().shape();
  const std::int64_t heads = q[1], rows = q[2], dv = v[3], keys = v[2];
  Verdict worst{.outcome = Outcome::excused, .reason = "nothing to judge"};
  for (std::int64_t row = 0; row < q[0] * heads * rows; ++row) {
    const std::int64_t b = row / rows / heads, h = row / rows % heads, kv = h / (heads / v[1]);
    std::vector<double> s;
    double largest = -INFINITY, size = 0, sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      s.push_back(score(c, b, h, row % rows, j));
      largest = std::max(largest, s.back());
    }
    if (largest == -INFINITY || std::abs(largest) > 1e6) continue;
    for (double& x : s) sum += x = std::exp(x - largest);
    for (std::int64_t column = 0; column < dv; ++column) {
      double o = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        const double value = c.v()[((b * v[1] + kv) * keys + j) * dv + column];
        o += s[static_cast<std::size_t>(j)] / sum * value;
        size = std::max(size, std::abs(value));
      }
      const double found = reply.out[row * dv + column];
      Verdict verdict{.outcome = Outcome::held, .element = row * dv + column};
      verdict.error = std::abs(found - o);
      verdict.allowed = (c.dtype() == DType::f64 ? 1e-9 : 1e-5) * size;
      verdict.utilisation = verdict.error == 0 ? 0 : verdict.error / verdict.allowed;
      if (!(verdict.error <= verdict.allowed)) {
        if (std::isnan(found)) verdict.utilisation = INFINITY;
        verdict.outcome = Outcome::violated;
        verdict.violation = std::isfinite(found) ? Violation::bound : Violation::not_finite;
        verdict.reason = fmt::format("element {}", verdict.element);
      }
      worst = worse_of({worst, verdict});
    }
  }
  return worst;
}

inline const Property toy_property{.name = "toy.oracle",
                                   .operation = Operation::attention,
                                   .given = [](Draw& draw) -> Case { return draw.attention(); },
                                   .check = toy_check};

}  // namespace attest
