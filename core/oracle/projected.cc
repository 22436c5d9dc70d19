#include "core/oracle/projected.h"

#include <algorithm>
#include <cmath>

#include "core/bound/loops/inner_loops.h"
#include "core/oracle/rows/double_double_row.h"
#include "core/support/room.h"

namespace attest::detail {

ProjectionProfile projection_profile(const Arithmetic& a, const Profile& p) {
  const Format& stored = format_of(a.input);
  const Format& score = format_of(a.score_sums);
  const Format& sums = format_of(a.accumulate);
  ProjectionProfile g;
  g.u_g = std::max(p.u_s, p.u_a);
  g.lam_g = std::max(p.lam_s, p.lam_a);
  const double finest = std::min(score.unit, sums.unit);
  if (stored.unit > finest) g.u_st = stored.unit;
  g.lam_st = std::max(a.flushes_subnormals ? stored.min_normal : stored.min_subnormal, p.lam_in);
  g.u_y = p.u_o;
  g.lam_y = p.lam_o;
  g.largest = std::min({stored.largest, score.largest, sums.largest});
  g.largest_y = std::min(sums.largest, p.H_o);
  return g;
}

Weights::Weights(const Tensor& w, const Tensor& b) {
  if (b.present()) bias = b.to_doubles();
  if (!w.present()) return;
  inner = w.shape()[0], columns = w.shape()[1];
  const std::vector<double> rows = w.to_doubles();
  of.resize(rows.size());
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t l = 0; l < inner; ++l)
      of[static_cast<std::size_t>(c * inner + l)] = rows[static_cast<std::size_t>(l * columns + c)];
  const std::int64_t count = (columns + panel_width - 1) / panel_width;
  panels.resize(static_cast<std::size_t>(count * panel_width * inner));
  sums.resize(static_cast<std::size_t>(count * panel_width));
  double most = 0;
  for (std::int64_t first = 0; first < columns; first += panel_width)
    inner_loops().pack(column(first), std::min(panel_width, columns - first), inner, panels.data() + first * inner,
                       sums.data() + first, &most);
}

void weigh_in_pairs(const double* x_high, const double* x_low, double x_radius, const Weights& w, Pairs& sums,
                    std::vector<double>& size) {
  const InnerLoops& loops = inner_loops();
  const std::int64_t count = std::ssize(w.sums) / panel_width;
  for (auto* array : {&sums.high, &sums.low, &sums.radius, &size}) fit(*array, count * panel_width);
  // The sizes of products; what else comes out is written over.
  loops.dots(x_high, w.inner, w.panels.data(), count, sums.high.data(), size.data());
  if (x_low)
    loops.plain_dots(x_low, w.inner, w.panels.data(), count, sums.radius.data());
  else
    std::fill_n(sums.radius.begin(), w.columns, 0.0);
  loops.dots_dd(x_high, w.inner, w.panels.data(), count, sums.high.data(), sums.low.data());
  // (inner + 4)^2/2 u^2 of the sizes by inner_loops.h; a low part is at most u of its high one, so that its products
  // err by (inner + 2) u^2 of them; what is added up last by a few u^2. Where a product underflows it loses 2^-1070.
  // Sizes and what x errs by are themselves sums in double.
  const double n = static_cast<double>(w.inner) + 8, rounded = 1 + n * 0x1p-52;
  for (std::int64_t c = 0; c < w.columns; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const double bias = w.bias.empty() ? 0.0 : w.bias[at];
    const DoubleDouble with_bias = two_sum(sums.high[at], bias);
    const DoubleDouble sum = two_sum(with_bias.high, with_bias.low + (sums.low[at] + sums.radius[at]));
    sums.high[at] = sum.high, sums.low[at] = sum.low;
    size[at] = rounded * (size[at] + std::fabs(bias));
    sums.radius[at] = rounded * (x_radius * w.sums[at] + n * n * 0x1p-106 * size[at]) + n * 0x1p-1070;
  }
}

