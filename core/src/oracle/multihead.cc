// Verdicts on multihead cases: everything exact in balls, the bound of error-bounds.md 1.5 as corrected by 1.7.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attest/oracle.h"
#include "ball_row.h"
#include "tally.h"

namespace attest {
namespace {

using detail::Ball;
using detail::Balls;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Roundings outside of attention itself.
struct ProjectionProfile {
  double u_g = 0, lam_g = 0;    ///< accumulation of the projections
  double u_st = 0, lam_st = 0;  ///< storage of Q, K, V in the input dtype
  double u_y = 0, lam_y = 0;    ///< rounding of the result
  double largest = 0, largest_y = 0;
};

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

/// rows x columns exact numbers with, beside each, its midpoint and how far the kernel's own may be from it.
struct Projected {
  std::int64_t rows = 0, columns = 0;
  Balls exact;
  std::vector<double> middle, error;
  std::vector<double> size;  ///< (|X||W| + |b|)
  std::vector<bool> usable;  ///< per row: finite, and inside the range of the formats

  [[nodiscard]] arb_srcptr row(std::int64_t i) const { return exact[i * columns]; }
};

/// X W + b for the rows of X [first, first + rows), `extra` appended unprojected.
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

/// What the heads say about one row of a batch entry, columns side by side: all of it but `values` per column.
struct HeadsRow {
  Balls o;                         ///< exact
  std::vector<double> size;        ///< |O| from above
  std::vector<double> error;       ///< dO
  std::vector<double> score;       ///< the part of it that the errors of the scores make up
  std::vector<double> most_value;  ///< largest |X||W_v| + |b_v| of a visible key
  std::vector<Excuse> why;
  std::vector<std::vector<double>> apart;  ///< per head: V_j - O for its visible keys, [keys][dv]

  HeadsRow(std::int64_t heads, std::int64_t dv) : o(heads * dv), why(static_cast<std::size_t>(heads * dv)) {
    for (auto* column : {&size, &error, &score, &most_value}) column->resize(static_cast<std::size_t>(heads * dv));
    apart.resize(static_cast<std::size_t>(heads));
  }
};

/// One batch entry at one precision: exact outputs and their bounds.
struct Entry {
  Balls y;                      ///< [M, d_o]
  std::vector<double> allowed;  ///< likewise
  std::vector<Excuse> excuse;
  std::vector<double> most_E;  ///< [M], over the heads
  bool settled = true;
};

class MultiheadEntry {
 public:
  MultiheadEntry(const Case& c, const Arithmetic& arithmetic, bool ignores_dead_values)
      : c_(c), ignores_dead_(ignores_dead_values) {
    M_ = c.q().shape()[1];
    N_ = c.k().shape()[1];
    heads_ = c.heads;
    dk_ = c[Slot::w_q].shape()[1] / heads_;
    dv_ = c[Slot::w_v].shape()[1] / heads_;
    appended_ = c[Slot::bias_k].present();
    if (appended_) {
      bias_k_ = c[Slot::bias_k].to_doubles();
      bias_v_ = c[Slot::bias_v].to_doubles();
    }
    keys_ = N_ + (appended_ ? 1 : 0);
    ProfileInputs inputs{.keys = keys_, .dk = dk_, .scale = c.scale, .convention = c.mask_convention};
    if (c.mask().present()) {
      inputs.mask = c.mask().dtype();
      if (c.mask().dtype() != DType::boolean)
        for (std::int64_t e = 0; e < c.mask().elements(); ++e)
          inputs.bias = inputs.bias || (c.mask()[e] != 0 && c.mask()[e] != -infinity);
    }
    profile_ = profile_of(arithmetic, inputs);
    projections_ = projection_profile(arithmetic, profile_);
  }

