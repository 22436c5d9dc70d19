#include "core/oracle/wide_case.h"

#include <algorithm>
#include <cmath>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/flint_caches.h"
#include "core/support/infinity.h"

namespace attest::detail {
namespace {

const Mag unbounded(infinity);

Mag error_at(const WideMatrix& m, std::size_t at) {
  return m.error.empty() ? Mag() : m.error[at];
}

}  // namespace

WideCase::WideCase(const Problem& c, const WideRounding& rounding) : c_(c), units_(rounding) {
  free_flint_caches_at_thread_end();
}

void WideCase::evaluate(long bits, const Visit& visit) {
  if (c_.operation == Operation::attention) return evaluate_attention(bits, visit);
  evaluate_multihead(bits, visit);
}

WideMatrix WideCase::rows_of(const Tensor& a, std::int64_t page, std::int64_t zeros) const {
  const Shape& shape = a.shape();
  const std::int64_t rows = shape[shape.rank() - 2];
  WideMatrix m(rows + zeros, shape[shape.rank() - 1]);
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t c = 0; c < m.columns; ++c)
      m.set(i, c, i < rows ? a[(page * rows + i) * m.columns + c] : 0.0, units_);
  return m;
}

void WideCase::see(WideProblem& p, std::int64_t b, std::int64_t h, std::int64_t i, bool appended) const {
  const std::int64_t N = keys_of(c_);
  const bool adds = c_.mask().present() && c_.mask().dtype() != DType::boolean;
  const double slope = slope_of(c_, b, h);
  p.i = i;
  p.slope = slope;
  p.visible.clear(), p.bias.clear(), p.away.clear();
  for (std::int64_t j = 0; j < N; ++j) {
    if (hidden(c_, b, h, i, j)) continue;
    p.visible.push_back(j);
    if (adds) p.bias.push_back(mask_entry(c_.mask(), b, h, i, j));
    if (slope != 0) p.away.push_back(distance_of(c_, b, i, j));
  }
  p.values.clear();
  if (c_[Slot::keep].present())
    for (const std::int64_t j : p.visible) p.values.push_back(keeps(c_, b, h, i, j) ? j : N);
  const Tensor& sinks = c_[Slot::sink];
  p.sink = sinks.present() ? sinks[h] : -infinity;
  if (!appended && p.sink == -infinity) return;
  if (c_[Slot::keep].present()) p.values.push_back(N);
  p.visible.push_back(N);
  if (adds) p.bias.push_back(0);
  if (slope != 0) p.away.push_back(0);
}

void WideCase::evaluate_attention(long bits, const Visit& visit) {
  const std::int64_t heads = c_.q().shape()[1], kv_heads = c_.k().shape()[1], M = c_.q().shape()[2];
  WideProblem p{.dk = c_.q().shape()[3],
                .dv = c_.v().shape()[3],
                .scale = c_.scale,
                .convention = convention_of(c_),
                .softcap = c_.softcap,
                .dropout_p = c_.dropout_p};
  const Tensor own_q = dequantised(c_, Slot::q), own_k = dequantised(c_, Slot::k), own_v = dequantised(c_, Slot::v);
  const std::int64_t zeros = c_[Slot::sink].present() || c_[Slot::keep].present() ? 1 : 0;
  for (std::int64_t page = 0; page < c_.q().shape()[0] * heads; ++page) {
    const std::int64_t b = page / heads, h = page % heads, from = b * kv_heads + h / (heads / kv_heads);
    const WideMatrix q = rows_of(own_q, page), k = rows_of(own_k, from, zeros), v = rows_of(own_v, from, zeros);
    p.q = &q, p.k = &k, p.v = &v;
    for (std::int64_t i = 0; i < M; ++i) {
      see(p, b, h, i, /*appended=*/false);
      const Excuse why = !sequence_at(c_, b, i)  ? Excuse::padding
                         : draws_own_dropout(c_) ? Excuse::own_dropout
                                                 : row_.evaluate(p, units_, bits);
      for (std::int64_t column = 0; column < p.dv; ++column) {
        const auto at = static_cast<std::size_t>(column);
        const WideElement known =
            why == Excuse::none ? WideElement{row_.exact(column), row_.allowed[at], row_.hull[at], row_.excuse[at]}
                                : WideElement{nullptr, unbounded, unbounded, why};
        visit((page * M + i) * p.dv + column, known);
      }
    }
  }
}