namespace {

/// What the kernel's own number may be off by, from its exact one: of a sum of `inner` products.
double error_of_projection(const ProjectionProfile& g, std::int64_t inner, double middle, double size) {
  const double d = pw(g.u_g, static_cast<double>(inner) + 1) * size + 2 * static_cast<double>(inner + 1) * g.lam_g;
  return d + g.u_st * (std::fabs(middle) + d) + g.lam_st;
}

Projected sized(const InputRows& input, const Weights& w) {
  Projected out;
  out.rows = input.rows + (input.appended ? 1 : 0);
  out.columns = w.columns;
  const auto cells = static_cast<std::size_t>(out.rows * w.columns);
  for (auto* array : {&out.middle, &out.error, &out.size}) array->assign(cells, 0.0);
  out.usable.assign(static_cast<std::size_t>(out.rows), true);
  return out;
}

/// Sets what the kernel's own may be off by, and which rows are usable, from middles and sizes.
void take_errors(const InputRows& input, const Weights& w, const ProjectionProfile& g, Projected& out) {
  const double chain = pw(g.u_g, static_cast<double>(w.inner) + 1);
  for (std::int64_t i = 0; i < out.rows; ++i)
    for (std::int64_t c = 0; c < out.columns; ++c) {
      const auto cell = static_cast<std::size_t>(i * out.columns + c);
      if (i < input.rows) out.error[cell] = error_of_projection(g, w.inner, out.middle[cell], out.size[cell]);
      // The midpoint is itself rounded to a double, of a number that is known to within its radius.
      out.error[cell] += 0x1p-52 * std::fabs(out.middle[cell]) + (out.radius.empty() ? 0.0 : out.radius[cell]);
      if (!((1 + chain) * out.size[cell] + out.error[cell] <= g.largest))
        out.usable[static_cast<std::size_t>(i)] = false;
    }
}

}  // namespace

Projected project_rows(const InputRows& input, const Weights& w, const ProjectionProfile& g, long bits) {
  Projected out = sized(input, w);
  out.exact = Balls(out.rows * out.columns);
  Ball left, right;
  for (std::int64_t i = 0; i < out.rows; ++i) {
    for (std::int64_t c = 0; c < out.columns; ++c) {
      const auto cell = static_cast<std::size_t>(i * out.columns + c);
      arb_ptr exact = out.exact[i * out.columns + c];
      double& size = out.size[cell];
      if (i == input.rows) {
        arb_set_d(exact, input.appended[c]);
        size = std::fabs(input.appended[c]);
      } else {
        for (std::int64_t l = 0; l < w.inner; ++l) {
          const double a = input.x[(input.first + i) * w.inner + l], e = w.column(c)[l];
          arb_set_d(left, a);
          arb_set_d(right, e);
          arb_addmul(exact, left, right, bits);
          size += std::fabs(a * e);
        }
        if (!w.bias.empty()) {
          const double b = w.bias[static_cast<std::size_t>(c)];
          arb_set_d(left, b);
          arb_add(exact, exact, left, bits);
          size += std::fabs(b);
        }
      }
      out.middle[cell] = detail::middle(exact);
    }
  }
  take_errors(input, w, g, out);
  return out;
}

std::optional<Projected> project_rows_in_pairs(const InputRows& input, const Weights& w, const ProjectionProfile& g) {
  if (w.inner == 0 || w.inner > most_terms_in_pairs) return std::nullopt;
  Projected out = sized(input, w);
  for (auto* array : {&out.low, &out.radius}) array->assign(out.middle.size(), 0.0);
  std::vector<double> x(static_cast<std::size_t>(w.inner)), size;
  Pairs sums;
  const auto put = [&](const std::vector<double>& from, std::vector<double>& to, std::int64_t row) {
    std::copy_n(from.begin(), w.columns, to.begin() + row * w.columns);
  };
  for (std::int64_t i = 0; i < input.rows; ++i) {
    decode_range(input.x, (input.first + i) * w.inner, w.inner, x.data());
    weigh_in_pairs(x.data(), nullptr, 0, w, sums, size);
    put(sums.high, out.middle, i), put(sums.low, out.low, i), put(sums.radius, out.radius, i), put(size, out.size, i);
  }
  for (std::int64_t c = 0; input.appended && c < w.columns; ++c) {
    const auto cell = static_cast<std::size_t>(input.rows * w.columns + c);
    out.middle[cell] = input.appended[c], out.size[cell] = std::fabs(input.appended[c]);
  }
  const auto finite = [](double a) { return std::isfinite(a); };
  for (const auto* array : {&out.middle, &out.low, &out.radius})
    if (!std::ranges::all_of(*array, finite)) return std::nullopt;
  take_errors(input, w, g, out);
  return out;
}

}  // namespace attest::detail
