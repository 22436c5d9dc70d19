#include "core/oracle/projected.h"

#include <algorithm>
#include <cmath>

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

Projected project_rows(const Tensor& x, std::int64_t first, std::int64_t rows, const Tensor& w, const Tensor& b,
                       const double* extra, const ProjectionProfile& g, long bits) {
  const std::int64_t inner = w.shape()[0], columns = w.shape()[1];
  Projected out;
  out.rows = rows + (extra ? 1 : 0);
  out.columns = columns;
  const std::int64_t cells = out.rows * columns;
  out.exact = Balls(cells);
  out.middle.assign(static_cast<std::size_t>(cells), 0.0);
  out.error.assign(static_cast<std::size_t>(cells), 0.0);
  out.size.assign(static_cast<std::size_t>(cells), 0.0);
  out.usable.assign(static_cast<std::size_t>(out.rows), true);
  const std::vector<double> weights = w.to_doubles();
  const std::vector<double> bias = b.present() ? b.to_doubles() : std::vector<double>();
  const double chain = pw(g.u_g, static_cast<double>(inner) + 1);
  Ball left, right;
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const bool appended = i == rows;
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto cell = static_cast<std::size_t>(i * columns + c);
      arb_ptr exact = out.exact[i * columns + c];
      double size = 0;
      if (appended) {
        arb_set_d(exact, extra[c]);
        size = std::fabs(extra[c]);
      } else {
        for (std::int64_t l = 0; l < inner; ++l) {
          const double a = x[(first + i) * inner + l], e = weights[static_cast<std::size_t>(l * columns + c)];
          arb_set_d(left, a);
          arb_set_d(right, e);
          arb_addmul(exact, left, right, bits);
          size += std::fabs(a * e);
        }
        if (b.present()) {
          arb_set_d(left, bias[static_cast<std::size_t>(c)]);
          arb_add(exact, exact, left, bits);
          size += std::fabs(bias[static_cast<std::size_t>(c)]);
        }
      }
      out.middle[cell] = detail::middle(exact);
      out.size[cell] = size;
      if (!appended) {
        const double d = chain * size + 2 * static_cast<double>(inner + 1) * g.lam_g;
        out.error[cell] = d + g.u_st * (std::fabs(out.middle[cell]) + d) + g.lam_st;
      }
      // The midpoint is itself rounded to a double.
      out.error[cell] += 0x1p-52 * std::fabs(out.middle[cell]);
      if (!((1 + chain) * size + out.error[cell] <= g.largest)) out.usable[static_cast<std::size_t>(i)] = false;
    }
  }
  return out;
}

}  // namespace attest::detail