  [[nodiscard]] Entry evaluate(std::int64_t batch, long bits) {
    const Projected q = project_rows(c_.q(), batch * M_, M_, c_[Slot::w_q], c_[Slot::b_q], nullptr, projections_, bits);
    const Projected k = project_rows(c_.k(), batch * N_, N_, c_[Slot::w_k], c_[Slot::b_k],
                                     appended_ ? bias_k_.data() : nullptr, projections_, bits);
    const Projected v = project_rows(c_.v(), batch * N_, N_, c_[Slot::w_v], c_[Slot::b_v],
                                     appended_ ? bias_v_.data() : nullptr, projections_, bits);
    const std::int64_t width = heads_ * dv_;
    Entry entry;
    HeadsRow heads(heads_, dv_);
    const std::int64_t d_o = c_[Slot::w_o].present() ? c_[Slot::w_o].shape()[1] : width;
    entry.y = Balls(M_ * d_o);
    entry.allowed.assign(static_cast<std::size_t>(M_ * d_o), infinity);
    entry.excuse.assign(static_cast<std::size_t>(M_ * d_o), Excuse::none);
    for (std::int64_t i = 0; i < M_; ++i) {
      Excuse row = Excuse::none;
      most_E_ = 0;
      for (std::int64_t h = 0; h < heads_ && row == Excuse::none; ++h)
        row = head_row(batch, h, i, q, k, v, bits, heads, entry.settled);
      entry.most_E.push_back(most_E_);
      if (row != Excuse::none) {
        std::fill_n(entry.excuse.begin() + i * d_o, d_o, row);
        continue;
      }
      output(i, d_o, heads, bits, entry);
    }
    return entry;
  }

