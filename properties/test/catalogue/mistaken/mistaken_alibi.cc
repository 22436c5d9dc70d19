// Kernels that are right but for slopes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "core/value/dtype.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/pair_product.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

bool has_slopes(const Case& c) {
  return c[Slot::alibi_slopes].present();
}
void forget(Case& c) {
  drop_variant(c, alibi_variant.name);
}

/// Another problem in the place of one with slopes.
Spoilt::Fault slopes_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (has_slopes(c)) change(c);
    return kernel.run(c, output, want_lse);
  };
}
/// The problem without slopes, where that is so.
Spoilt::Fault ignored_where(std::function<bool(const Case&)> is) {
  return slopes_asked([is = std::move(is)](Case& c) {
    if (is(c)) forget(c);
  });
}
/// By batch entry, or row of slopes, and head; the old ones are those of the case.
Spoilt::Fault each_slope(std::function<double(const Case&, std::int64_t b, std::int64_t h)> value) {
  return slopes_asked([value = std::move(value)](Case& c) {
    const Case before = c;
    const std::int64_t heads = heads_of(c);
    c[Slot::alibi_slopes] =
        mapped(c[Slot::alibi_slopes], [&](std::int64_t e, double) { return value(before, e / heads, e % heads); });
  });
}
Spoilt::Fault another_slope(std::function<double(double)> value) {
  return each_slope([value = std::move(value)](const Case& c, std::int64_t b, std::int64_t h) {
    return value(c[Slot::alibi_slopes].at(b, h));
  });
}

/// A key of a row, in a problem of one sequence to an entry.
struct Seen {
  std::int64_t b, h, i, j;
  std::int64_t p;  ///< the row's position
  double slope;
  double t;  ///< the scaled product, without a cap
};
std::int64_t position_of(const Case& c, std::int64_t i) {
  return position(sight_rule(c), i, queries_of(c), keys_of(c));
}
double right_term(const Seen& at) {
  return -at.slope * static_cast<double>(std::abs(at.p - at.j));
}
/// The problem without slopes and cap, and with a mask that makes these scores of it, beside what its own mask adds.
using ScoreOf = std::function<double(const Case&, const Seen&)>;
Case with_scores(const Case& c, const ScoreOf& score) {
  Case plain = c;
  forget(plain);
  Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    const double t = c.scale * static_cast<double>(product_of_pair(c, b, h, i, j));
    const Seen at{b, h, i, j, position_of(c, i), slope_of(c, b, h), t};
    mask.set(e, hidden(c, b, h, i, j) ? -infinity : score(c, at) - t + bias_of(plain, b, h, i, j));
  }
  plain.softcap = 0;
  plain[Slot::mask] = std::move(mask);
  drop_positions(plain);
  set_layouts(plain, Layouts());
  return plain;
}
Spoilt::Fault scores_asked(ScoreOf score) {
  return slopes_asked([score = std::move(score)](Case& c) {
    if (!has_sequences(c)) c = with_scores(c, score);
  });
}
/// Another term in the place of -m|p - j|.
Spoilt::Fault terms_asked(std::function<double(const Case&, const Seen&)> term) {
  return scores_asked(
      [term = std::move(term)](const Case& c, const Seen& at) { return capped(at.t, c.softcap) + term(c, at); });
}
/// Other distances.
Spoilt::Fault distances_asked(std::function<double(const Case&, const Seen&)> distance) {
  return terms_asked(
      [distance = std::move(distance)](const Case& c, const Seen& at) { return -at.slope * distance(c, at); });
}
double distance_from(std::int64_t p, std::int64_t j) {
  return static_cast<double>(std::abs(p - j));
}

/// The log-sum-exp alone: of a row's slope and position.
Spoilt::Fault lse_answered(std::function<double(const Case&, double slope, double p, double right)> value) {
  return [value = std::move(value)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!has_slopes(c) || reply.status != CallStatus::ok || !reply.lse.present() || has_sequences(c)) return reply;
    const std::int64_t M = queries_of(c), heads = heads_of(c);
    reply.lse = mapped(reply.lse, [&](std::int64_t row, double right) {
      return value(c, slope_of(c, row / M / heads, row / M % heads), static_cast<double>(position_of(c, row % M)),
                   right);
    });
    return reply;
  };
}

