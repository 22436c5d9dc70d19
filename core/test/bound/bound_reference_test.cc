// The evaluation of the bound against an independent one: golden/bound_reference.py evaluates error-bounds.md 1.1, 1.2
// as corrected by 1.7 from the text alone, in 60 digits; both must give the same number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/bound/row_bound.h"
#include "core/test/places.h"

namespace attest {
namespace {

using nlohmann::json;
using Numbers = std::vector<double>;

Profile profile_from(const json& fields, std::int64_t keys, std::int64_t dk, double scale, bool bias, bool pre_scale) {
  const auto number = [&](const char* name) { return fields.at(name).get<double>(); };
  const auto flag = [&](const char* name) { return fields.at(name).get<bool>(); };
  // Of a tight f32 kernel, so that only the fields set below differ from the reference's base.
  Arithmetic a;
  a.base2 = a.folded_exp2 = a.split_merge = a.normalise_first = a.bias_in_sum = false;
  a.block = 0;
  a.max = MaxPolicy::running;
  Profile p = profile_of(a, {.keys = keys,
                             .dk = dk,
                             .scale = scale,
                             .bias = bias,
                             .convention = pre_scale ? MaskConvention::pre_scale : MaskConvention::post_scale,
                             .mask = DType::f32});
  p.u_s = number("u_s");
  p.lam_s = number("lam_s");
  p.prescaled = flag("prescaled");
  p.u_qpre = number("u_qpre");
  p.lam_q = number("lam_q");
  p.H_q = p.H_s;
  p.u_raw = number("u_x");
  p.lam_raw = number("lam_x");
  p.th_scale = pw(number("u_sc"), number("c_sc"));
  p.lam_scale = 2 * number("lam_s");
  p.th_bias =
      join(join(bias ? pw(number("u_b"), number("c_b")) : 0.0, number("u_store")), pw(number("u_sc"), number("c_end")));
  p.lam_bias = number("lam_store");
  p.u_bc = p.lam_bc = 0;
  p.th_tau = number("th_tau");
  p.th_l2e = number("th_l2e");
  p.u_e = number("u_e");
  p.c_e = number("c_e");
  p.c_m = number("c_m");
  p.lazy = number("T");
  p.eps_exp = number("eps_exp");
  p.lam_e = number("lam_e");
  p.lam_exponent = number("lam_exponent");
  p.rescalings = number("R");
  p.u_p = number("u_p");
  p.lam_p = number("lam_p");
  p.p_in_denom = flag("p_in_denom");
  p.u_a = number("u_a");
  p.lam_a = number("lam_a");
  p.nearest = flag("rn");
  p.extra = 0;
  p.c_div = number("c_div");
  p.norm_first = number("norm_first") != 0;
  p.u_o = number("u_o");
  p.lam_o = number("lam_o");
  p.lam_in = 0;
  p.stored = false;
  return p;
}

/// A row of the golden file, and its exact quantities in long double: its 64 bits are beyond the agreement asked for
/// below.
struct Reference {
  explicit Reference(const json& row);

  /// The implementation's elements.
  [[nodiscard]] std::vector<detail::ElementTerms> bounds() const;

  Numbers q;
  std::vector<Numbers> k, v;
  bool bias, pre_scale;
  std::size_t n, dv;
  Profile p;
  std::vector<double> expected;
  Numbers s, t, size, b, k1, la, alpha;  ///< of the keys
  std::size_t stride;
  Numbers values, low, high, abs_sum, o;  ///< of the columns