 private:
  /// One head's part of a row.
  Excuse head_row(std::int64_t batch, std::int64_t h, std::int64_t i, const Projected& q, const Projected& k,
                  const Projected& v, long bits, HeadsRow& out, bool& settled) {
    if (!q.usable[static_cast<std::size_t>(i)]) return Excuse::overflow;
    visible_.clear();
    bias_.clear();
    const Tensor& mask = c_.mask();
    std::int64_t from = 0;
    if (mask.present()) {
      const Shape& shape = mask.shape();
      from = (((shape[0] == 1 ? 0 : batch) * shape[1] + (shape[1] == 1 ? 0 : h)) * M_ + i) * N_;
    }
    for (std::int64_t j = 0; j < keys_; ++j) {
      double b = 0;
      if (j < N_) {
        if (c_.causal == Causal::top_left && j > i) b = -infinity;
        if (c_.causal == Causal::bottom_right && j > i + N_ - M_) b = -infinity;
        if (mask.present()) {
          const double value = mask[from + j];
          if (mask.dtype() == DType::boolean)
            b = value != 0 ? b : -infinity;
          else
            b = b == -infinity ? b : value;
        }
        if (profile_.any_mask_format && std::isinf(round_to(profile_.mask_format, b))) {
          if (b > 0) return Excuse::overflow;
          b = -infinity;
        }
      }
      const bool usable = k.usable[static_cast<std::size_t>(j)] && v.usable[static_cast<std::size_t>(j)];
      if (b == -infinity) {
        if (!usable && !ignores_dead_) return Excuse::not_finite;
        continue;
      }
      if (!usable) return Excuse::overflow;
      visible_.push_back(j);
      bias_.push_back(b);
    }
    const auto n = static_cast<std::int64_t>(visible_.size());
    if (n == 0) return Excuse::fully_masked;

    // Exact attention on the exact Q, K, V.
    std::vector<arb_srcptr> key_rows, value_rows;
    for (const std::int64_t j : visible_) {
      key_rows.push_back(k.row(j) + h * dk_);
      value_rows.push_back(v.row(j) + h * dv_);
    }
    const std::int64_t stride = (dv_ + 3) / 4 * 4;
    row_.evaluate({n, dk_, dv_, stride, c_.scale, c_.mask_convention, q.row(i) + h * dk_,
                   profile_.of.bias ? bias_.data() : nullptr},
                  key_rows.data(), value_rows.data(), bits);
    settled = settled && row_.settled;

    // The perturbed problem: sizes with the inputs' errors in them, and what the scores owe to them.
    const double tau = c_.scale;
    const auto q_at = static_cast<std::size_t>(i * q.columns + h * dk_);
    std::vector<double> sizes(room(n)), input_error(room(n)), k1(room(n)), b(room(n)), q_most(room(dk_));
    std::vector<double> mean(static_cast<std::size_t>(dk_), 0.0);
    for (std::int64_t c = 0; c < dk_; ++c)
      for (std::int64_t j = 0; j < n; ++j)
        mean[static_cast<std::size_t>(c)] +=
            row_.alpha[static_cast<std::size_t>(j)] * k.middle[cell(k, j, h * dk_ + c)];
    detail::RowKeys keys;
    keys.n = n;
    for (std::int64_t c = 0; c < dk_; ++c) {
      const auto at = static_cast<std::size_t>(c);
      q_most[at] = std::fabs(q.middle[q_at + at]) + q.error[q_at + at];
      keys.q1 += q_most[at];
      keys.shift_error += tau * q.error[q_at + at] * std::fabs(mean[at]);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<std::size_t>(j);
      for (std::int64_t c = 0; c < dk_; ++c) {
        const auto e = static_cast<std::size_t>(c);
        const double key = k.middle[cell(k, j, h * dk_ + c)], dkey = k.error[cell(k, j, h * dk_ + c)];
        const double dq = q.error[q_at + e];
        sizes[at] += q_most[e] * (std::fabs(key) + dkey);
        input_error[at] += tau * (dq * std::fabs(key - mean[e]) + std::fabs(q.middle[q_at + e]) * dkey + dq * dkey);
        k1[at] += std::fabs(key) + dkey;
      }
      const double value = bias_[at];
      b[at] = c_.mask_convention == MaskConvention::pre_scale ? tau * value : value;
    }
    keys.size = sizes.data();
    keys.input_error = input_error.data();
    keys.k1 = k1.data();
    keys.b = profile_.of.bias ? b.data() : nullptr;
    std::vector<double> values_in(static_cast<std::size_t>(n * stride), 0.0), values_error(values_in);
    std::vector<double> low(static_cast<std::size_t>(stride), infinity),
        high(static_cast<std::size_t>(stride), -infinity), abs_sum(static_cast<std::size_t>(stride), 0.0);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t c = 0; c < dv_; ++c) {
        const auto at = static_cast<std::size_t>(j * stride + c), column = static_cast<std::size_t>(c);
        const double value = v.middle[cell(v, j, h * dv_ + c)];
        values_in[at] = value;
        values_error[at] = v.error[cell(v, j, h * dv_ + c)];
        low[column] = std::min(low[column], value);
        high[column] = std::max(high[column], value);
        abs_sum[column] += std::fabs(value) + values_error[at];
      }
    }
    detail::RowValues values{values_in.data(), stride,         dv_,     low.data(),
                             high.data(),      abs_sum.data(), nullptr, values_error.data()};
    row_.attach(keys, values);
    const detail::KeyTerms terms = detail::key_terms(profile_, keys, q_most.data(), scratch_);
    most_E_ = std::max(most_E_, terms.most_E);
    if (!terms.in_domain) return Excuse::overflow;
    elements_.resize(static_cast<std::size_t>(dv_));
    detail::element_bounds(profile_, keys, terms, values, row_.value.data(), row_.radius.data(), scratch_,
                           elements_.data());
    std::vector<double>& apart = out.apart[static_cast<std::size_t>(h)];
    apart.clear();
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t c = 0; c < dv_; ++c)
        apart.push_back(v.middle[cell(v, j, h * dv_ + c)] - row_.value[static_cast<std::size_t>(c)]);
    for (std::int64_t c = 0; c < dv_; ++c) {
      const auto at = static_cast<std::size_t>(h * dv_ + c);
      const detail::ElementTerms& element = elements_[static_cast<std::size_t>(c)];
      arb_set(out.o[h * dv_ + c], row_.o[c]);
      out.size[at] = detail::upper_size(row_.o[c]);
      out.error[at] = element.allowed;
      out.score[at] = element.score;
      out.why[at] = element.excuse;
      out.most_value[at] = 0;
      for (std::int64_t j = 0; j < n; ++j)
        out.most_value[at] = std::max(out.most_value[at], v.size[cell(v, j, h * dv_ + c)]);
    }
    return Excuse::none;
  }

  /// Y of row i from the heads' outputs.
  ///
  /// Vacuous, of an element of Y (ElementBound): whatever weights each head gave its keys, Y would stay within reach =
  /// sum_h max_j |sum_c W_hc (V_jhc - O_hc)| of the exact one. A bound that accepts all of that because the scores are
  /// not known (they make up half of it or more) tells nothing; nor does one whose other part is as large as the
  /// numbers that Y is summed from. One key, or values that hardly differ, leave the scores no part in the bound.
  void output(std::int64_t i, std::int64_t d_o, const HeadsRow& heads, long bits, Entry& entry) const {
    const Tensor& w_o = c_[Slot::w_o];
    const Tensor& b_o = c_[Slot::b_o];
    const std::int64_t width = heads_ * dv_;
    Ball weight;
    std::vector<double> factors(static_cast<std::size_t>(width));
    for (std::int64_t k = 0; k < d_o; ++k) {
      const auto at = static_cast<std::size_t>(i * d_o + k);
      arb_ptr y = entry.y[i * d_o + k];
      double carried = 0, sizes = 0, score = 0, most = 0;
      Excuse excuse = Excuse::none;
      for (std::int64_t l = 0; l < width; ++l) {
        const auto from = static_cast<std::size_t>(l);
        const double factor = w_o.present() ? w_o[l * d_o + k] : l == k ? 1.0 : 0.0;
        factors[from] = factor;
        if (!w_o.present() && l != k) continue;
        if (factor == 0 && std::isfinite(heads.error[from]) && heads.why[from] != Excuse::overflow) continue;
        arb_set_d(weight, factor);
        arb_addmul(y, weight, heads.o[l], bits);
        carried += std::fabs(factor) * heads.error[from];
        sizes += std::fabs(factor) * heads.size[from];
        score += std::fabs(factor) * heads.score[from];
        most += std::fabs(factor) * heads.most_value[from];
        if (heads.why[from] == Excuse::overflow) excuse = Excuse::overflow;
      }
      double own_bias = 0;
      if (b_o.present()) {
        arb_set_d(weight, b_o[k]);
        arb_add(y, y, weight, bits);
        own_bias = std::fabs(b_o[k]);
      }
      double B = carried;
      if (w_o.present() || b_o.present()) {
        const double terms = static_cast<double>(w_o.present() ? width : 1) + 1;
        B += pw(projections_.u_g, terms) * (sizes + carried + own_bias) + 2 * terms * projections_.lam_g;
        B += projections_.u_y * (detail::upper_size(y) + B) + projections_.lam_y;
      }
      B *= 1 + 0x1p-30;
      entry.allowed[at] = B;
      most += own_bias;
      if (!(2 * (sizes + carried + own_bias) <= projections_.largest_y)) excuse = Excuse::overflow;
      if (excuse == Excuse::none && !(B < infinity)) excuse = Excuse::infinite;
      if (excuse == Excuse::none &&
          ((score > 0 && 2 * score >= B && B >= reach(heads, factors)) || (most > 0 && B - score >= most)))
        excuse = Excuse::vacuous;
      entry.excuse[at] = excuse;
    }
  }

  /// How far the element with these factors may move when every head weighs its keys as it likes.
  [[nodiscard]] double reach(const HeadsRow& heads, const std::vector<double>& factors) const {
    double sum = 0;
    for (std::size_t h = 0; h < heads.apart.size(); ++h) {
      const std::vector<double>& apart = heads.apart[h];
      const auto dv = static_cast<std::size_t>(dv_);
      double most = 0;
      for (std::size_t j = 0; j < apart.size(); j += dv) {
        double moved = 0;
        for (std::size_t c = 0; c < dv; ++c) moved += factors[h * dv + c] * apart[j + c];
        most = std::max(most, std::fabs(moved));
      }
      sum += most;
    }
    return sum;
  }

  [[nodiscard]] std::size_t cell(const Projected& p, std::int64_t j, std::int64_t column) const {
    return static_cast<std::size_t>(visible_[static_cast<std::size_t>(j)] * p.columns + column);
  }
  static std::size_t room(std::int64_t n) { return static_cast<std::size_t>((n + 15) / 16 * 16); }

  const Case& c_;
  bool ignores_dead_ = false, appended_ = false;
  std::int64_t M_ = 0, N_ = 0, heads_ = 1, dk_ = 1, dv_ = 1, keys_ = 0;
  std::vector<double> bias_k_, bias_v_;
  double most_E_ = 0;
  Profile profile_;
  ProjectionProfile projections_;
  std::vector<std::int64_t> visible_;
  std::vector<double> bias_;
  detail::BallRow row_;
  detail::BoundScratch scratch_;
  std::vector<detail::ElementTerms> elements_;
};

}  // namespace

