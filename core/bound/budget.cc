#include "core/bound/budget.h"

#include <algorithm>
#include <cmath>

namespace attest::detail {

std::array<double, stage_count> budget_parts(const Profile& p, const RowKeys& row, const KeyTerms& terms,
                                             const RowValues& values, const ElementTerms& element, std::int64_t k,
                                             double o, const BoundScratch& w) {
  double whole = 0, by_scores = 0;
  for (std::int64_t j = 0; j < row.n; ++j) {
    const auto i = static_cast<std::size_t>(j);
    if (!(w.ph[i] > 0)) continue;
    const double v = values.v[(row.index ? row.index[j] : j) * values.stride + k];
    const double part = w.ph[i] * (std::fabs(p.gain * v - o) + element.radius), own = w.a[i] + w.tm[i];
    whole += part;
    by_scores += own < w.E[i] ? part * (own / w.E[i]) : part;
  }
  const double of_scores = whole > 0 ? std::min(1.0, by_scores / whole) : 1.0;
  const Finish finish(p);
  const double S = element.scores, reach = element.size + S;
  const double after = 1 + finish.Uf, divided = after / terms.denominator;
  // What the rounded weights add to the error of their sum.
  const double narrow = p.p_in_denom ? p.u_p : 0.0, of_weights = join(p.u_p, p.u_drop);
  std::array<double, stage_count> parts{};
  const auto add = [&](Stage stage, double part) { parts[static_cast<std::size_t>(stage)] = part; };
  add(Stage::scores, after * S * of_scores);
  add(Stage::exponentials, after * S * (1 - of_scores));
  add(Stage::weights, divided * (of_weights * element.values + narrow * reach));
  add(Stage::sums, divided * ((1 + of_weights) * element.sums + std::max(0.0, terms.UD - narrow) * reach));
  add(Stage::output, finish.Uf * element.size + p.gain * finish.lam);
  add(Stage::underflow, divided * (element.underflow + terms.LD * reach));
  return parts;
}

}  // namespace attest::detail
