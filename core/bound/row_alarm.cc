// error-bounds.md 1.4 with C27, as error_alarm.h derives it. Where that departs from the document: rounding of q*scale
// is common to all keys and so never averages out over them; swallowed summands break Higham and Mary's constants as
// they break Azuma's, so both get the term Stag; nearly equal summands lean as equal ones do; and rounded weights in
// the denominator (p_in_denom) have a term of their own.
#include "core/bound/row_alarm.h"

#include <algorithm>
#include <cmath>

#include "core/bound/leaning.h"
#include "core/support/infinity.h"
#include "core/support/room.h"

namespace attest::detail {
namespace {

/// L of Higham and Mary's constants: `chains` of them hold together with probability 1 - p/2.
double lambda_of_chains(double chains, double unit, double probability) {
  return std::sqrt(2 * std::log(4 * chains / probability)) / (1 - unit);
}

/// The constant itself, where it is below the proved one.
double random_chain(double unit, double count, double lambda) {
  return std::min(pw(unit, count), std::expm1(lambda * std::sqrt(count) * unit + count * unit * unit / (1 - unit)));
}

/// One key's part in the sums per column.
struct Part {
  double plain, dot, square, weight;
};
/// Adds a key's part, |v_jk - o_k| being `apart`. Summands below least[k] lean, by most[k] at the most.
void add_part(const Part& part, std::int64_t dv, const double* __restrict v, const double* __restrict apart,
              const double* __restrict least, const double* __restrict most, double* __restrict plain,
              double* __restrict dot, double* __restrict square, double* __restrict leaning) {
  for (std::int64_t k = 0; k < dv; ++k) {
    const double d = apart[k], root = part.square * d, x = part.weight * std::fabs(v[k]);
    plain[k] += part.plain * d;
    dot[k] += part.dot * d;
    square[k] += root * root;
    const double at_most = x < most[k] ? x : most[k];
    leaning[k] += x < least[k] ? at_most : 0.0;
  }
}

}  // namespace

bool RowAlarm::compare_keys(const Profile& p, const RowKeys& row, const BoundScratch& w) {
  for (auto* marks : {&equal_dot_, &crowded_}) marks->assign(static_cast<std::size_t>(row.n), 0);
  bool apart = true;
  const auto same = [&](std::vector<unsigned char>& marks, std::int64_t a, std::int64_t b) {
    for (const std::int64_t j : {a, b}) {
      marks[static_cast<std::size_t>(j)] = 1;
      if (row.alpha[j] >= swallowed * p.u_a) apart = false;
    }
  };
  ranked_.clear(), weighing_.clear();
  for (std::int64_t j = 0; j < row.n; ++j)
    if (w.pp[static_cast<std::size_t>(j)] > 0) ranked_.emplace_back(row.la[j], j), weighing_.push_back(j);
  if (!row.exact_dots) equal_.find(weighing_, row.t, [&](std::int64_t a, std::int64_t b) { same(equal_dot_, a, b); });
  std::sort(ranked_.begin(), ranked_.end());
  for (std::size_t i = 1; i < ranked_.size(); ++i)
    if (ranked_[i].first == ranked_[i - 1].first) same(crowded_, ranked_[i - 1].second, ranked_[i].second);
  // Of logarithms of weights: an average summand is 1/n of the sum, so that summands within this of each other,
  // relatively, agree to a few units of it.
  mark_crowds(ranked_, swallowed * p.u_a * static_cast<double>(ranked_.size()), row.alpha, crowded_);
  return apart;
}

void RowAlarm::weigh_keys(const Profile& p, const RowKeys& row, const double* q, const double* keys,
                          const BoundScratch& w) {
  for (auto* array : {&plain_, &dot_, &square_}) fit(*array, row.n);
  fit(scaled_q_, p.of.dk);
  for (std::int64_t c = 0; c < p.of.dk; ++c) scaled_q_[static_cast<std::size_t>(c)] = std::fabs(p.of.scale) * q[c];
  sum_plain_ = sum_dot_ = sum_square_ = 0;
  const auto terms = static_cast<double>(p.n_s);
  const double proved = row.exact_dots ? 0.0 : pw(p.u_s, terms), growth = 1 + pw(p.u_s, terms);
  for (std::int64_t j = 0; j < row.n; ++j) {
    const auto i = static_cast<std::size_t>(j);
    plain_[i] = w.ph[i];
    dot_[i] = square_[i] = 0;
    // Below 2^-960 a share of ph may underflow, and a value of f64 make it large again.
    if (w.ph[i] > 0x1p-960 && proved > 0 && equal_dot_[i] == 0) {
      // ph is the weight times e^E - 1, of which q.k's share at first order is the part that averages out.
      const double reach = reach_of(p, row, j);
      const double per_error = (row.capped ? w.kap[i] : 1.0) * w.ph[i] / std::expm1(w.E[i]);
      const double* const k = keys + (row.index ? row.index[j] : j) * p.of.dk;
      const double least = swallowed * p.u_s * reach, most = p.u_s * reach;
      const double leaning = leaning_products(scaled_q_.data(), k, p.of.dk, least, most);
      dot_[i] = std::min(per_error * (proved * reach), w.ph[i]);
      plain_[i] = (w.ph[i] - dot_[i]) + per_error * growth * leaning;
      square_[i] = per_error * (std::sqrt(terms) * p.u_s * growth * reach);
    }
    sum_plain_ += plain_[i], sum_dot_ += dot_[i], sum_square_ += square_[i] * square_[i];
  }
}

void RowAlarm::sum_columns(const Profile& p, const RowKeys& row, const RowValues& values, const double* o,
                           const BoundScratch& w, const ElementTerms* elements) {
  for (auto* array : {&column_plain_, &column_dot_, &column_square_, &leaning_})
    array->assign(static_cast<std::size_t>(values.dv), 0.0);
  const auto columns = static_cast<std::size_t>(values.dv);
  least_.resize(columns), most_.resize(columns);
  for (std::size_t k = 0; k < columns; ++k) {
    most_[k] = p.u_a * elements[k].values;
    least_[k] = swallowed * most_[k];
  }
  everything_.assign(columns, infinity);
  distance_.resize(columns);
  for (std::int64_t j = 0; j < row.n; ++j) {
    const auto i = static_cast<std::size_t>(j);
    const Part part{plain_[i], dot_[i], square_[i], w.pp[i]};
    if (!(part.weight > 0 || part.plain > 0)) continue;
    const double* const v = values.v + (row.index ? row.index[j] : j) * values.stride;
    const double* const least = crowded_[i] != 0 ? everything_.data() : least_.data();
    if (!values.apart)
      for (std::size_t k = 0; k < columns; ++k) distance_[k] = std::fabs(v[k] - o[k]);
    add_part(part, values.dv, v, values.apart ? values.apart + j * values.stride : distance_.data(), least,
             most_.data(), column_plain_.data(), column_dot_.data(), column_square_.data(), leaning_.data());
  }
}

void RowAlarm::evaluate(const Profile& p, const RowKeys& row, const KeyTerms& terms, const RowValues& values,
                        const double* q, const double* keys, const double* o, const BoundScratch& w,
                        const ElementTerms* elements, double probability, ElementAlarm* out) {
  // Of weights that are dropped, whose keys and values are not those of one row, it knows nothing.
  const bool covered = p.nearest && !p.of.drops && p.of.slope == 0 && !p.of.descale.any() && compare_keys(p, row, w);
  if (!covered) {
    for (std::int64_t k = 0; k < values.dv; ++k) out[k] = {elements[k].allowed, elements[k].allowed, false};
    return;
  }
  weigh_keys(p, row, q, keys, w);
  sum_columns(p, row, values, o, w, elements);

  const auto h = static_cast<double>(accumulation_depth(p.declared, p.of.keys, row.n));
  const double n = static_cast<double>(row.n), R = p.rescalings, u = p.u_a;
  const double by_norm = p.norm_first ? (p.depth_declared ? p.c_div : p.c_div - 1) : 0.0;
  // A weight that enters a coarser accumulator is rounded like a stored one: p.extra counts in full.
  const double in_values = h + 1 + 2 * R + by_norm, in_weights = h + 2 * R;
  const double growth = 1 + pw(u, in_values + p.extra);
  const double azuma = std::sqrt(2 * std::log(4 / probability));
  const double lambda = lambda_of_chains(n * (static_cast<double>(p.n_s) + 2), std::max(p.u_s, u), probability);
  const double proved_dot = pw(p.u_s, static_cast<double>(p.n_s));
  const double share_of_dot = random_chain(p.u_s, static_cast<double>(p.n_s), lambda) / proved_dot;

  double leaning_weights = 0;
  for (std::int64_t j = 0; j < row.n; ++j) {
    const auto i = static_cast<std::size_t>(j);
    if (crowded_[i] != 0 || w.pp[i] < swallowed * u) leaning_weights += std::min(w.pp[i], u);
  }
  const double linear_weights = growth * (std::min(leaning_weights, h * u) + p.extra * u);
  const double hm_weights = std::min(terms.sum_error, random_chain(u, in_weights, lambda) + linear_weights);
  const Denominator denominator = denominator_of(p, row, terms, hm_weights);
  const double in_denominator = p.p_in_denom ? p.u_p : 0.0;
  const double common = join(std::expm1(terms.merge), in_denominator);  // merges and rounded weights
  const double excess = std::max(1 / denominator.least - 1, denominator.UD + terms.LD);
  const double hm_chain = random_chain(u, in_values, lambda);
  const Finish finish(p);

  for (std::int64_t k = 0; k < values.dv; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const ElementTerms& e = elements[k];
    double plain = column_plain_[i] + e.radius * sum_plain_, dot = column_dot_[i] + e.radius * sum_dot_;
    double root = std::sqrt(column_square_[i]) + e.radius * std::sqrt(sum_square_);
    // Squares that underflow: q.k counts in full.
    if (!(root > 0x1p-450)) plain += dot, dot = root = 0;
    const double linear_values = growth * (std::min(leaning_[i], h * u * e.values) + p.extra * u * e.values);
    const double hm_sums = std::min(e.sums, hm_chain * e.values + linear_values);
    double hm = infinity, az = infinity;
    if (denominator.least > 0) {
      const double S = std::min(e.scores, plain + share_of_dot * dot), N = p.u_p * e.values + (1 + p.u_p) * hm_sums;
      hm = finish(S + (N + e.underflow + (e.size + S) * (denominator.UD + terms.LD)) / denominator.least, e.size);

      const double size = e.size + e.scores;
      const double sums = u * growth *
                          std::hypot(std::sqrt(in_values) * (1 + p.u_p) * e.values,
                                     std::sqrt(in_weights) * (1 + in_denominator) * size);
      // The random errors are divided by sums that are not quite 1: second order, counted in full.
      const double by_quotients =
          dot * terms.reach +
          2 * ((1 + p.u_p) * (hm_sums + linear_values) + size * (hm_weights + linear_weights)) * excess;
      const double linear = p.u_p * e.values + (1 + p.u_p) * linear_values + e.underflow +
                            size * (terms.LD + common + (1 + common) * (hm_weights * common + linear_weights));
      az = (1 + 0x1p-20) *
           finish(azuma * std::hypot(root, sums) + plain + by_quotients + linear / denominator.least, e.size);
    }
    out[k].hm = hm <= e.allowed ? hm : e.allowed;
    out[k].allowed = az <= out[k].hm ? az : out[k].hm;
    out[k].covered = true;
  }
}

}  // namespace attest::detail