 private:
  void weigh_keys(const json& row, double scale);
  void sum_columns();
  std::vector<long double> weight_;  ///< of sum 1
};

Reference::Reference(const json& row)
    : q(row.at("q").get<Numbers>()),
      k(row.at("k").get<std::vector<Numbers>>()),
      v(row.at("v").get<std::vector<Numbers>>()),
      bias(!row.at("b").is_null()),
      pre_scale(row.at("pre_scale").get<bool>()),
      n(k.size()),
      dv(v.front().size()),
      stride((dv + 3) / 4 * 4) {
  const double scale = row.at("scale").get<double>();
  p = profile_from(row.at("fields"), static_cast<std::int64_t>(n), static_cast<std::int64_t>(q.size()), scale, bias,
                   pre_scale);
  for (const json& bound : row.at("bound")) expected.push_back(std::stod(bound.get<std::string>()));
  weigh_keys(row, scale);
  sum_columns();
}

void Reference::weigh_keys(const json& row, double scale) {
  for (Numbers* array : {&s, &t, &size, &b, &k1, &la, &alpha}) array->resize(n);
  std::vector<long double> exact_s(n);
  weight_.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    long double x = 0, X = 0;
    for (std::size_t c = 0; c < q.size(); ++c) {
      x += static_cast<long double>(q[c]) * k[j][c];
      X += std::fabs(static_cast<long double>(q[c]) * k[j][c]);
      k1[j] += std::fabs(k[j][c]);
    }
    const long double mask = bias ? row.at("b").at(j).get<double>() : 0.0;
    exact_s[j] = pre_scale ? scale * (x + mask) : scale * x + mask;
    s[j] = static_cast<double>(exact_s[j]);
    t[j] = static_cast<double>(scale * x);
    size[j] = static_cast<double>(X);
    b[j] = static_cast<double>(pre_scale ? scale * mask : mask);
  }
  const long double top = *std::max_element(exact_s.begin(), exact_s.end());
  long double sum = 0;
  for (std::size_t j = 0; j < n; ++j) sum += weight_[j] = std::exp(exact_s[j] - top);
  for (std::size_t j = 0; j < n; ++j) {
    la[j] = static_cast<double>(exact_s[j] - top - std::log(sum));
    weight_[j] /= sum;
    alpha[j] = static_cast<double>(weight_[j]);
  }
}

void Reference::sum_columns() {
  values.resize(n * stride);
  for (Numbers* array : {&low, &high, &abs_sum, &o}) array->resize(stride);
  for (std::size_t c = 0; c < dv; ++c) {
    low[c] = high[c] = v[0][c];
    long double mean = 0;
    for (std::size_t j = 0; j < n; ++j) {
      values[j * stride + c] = v[j][c];
      low[c] = std::min(low[c], v[j][c]);
      high[c] = std::max(high[c], v[j][c]);
      abs_sum[c] += std::fabs(v[j][c]);
      mean += weight_[j] * v[j][c];
    }
    o[c] = static_cast<double>(mean);
  }
}

std::vector<detail::ElementTerms> Reference::bounds() const {
  detail::RowKeys keys;
  keys.n = static_cast<std::int64_t>(n);
  keys.s = s.data();
  keys.t = t.data();
  keys.size = size.data();
  keys.b = bias ? b.data() : nullptr;
  keys.k1 = k1.data();
  keys.la = la.data();
  keys.alpha = alpha.data();
  detail::RowValues columns;
  columns.v = values.data();
  columns.stride = static_cast<std::int64_t>(stride);
  columns.dv = static_cast<std::int64_t>(dv);
  columns.low = low.data();
  columns.high = high.data();
  columns.abs_sum = abs_sum.data();
  const Numbers radius(stride);
  detail::BoundScratch scratch;
  const detail::KeyTerms terms = detail::key_terms(p, keys, q.data(), scratch);
  std::vector<detail::ElementTerms> found(dv);
  detail::element_bounds(p, keys, terms, columns, o.data(), radius.data(), scratch, found.data());
  return found;
}

TEST(BoundReference, TwoImplementationsOfOneTextAgree) {
  std::ifstream file(source_folder() + "/core/test/golden/bound_reference.json");
  const json rows = json::parse(file).at("rows");
  ASSERT_GE(rows.size(), 60U);
  int elements = 0, loose = 0;
  for (const json& row : rows) {
    SCOPED_TRACE(row.at("profile").get<std::string>() + ", " + row.at("regime").get<std::string>());
    const Reference reference(row);
    const std::vector<detail::ElementTerms> found = reference.bounds();
    for (std::size_t c = 0; c < reference.dv; ++c, ++elements) {
      const double expected = reference.expected.at(c);
      // Never smaller than the formula. Larger by little: keys are parted into heavy and light ones by weight alone in
      // the refined sums, which shows where a weight lies just beside the partition.
      EXPECT_GE(found[c].allowed, expected * (1 - 0x1p-30)) << "element " << c;
      EXPECT_LE(found[c].allowed, expected * 1.02) << "element " << c;
      loose += found[c].allowed > expected * (1 + 0x1p-20);
    }
  }
  EXPECT_LE(loose, 2);
  EXPECT_GE(elements, 120);
}

}  // namespace
}  // namespace attest