WideMatrix WideCase::projected(const Tensor& x, std::int64_t page, const Tensor& w, const Tensor& bias,
                               const Tensor& extra, long bits) const {
  const WideMatrix left = rows_of(x, page), right = rows_of(w, 0);
  WideMatrix out(left.rows + (extra.present() ? 1 : 0), right.columns);
  const auto terms = static_cast<double>(left.columns) + 1;
  const Mag chain = units_.chain(terms), underflow = Mag(4 * terms) * units_.lambda;
  out.error.resize(static_cast<std::size_t>(out.rows * out.columns));
  Ball added;
  for (std::int64_t i = 0; i < left.rows; ++i) {
    for (std::int64_t c = 0; c < out.columns; ++c) {
      arb_ptr exact = out.exact[i * out.columns + c];
      Mag size, moved;
      for (std::int64_t l = 0; l < left.columns; ++l) {
        const std::size_t from = left.at(i, l), by = right.at(l, c);
        arb_srcptr a = left.exact[static_cast<std::int64_t>(from)], e = right.exact[static_cast<std::int64_t>(by)];
        arb_addmul(exact, a, e, bits);
        const Mag da = error_at(left, from), de = error_at(right, by), most = Mag(a) + da;
        size.add_product(most, Mag(e) + de);
        moved.add_product(da, Mag(e));
        moved.add_product(most, de);
      }
      if (bias.present()) {
        arb_set_d(added, bias[c]);
        arb_add(exact, exact, added, bits);
        size += std::fabs(bias[c]);
        moved += units_.converted(std::fabs(bias[c]));
      }
      out.error[out.at(i, c)] = moved + chain * (size + moved) + underflow;
      if (arb_is_finite(exact) == 0) out.finite[static_cast<std::size_t>(i)] = false;
    }
  }
  for (std::int64_t c = 0; extra.present() && c < out.columns; ++c) out.set(left.rows, c, extra[c], units_);
  return out;
}

void WideCase::evaluate_multihead(long bits, const Visit& visit) {
  const std::int64_t heads = c_.heads, M = c_.q().shape()[1], width = c_[Slot::w_v].shape()[1];
  const bool appended = c_[Slot::bias_k].present();
  WideProblem p{
      .dk = c_[Slot::w_q].shape()[1] / heads, .dv = width / heads, .scale = c_.scale, .convention = c_.mask_convention};
  for (std::int64_t b = 0; b < c_.q().shape()[0]; ++b) {
    const WideMatrix q = projected(c_.q(), b, c_[Slot::w_q], c_[Slot::b_q], {}, bits),
                     k = projected(c_.k(), b, c_[Slot::w_k], c_[Slot::b_k], c_[Slot::bias_k], bits),
                     v = projected(c_.v(), b, c_[Slot::w_v], c_[Slot::b_v], c_[Slot::bias_v], bits);
    p.q = &q, p.k = &k, p.v = &v;
    for (std::int64_t i = 0; i < M; ++i) {
      WideMatrix o(1, width);
      o.error.assign(static_cast<std::size_t>(width), Mag());
      std::vector<Excuse> excuses(static_cast<std::size_t>(width));
      for (std::int64_t h = 0; h < heads; ++h) {
        see(p, b, h, i, appended);
        p.of_q = p.of_k = h * p.dk, p.of_v = h * p.dv;
        const Excuse why = row_.evaluate(p, units_, bits);
        for (std::int64_t c = 0; c < p.dv; ++c) {
          const auto to = static_cast<std::size_t>(h * p.dv + c), from = static_cast<std::size_t>(c);
          excuses[to] = why == Excuse::none ? row_.excuse[from] : why;
          o.error[to] = row_.allowed[from];
          if (why == Excuse::none) arb_set(o.exact[h * p.dv + c], row_.exact(c));
        }
      }
      joined(o, excuses, b * M + i, bits, visit);
    }
  }
}

void WideCase::joined(const WideMatrix& o, const std::vector<Excuse>& excuses, std::int64_t row, long bits,
                      const Visit& visit) const {
  const Tensor &w_o = c_[Slot::w_o], &b_o = c_[Slot::b_o];
  const std::int64_t columns = w_o.present() ? w_o.shape()[1] : o.columns;
  const auto whole = std::ranges::find_if(excuses, is_of_row);
  const double terms = static_cast<double>(w_o.present() ? o.columns : 0) + 1;
  Ball y, factor;
  for (std::int64_t c = 0; c < columns; ++c) {
    if (whole != excuses.end()) {
      visit(row * columns + c, {nullptr, unbounded, unbounded, *whole});
      continue;
    }
    arb_zero(y);
    Mag moved, size;
    Excuse excuse = Excuse::none;
    for (std::int64_t l = 0; l < o.columns; ++l) {
      if (!w_o.present() && l != c) continue;
      const double weight = w_o.present() ? w_o[l * columns + c] : 1.0;
      const auto at = static_cast<std::size_t>(l);
      if (excuses[at] == Excuse::overflow || (weight != 0 && excuse != Excuse::overflow && excuses[at] != Excuse::none))
        excuse = excuses[at];
      arb_set_d(factor, weight);
      arb_addmul(y, factor, o.exact[l], bits);
      const Mag w(std::fabs(weight)), dw = w_o.present() ? units_.converted(w) : Mag(), exact(o.exact[l]);
      moved += w * o.error[at] + dw * (exact + o.error[at]);
      size += (w + dw) * (exact + o.error[at]);
    }
    if (b_o.present()) {
      arb_set_d(factor, b_o[c]);
      arb_add(y, y, factor, bits);
      size += std::fabs(b_o[c]);
      moved += units_.converted(std::fabs(b_o[c]));
    }
    Mag allowed = moved;
    if (w_o.present() || b_o.present())
      allowed = moved + units_.chain(terms) * (size + moved) + Mag(4 * terms) * units_.lambda;
    if (excuse == Excuse::none && arb_is_finite(y) == 0) excuse = Excuse::not_finite;
    if (excuse == Excuse::none && allowed.is_infinite()) excuse = Excuse::infinite;
    visit(row * columns + c, {y, allowed, unbounded, excuse});
  }
}

}  // namespace attest::detail
