// Verdicts on multihead cases, and their bounds: everything exact in balls.
#include <algorithm>
#include <cmath>

#include "core/oracle/multihead_entry.h"
#include "core/oracle/oracle.h"
#include "core/oracle/tally.h"
#include "core/support/infinity.h"

namespace attest {

Verdict judge_multihead(const Problem& c, const Tensor& out, const Arithmetic& arithmetic,
                        const OracleOptions& options) {
  detail::free_flint_caches_at_thread_end();
  detail::CaseTally tally(c);
  const std::int64_t batch = c.out_shape()[0], per_entry = c.out_shape()[1] * c.out_shape()[2];
  detail::MultiheadProblem problem(c, arithmetic, options.ignores_dead_values);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<bool> decided(static_cast<std::size_t>(per_entry), false);
    bool more = true;
    for (long bits = 192; more; bits = std::min(2 * bits, options.max_ball_precision)) {
      const detail::MultiheadEntry entry = problem.evaluate(b, bits);
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
        detail::Ball distance;
        arb_set_d(distance, found);
        arb_sub(distance, distance, entry.y[e], bits);
        d.error = detail::upper_size(distance);
        if (entry.settled && d.error <= d.allowed * (1 - 0x1p-24)) {
          d.outcome = Outcome::held;
        } else if (entry.settled && detail::lower_size(distance) > d.allowed * (1 + 0x1p-24)) {
          d.outcome = Outcome::violated;
        } else if (!last) {
          decided[at] = false;
          more = true;
          continue;
        }
        // Undecided as well, as of attention cases.
        if (d.outcome != Outcome::violated && excuse == Excuse::vacuous) {
          tally.excuse(excuse, 1);
          continue;
        }
        tally.add(b * per_entry + e, found, detail::middle(entry.y[e]), d);
      }
    }
  }
  return tally.verdict();
}

AttentionBounds multihead_bounds(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values) {
  AttentionBounds bounds;
  const Shape shape = c.out_shape();
  const std::int64_t rows = shape[1], columns = shape[2];
  detail::MultiheadProblem problem(c, arithmetic, ignores_dead_values);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    detail::MultiheadEntry entry;
    for (long bits = 128; bits <= OracleOptions{}.max_ball_precision; bits *= 2) {
      entry = problem.evaluate(b, bits);
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
