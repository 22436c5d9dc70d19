// What is asked of the oracle about attention cases beside verdicts.
#include <cmath>
#include <span>
#include <utility>

#include "core/bound/error_alarm.h"
#include "core/oracle/oracle.h"
#include "core/oracle/workspace.h"
#include "core/problem/sequences.h"
#include "core/support/infinity.h"

namespace attest {
namespace {

using detail::Head;
using detail::RowOracle;
using detail::workspace;

/// Calls row(its excuse) with each of the rows asked for evaluated, in the order of the output; those of no sequence
/// without.
template <class Visit>
void for_each_row(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values, bool want_lse,
                  long precision, AskedRows asked, Visit&& row) {
  detail::Workspace& w = workspace();
  const std::int64_t batch = c.q().shape()[0], heads = c.q().shape()[1], queries = c.q().shape()[2];
  const std::int64_t group = heads / c.k().shape()[1];
  const std::vector<Sequence> sequences = sequences_of(c);
  std::pair<std::size_t, std::int64_t> loaded{sequences.size(), 0};
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::int64_t next = (b * heads + h) * queries;  // the first row that is not done
      const std::int64_t first = next;
      // Of the rows from `next` to before `end` those asked for, counted from `from`.
      const auto take_up_to = [&](std::int64_t end, std::int64_t from) {
        w.starts.clear();
        if (asked)
          for (; !asked->empty() && asked->front() < end; asked = asked->subspan(1))
            w.starts.push_back(asked->front() - from);
        else
          for (; next < end; ++next) w.starts.push_back(next - from);
        next = end;
      };
      const auto pad_up_to = [&](std::int64_t end) {
        take_up_to(end, first);
        for (std::size_t at = 0; at < w.starts.size(); ++at) row(Excuse::padding);
      };
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        const Sequence& own = sequences[s];
        if (own.entry != b) continue;
        pad_up_to(first + own.first_query);
        take_up_to(first + own.first_query + own.queries, first + own.first_query);
        if (w.starts.empty()) continue;
        const std::pair kv(s, h / group);
        w.head.load(c, own, h, kv == loaded);
        loaded = kv;
        const Profile profile = profile_for(c, w.head, arithmetic);
        for (std::size_t at = 0; at < w.starts.size(); ++at)
          row(w.oracle.start(w.head, std::span(w.starts).subspan(at), profile, ignores_dead_values, want_lse,
                             precision));
      }
      pad_up_to(first + queries);
    }
  }
}

}  // namespace

AttentionBounds attention_bounds(const Problem& c, const Arithmetic& arithmetic, bool ignores_dead_values,
                                 AskedRows rows) {
  AttentionBounds bounds;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  for_each_row(c, arithmetic, ignores_dead_values, true, options.max_ball_precision, rows, [&](Excuse excuse) {
    RowBound row;
    row.excuse = excuse == Excuse::none && !oracle.certain() ? Excuse::infinite : excuse;
    row.level = excuse == Excuse::padding ? 0 : oracle.level();
    const bool known = row.excuse == Excuse::none;
    row.lse = known ? oracle.lse() : excuse == Excuse::fully_masked ? -infinity : std::nan("");
    row.lse_certificate = known ? oracle.lse_certificate() : infinity;
    // What may lose the row loses its log-sum-exp.
    const bool kept = known && (dv == 0 || oracle.element(0).finite_required);
    row.lse_allowed = kept ? oracle.terms().lse_allowed * (1 + oracle.doubt()) : infinity;
    row.most_E = known ? oracle.terms().most_E : infinity;
    bounds.rows.push_back(row);
    for (std::int64_t k = 0; k < dv; ++k) {
      ElementBound e;
      e.value = known ? oracle.value(k) : std::nan("");
      e.certificate = known ? oracle.certificate(k) : infinity;
      e.allowed = known ? oracle.element(k).allowed * (1 + oracle.doubt()) : infinity;
      if (known) e.hull = oracle.element(k).hull * (1 + oracle.doubt());
      e.excuse = known ? oracle.element(k).excuse : row.excuse;
      e.finite_required = known && oracle.element(k).finite_required;
      bounds.elements.push_back(e);
    }
  });
  return bounds;
}

std::vector<ElementAlarm> alarm_bounds(const Problem& c, const Arithmetic& arithmetic, double probability,
                                       bool ignores_dead_values) {
  std::vector<ElementAlarm> alarms;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  for_each_row(c, arithmetic, ignores_dead_values, false, options.max_ball_precision, {}, [&](Excuse excuse) {
    const bool known = excuse == Excuse::none && oracle.certain();
    if (known) oracle.evaluate_alarm(probability);
    for (std::int64_t k = 0; k < dv; ++k)
      alarms.push_back(known ? oracle.alarm(k) : ElementAlarm{infinity, infinity, false});
  });
  return alarms;
}

std::vector<ElementFacts> exact_elements(const Problem& c, const Arithmetic& arithmetic, AskedRows rows) {
  std::vector<ElementFacts> facts;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  const Head& head = workspace().head;
  for_each_row(c, arithmetic, /*ignores_dead_values=*/true, false, options.max_ball_precision, rows,
               [&](Excuse excuse) {
                 const bool defined = excuse == Excuse::none || excuse == Excuse::overflow;
                 const bool bounded = excuse == Excuse::none && oracle.certain();
                 std::vector<ElementFacts> row(static_cast<std::size_t>(dv));
                 for (std::int64_t k = 0; k < dv; ++k) {
                   ElementFacts& f = row[static_cast<std::size_t>(k)];
                   f.exact = {std::nan(""), std::nan("")};
                   f.allowed = bounded ? oracle.element(k).allowed * (1 + oracle.doubt()) : infinity;
                   f.required = excuse == Excuse::none && oracle.element(k).excuse != Excuse::overflow &&
                                oracle.element(k).finite_required;
                 }
                 if (defined) {
                   detail::BallRow balls;
                   const double size = excuse == Excuse::none ? oracle.terms().largest_score : 0x1p1023;
                   long bits = detail::first_precision(size);
                   for (bool narrow = false; !narrow && bits <= 2 * options.max_ball_precision; bits *= 2) {
                     balls.evaluate(head, oracle.row(), std::min(bits, options.max_ball_precision));
                     narrow = true;
                     for (std::int64_t k = 0; k < dv; ++k) {
                       Enclosure& e = row[static_cast<std::size_t>(k)].exact;
                       e = {detail::lower_end(balls.answer(k)), detail::upper_end(balls.answer(k))};
                       narrow = narrow && e.upper <= std::nextafter(std::nextafter(e.lower, infinity), infinity);
                     }
                   }
                 }
                 facts.insert(facts.end(), row.begin(), row.end());
               });
  return facts;
}

std::vector<bool> finite_required(const Problem& c, const Arithmetic& arithmetic) {
  std::vector<bool> required;
  const std::int64_t dv = c.v().shape()[3];
  const OracleOptions options;
  RowOracle& oracle = workspace().oracle;
  for_each_row(c, arithmetic, false, false, options.max_ball_precision, {}, [&](Excuse excuse) {
    bool all = excuse == Excuse::none;
    for (std::int64_t k = 0; k < dv && all; ++k)
      all = oracle.element(k).excuse != Excuse::overflow && oracle.element(k).finite_required;
    required.push_back(all);
  });
  return required;
}

}  // namespace attest