double to_bf16(double slope) {
  return round_to(DType::bf16, slope);
}
double to_a_power_of_two(double slope) {
  return slope == 0 ? 0 : std::copysign(std::exp2(std::round(std::log2(std::fabs(slope)))), slope);
}

/// The h'th slope of the row in descending order.
double sorted_slope(const Case& c, std::int64_t b, std::int64_t h) {
  std::vector<double> row;
  for (std::int64_t other = 0; other < heads_of(c); ++other) row.push_back(c[Slot::alibi_slopes].at(b, other));
  std::ranges::sort(row, std::ranges::greater{});
  return row[static_cast<std::size_t>(h)];
}

}  // namespace

std::vector<WrongKernel> mistaken_alibi() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"ignores slopes", slopes_asked(forget)},
      {"ignores slopes for one query", ignored_where([](const Case& c) { return queries_of(c) == 1; })},
      {"ignores slopes for more than one query", ignored_where([](const Case& c) { return queries_of(c) > 1; })},
      {"ignores slopes beside a mask", ignored_where([](const Case& c) { return c.mask().present(); })},
      {"ignores slopes beside a cap", ignored_where([](const Case& c) { return c.softcap > 0; })},
      {"ignores slopes beside a sink", ignored_where([](const Case& c) { return c[Slot::sink].present(); })},
      {"ignores slopes without a causal form", ignored_where([](const Case& c) { return c.causal == Causal::none; })},
      {"ignores a mask beside slopes", slopes_asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"adds slopes", another_slope([](double slope) { return -slope; })},
      {"takes the sizes of slopes", another_slope([](double slope) { return std::fabs(slope); })},
      {"takes slopes below 0 for none", another_slope([](double slope) { return std::max(slope, 0.0); })},
      {"takes slopes above 1 for 1", another_slope([](double slope) { return std::min(slope, 1.0); })},
      {"takes no slope for a small one", another_slope([](double slope) { return slope == 0 ? 0x1p-8 : slope; })},
      {"takes no slope of the sign below 0 for one of 1",
       another_slope([](double slope) { return slope == 0 && std::signbit(slope) ? 1 : slope; })},
      {"rounds slopes to bf16", another_slope(to_bf16)},
      {"rounds slopes to powers of two", another_slope(to_a_power_of_two)},
      {"takes slopes for logarithms to base 2", another_slope([](double slope) { return slope * std::numbers::ln2; })},
      {"multiplies slopes by log2(e) twice", another_slope([](double slope) { return slope * std::numbers::log2e; })},
      {"has slopes of a thousandth more", another_slope([](double slope) { return 1.001 * slope; })},
      {"scales slopes", each_slope([](const Case& c, std::int64_t b, std::int64_t h) {
         return c.scale * c[Slot::alibi_slopes].at(b, h);
       })},
      {"has the first head's slope in every head",
       each_slope([](const Case& c, std::int64_t b, std::int64_t) { return c[Slot::alibi_slopes].at(b, 0); })},
      {"has the next head's slope", each_slope([](const Case& c, std::int64_t b, std::int64_t h) {
         return c[Slot::alibi_slopes].at(b, std::min(h + 1, heads_of(c) - 1));
       })},
      {"has the slope of its key-value head's number", each_slope([](const Case& c, std::int64_t b, std::int64_t h) {
         return c[Slot::alibi_slopes].at(b, kv_head_of(c, h));
       })},
      {"has the first entry's slopes in every entry of a batch",
       each_slope([](const Case& c, std::int64_t, std::int64_t h) { return c[Slot::alibi_slopes].at(0, h); })},
      {"has the slopes of the next entry", each_slope([](const Case& c, std::int64_t b, std::int64_t h) {
         return c[Slot::alibi_slopes].at((b + 1) % c[Slot::alibi_slopes].shape()[0], h);
       })},
      {"has slopes in descending order", each_slope(sorted_slope)},
      {"makes its own slopes of so many heads", each_slope([](const Case& c, std::int64_t, std::int64_t h) {
         return std::exp2(-8 * static_cast<double>(h + 1) / static_cast<double>(heads_of(c)));
       })},
      {"has the exponent of the next head in its slopes", each_slope([](const Case& c, std::int64_t b, std::int64_t h) {
         return c[Slot::alibi_slopes].at(b, h) * std::exp2(-8 / static_cast<double>(heads_of(c)));
       })},
      {"has signed distances",
       distances_asked([](const Case&, const Seen& at) { return static_cast<double>(at.p - at.j); })},
      {"has no distances behind a position",
       distances_asked([](const Case&, const Seen& at) { return std::max(static_cast<double>(at.p - at.j), 0.0); })},
      {"has half the distances behind a position", distances_asked([](const Case&, const Seen& at) {
         return distance_from(at.p, at.j) * (at.j > at.p ? 0.5 : 1);
       })},
      {"counts distances from the row's number",
       distances_asked([](const Case&, const Seen& at) { return distance_from(at.i, at.j); })},
      {"counts distances from the last key", distances_asked([](const Case& c, const Seen& at) {
         return distance_from(at.i + keys_of(c) - queries_of(c), at.j);
       })},
      {"counts the distances of a single query from the first key", distances_asked([](const Case& c, const Seen& at) {
         return distance_from(queries_of(c) == 1 ? 0 : at.p, at.j);
       })},
      {"counts distances one too many",
       distances_asked([](const Case&, const Seen& at) { return distance_from(at.p + 1, at.j); })},
      {"counts distances of the keys that are seen", distances_asked([](const Case& c, const Seen& at) {
         std::int64_t before = 0;
         for (std::int64_t j = 0; j < at.j; ++j) before += !hidden(c, at.b, at.h, at.i, j);
         return distance_from(at.p, before);
       })},
      {"has squares of distances",
       distances_asked([](const Case&, const Seen& at) { return std::pow(distance_from(at.p, at.j), 2); })},
      {"has no distance above 4",
       distances_asked([](const Case&, const Seen& at) { return std::min(distance_from(at.p, at.j), 4.0); })},
      {"has no distance in its last tile", distances_asked([](const Case& c, const Seen& at) {
         return at.j >= (keys_of(c) - 1) / 4 * 4 ? 0 : distance_from(at.p, at.j);
       })},
      {"takes the last key for the position", distances_asked([](const Case& c, const Seen& at) {
         return distance_from(at.p == keys_of(c) - 1 ? at.p - 1 : at.p, at.j);
       })},
      {"drops keys that a slope takes 8 from",
       terms_asked([](const Case&, const Seen& at) { return right_term(at) < -8 ? -1e6 : right_term(at); })},
      {"takes no more than 30 for a slope",
       terms_asked([](const Case&, const Seen& at) { return std::max(right_term(at), -30.0); })},
      {"adds a slope's part before the cap",
       scores_asked([](const Case& c, const Seen& at) { return capped(at.t + right_term(at), c.softcap); })},
      {"caps a slope's part too", scores_asked([](const Case& c, const Seen& at) {
         return capped(at.t, c.softcap) + capped(right_term(at), c.softcap);
       })},
      {"has log-sum-exps of columns", lse_answered([](const Case& c, double slope, double p, double right) {
         return c.causal == Causal::none ? right : right + slope * p;
       })},
      {"has log-sum-exps of columns counted from the row's number",
       lse_answered([](const Case& c, double slope, double p, double right) {
         const auto offset = static_cast<double>(keys_of(c) - queries_of(c));
         return c.causal == Causal::bottom_right && p >= 0 ? right + slope * offset : right;
       })},
      {"has log-sum-exps without slopes",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_slopes(c) || !want_lse || reply.status != CallStatus::ok) return reply;
         Case plain = c;
         forget(plain);
         reply.lse = kernel.run(plain, output, want_lse).lse;
         return reply;
       }},
      {"is NaN beside a slope above 40",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_slopes(c) || reply.status != CallStatus::ok) return reply;
         const std::int64_t dv = c.v().shape()[3], M = queries_of(c), heads = heads_of(c);
         reply.out = mapped(reply.out, [&](std::int64_t e, double right) {
           return slope_of(c, e / dv / M / heads, e / dv / M % heads) > 40 ? nan : right;
         });
         return reply;
       }},
  };
}

}  // namespace attest