Verdict judge_multihead(const Case& c, const Tensor& out, const Arithmetic& arithmetic, const OracleOptions& options) {
  detail::free_flint_caches_at_thread_end();
  detail::CaseTally tally(c.out_shape());
  const std::int64_t batch = c.out_shape()[0], per_entry = c.out_shape()[1] * c.out_shape()[2];
  MultiheadEntry problem(c, arithmetic, options.ignores_dead_values);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<bool> decided(static_cast<std::size_t>(per_entry), false);
    bool more = true;
    for (long bits = 192; more; bits = std::min(2 * bits, options.max_ball_precision)) {
      const Entry entry = problem.evaluate(b, bits);
      const bool last = bits >= options.max_ball_precision;
      more = false;
      for (std::int64_t e = 0; e < per_entry; ++e) {
        const auto at = static_cast<std::size_t>(e);
        if (decided[at]) continue;
        decided[at] = true;
        const double found = out[b * per_entry + e];
        const Excuse excuse = entry.excuse[at];
        detail::Decision d;
        d.level = 3;
        d.allowed = entry.allowed[at];
        if (excuse != Excuse::none && excuse != Excuse::vacuous && excuse != Excuse::infinite) {
          tally.excuse(excuse, 1);
          continue;
        }
        if (!std::isfinite(found)) {
          tally.not_finite(b * per_entry + e, found, detail::middle(entry.y[e]), d.allowed, 3);
          continue;
        }
        if (excuse == Excuse::infinite) {
          tally.excuse(excuse, 1);
          continue;
        }
        Ball distance;
        arb_set_d(distance, found);
        arb_sub(distance, distance, entry.y[e], bits);
        d.error = detail::upper_size(distance);
        if (entry.settled && d.error <= d.allowed * (1 - 0x1p-24)) {
          d.outcome = Outcome::held;
          if (excuse == Excuse::vacuous) {
            tally.excuse(excuse, 1);
            continue;
          }
        } else if (entry.settled && detail::lower_size(distance) > d.allowed * (1 + 0x1p-24)) {
          d.outcome = Outcome::violated;
        } else if (!last) {
          decided[at] = false;
          more = true;
          continue;
        }
        tally.add(b * per_entry + e, found, detail::middle(entry.y[e]), d);
      }
    }
  }
  return tally.verdict();
}

