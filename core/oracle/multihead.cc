// Verdicts on multihead cases, and their bounds: in double-double, and what that does not decide in balls.
#include <algorithm>
#include <cmath>

#include "core/oracle/multihead_entry.h"
#include "core/oracle/oracle.h"
#include "core/oracle/tally.h"
#include "core/support/infinity.h"

namespace attest {
namespace {

using detail::in_pairs;

constexpr long first_balls = 192;

long next_precision(long bits, long most) {
  return bits == in_pairs ? std::min(first_balls, most) : std::min(2 * bits, most);
}

}  // namespace

Verdict judge_multihead(const Problem& c, const Tensor& out, const Arithmetic& arithmetic,
                        const OracleOptions& options) {
  detail::free_flint_caches_at_thread_end();
  detail::CaseTally tally(c);
  const std::int64_t batch = c.out_shape()[0], per_entry = c.out_shape()[1] * c.out_shape()[2];
  detail::MultiheadProblem problem(c, arithmetic, options.ignores_dead_values);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<bool> decided(static_cast<std::size_t>(per_entry), false);
    bool more = true;
    for (long bits = options.first_level > 2 ? first_balls : in_pairs; more;
         bits = next_precision(bits, options.max_ball_precision)) {
      const detail::MultiheadEntry entry = problem.evaluate(b, bits);
      if (bits == in_pairs && !entry.settled) continue;
      const bool last = bits >= options.max_ball_precision;
      more = false;
      for (std::int64_t e = 0; e < per_entry; ++e) {
        const auto at = static_cast<std::size_t>(e);
        if (decided[at]) continue;
        decided[at] = true;
        const double found = out[b * per_entry + e];
        const Excuse excuse = entry.excuse[at];
        detail::Decision d;
        d.level = entry.level();
        d.allowed = entry.allowed[at];
        if (excuse != Excuse::none && excuse != Excuse::vacuous && excuse != Excuse::infinite) {
          tally.excuse(excuse, 1);
          continue;
        }
        if (!std::isfinite(found)) {
          tally.not_finite(b * per_entry + e, found, entry.value(e), d.allowed, d.level);
          continue;
        }
        if (excuse == Excuse::infinite) {
          tally.excuse(excuse, 1);
          continue;
        }
        double least = 0;
        entry.distance(e, found, least, d.error);
        if (entry.settled && d.error <= d.allowed * (1 - 0x1p-24)) {
          d.outcome = Outcome::held;
        } else if (entry.settled && least > d.allowed * (1 + 0x1p-24)) {
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
        tally.add(b * per_entry + e, found, entry.value(e), d);
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
    const long most = OracleOptions{}.max_ball_precision;
    for (long bits = in_pairs;; bits = next_precision(bits, most)) {
      entry = problem.evaluate(b, bits);
      if (entry.settled || bits >= most) break;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      RowBound row;
      row.level = entry.level();
      row.lse = std::nan("");
      row.lse_certificate = row.lse_allowed = infinity;
      row.most_E = entry.most_E[static_cast<std::size_t>(i)];
      bounds.rows.push_back(row);
      for (std::int64_t k = 0; k < columns; ++k) {
        const auto at = static_cast<std::size_t>(i * columns + k);
        ElementBound e;
        e.excuse = entry.settled ? entry.excuse[at] : Excuse::infinite;
        const bool known = e.excuse == Excuse::none || e.excuse == Excuse::vacuous;
        e.value = known ? entry.value(i * columns + k) : std::nan("");
        e.certificate = known ? entry.certificate(i * columns + k) : infinity;
        e.allowed = known ? entry.allowed[at] * (1 + 0x1p-24) : infinity;
        e.finite_required = known;
        bounds.elements.push_back(e);
      }
    }
  }
  return bounds;
}

}  // namespace attest