AttentionBounds multihead_bounds(const Case& c, const Arithmetic& arithmetic, bool ignores_dead_values) {
  AttentionBounds bounds;
  const Shape shape = c.out_shape();
  const std::int64_t rows = shape[1], columns = shape[2];
  MultiheadEntry evaluation(c, arithmetic, ignores_dead_values);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    Entry entry;
    for (long bits = 128; bits <= OracleOptions{}.max_ball_precision; bits *= 2) {
      entry = evaluation.evaluate(b, bits);
      if (entry.settled) break;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      RowBound row;
      row.level = 3;
      row.lse = std::nan("");
      row.lse_certificate = row.lse_allowed = infinity;
      row.most_E = entry.most_E[static_cast<std::size_t>(i)];
      bounds.rows.push_back(row);
      for (std::int64_t k = 0; k < columns; ++k) {
        const auto at = static_cast<std::size_t>(i * columns + k);
        ElementBound e;
        e.excuse = entry.settled ? entry.excuse[at] : Excuse::infinite;
        const bool known = e.excuse == Excuse::none || e.excuse == Excuse::vacuous;
        e.value = known ? detail::middle(entry.y[static_cast<std::int64_t>(at)]) : std::nan("");
        e.certificate = known ? detail::middle_error(entry.y[static_cast<std::int64_t>(at)]) : infinity;
        e.allowed = known ? entry.allowed[at] * (1 + 0x1p-24) : infinity;
        e.finite_required = known;
        bounds.elements.push_back(e);
      }
    }
  }
  return bounds;
}

}  // namespace attest
