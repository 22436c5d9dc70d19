// sink: a score without a key, of each head, that shares the weights of its rows and adds no value.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/formal.h"
#include "core/kernel/limits.h"
#include "core/oracle/oracle.h"
#include "core/problem/fields.h"
#include "core/support/infinity.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/split_laws.h"
#include "properties/families/variants/row_lse.h"
#include "properties/families/variants/scaled_queries.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/families/variants/sink_as_key.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/domain.h"
#include "properties/language/not_judged.h"
#include "properties/language/refute.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

Case without_sinks(Case c) {
  drop_variant(c, sink_variant.name);
  return c;
}

/// Sinks of the same format, by head. What it cannot hold is its largest number; a sink of -inf stays none.
Case with_sinks(Case c, const auto& sink_of) {
  const double largest = format_of(c[Slot::sink].dtype()).largest;
  c[Slot::sink] = mapped(c[Slot::sink], [&](std::int64_t h, double old) {
    const double sink = sink_of(h, old);
    return in_a_proof() || sink == -infinity ? sink : std::clamp(sink, -largest, largest);
  });
  return c;
}

std::int64_t head_of_row(const Case& c, std::int64_t row) {
  return row / queries_of(c) % heads_of(c);
}

}  // namespace

SinkAsKey sink_as_key(const Kernel& kernel, const Case& c) {
  const std::int64_t batch = batch_of(c), heads = heads_of(c), kv_heads = c.k().shape()[1], M = queries_of(c),
                     N = keys_of(c);
  if (!keys_within(kernel).has(N + 1))
    throw NoAnswer{skipped(fmt::format("the manifest allows no problem of {} keys", N + 1))};
  Case masked = with_causal_written_out(with_convention_of_numbers(c));
  const DType format = masked.mask().dtype();
  // The mask has to hold the sinks too.
  Case plain = with_sinks(c, [&](std::int64_t, double sink) {
    const double rounded = round_to(format, sink);
    return in_a_proof() || std::isfinite(rounded) ? rounded : sink > 0 ? format_of(format).largest : -infinity;
  });
  const Tensor& old = masked.mask();
  Tensor mask(format, {batch, heads, M, N + 1});
  std::int64_t e = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < M; ++i)
        for (std::int64_t j = 0; j <= N; ++j, ++e)
          mask.set(e, j == N ? plain[Slot::sink][h] : mask_entry(old, b, h, i, j));
  Case appended = without_sinks(masked);
  appended[Slot::mask] = std::move(mask);
  for (const Slot slot : {Slot::k, Slot::v}) {
    const std::int64_t width = c[slot].shape()[3];
    Tensor longer(c[slot].dtype(), {batch, kv_heads, N + 1, width});
    for (std::int64_t page = 0; page < batch * kv_heads; ++page)
      for (std::int64_t at = 0; at < N * width; ++at)
        longer.set(page * (N + 1) * width + at, c[slot][page * N * width + at]);
    appended[slot] = std::move(longer);
  }
  // Row-major: the layouts were those of shorter tensors.
  set_layouts(appended, Layouts());
  return {std::move(plain), std::move(appended)};
}

namespace {

// One appended key with score sink and value 0: the same output and log-sum-exp.
Verdict equals_key(Kernel& kernel, const Case& c) {
  const auto [sinks, key] = sink_as_key(kernel, c);
  const Result left = run_with_lse(kernel, sinks), right = run_with_lse(kernel, within_reach(kernel, key));
  return worse_of({agree({left, right}, Match::bound), agree_in_lse({left, right}, Match::bound)});
}

/// Does every row that sees a key have a score far above the lowest number of the sinks' format?
bool lowest_is_none(const Kernel& kernel, const Case& c) {
  const AttentionBounds bounds =
      attention_bounds(without_sinks(c), kernel.manifest().arithmetic_for(c), /*ignores_dead_values=*/true);
  const double least = -format_of(c[Slot::sink].dtype()).largest / 2;
  return std::ranges::all_of(bounds.rows, [&](const RowBound& row) {
    if (row.excuse == Excuse::fully_masked) return false;  // which is no row of a sink either, but a declared answer
    return row.excuse != Excuse::none || row.lse > least;
  });
}

// A sink of -inf is none, and so is one of the lowest number.
Verdict minus_infinity(Kernel& kernel, const Case& c) {
  const bool lowest = !in_a_proof() && argument(c, "lowest", 2) == 1 && lowest_is_none(kernel, c);
  const double none = lowest ? -format_of(c[Slot::sink].dtype()).largest : -infinity;
  const Case nothing = with_sinks(c, [&](std::int64_t, double) { return none; });
  return same(run_with_lse(kernel, nothing), run_with_lse(kernel, without_sinks(c)), Match::bound);
}

/// The share 1/(1 + e^-x) of what lies x above the rest, and how far it moves where x does by `error` to either side.
struct Share {
  double value, moved;
};
Share share_of(double x, double error) {
  const auto at = [](double y) { return y < 0 ? std::exp(y) / (1 + std::exp(y)) : 1 / (1 + std::exp(-y)); };
  const double share = at(x);
  // The difference x was rounded, and so is the rest.
  const double off = error + 0x1p-52 * std::fabs(x);
  return {share, std::max(at(x + off) - share, share - at(x - off)) + 0x1p-49 * share +
                     2 * std::numeric_limits<double>::denorm_min()};
}

// lse' = ln(e^lse + e^sink).
Verdict lse(Kernel& kernel, const Case& c) {
  if (std::string why = why_no_lse(kernel.manifest(), c); !in_a_proof() && !why.empty()) return skipped(std::move(why));
  const Result with = run_with_lse(kernel, c), without = run_with_lse(kernel, without_sinks(c));
  const std::int64_t rows = batch_of(c) * heads_of(c) * queries_of(c);
  if (in_a_proof()) {
    GenericInputs& inputs = GenericInputs::current();
    using Traits = ScalarTraits<Expression>;
    for (std::int64_t row = 0; row < rows; ++row) {
      const double sink = c[Slot::sink][head_of_row(c, row)];
      Expression expected = Traits::exp(without.run().formal_lse()[row]);
      if (sink != -infinity) expected = expected + Traits::exp(inputs.at(sink));
      const Expression found = Traits::exp(with.run().formal_lse()[row]);
      if (!inputs.identical(found, expected))
        return violated(Violation::lse,
                        fmt::format("lse {}: its exponential is not the sum of the keys' and the sink's", row));
    }
    return {};
  }
  std::vector<double> found, expected, errors;
  for (std::int64_t row = 0; row < rows; ++row) {
    const Lse own = lse_of(with, row), keys = lse_of(without, row);
    if (!own.known || !keys.known) continue;
    const double sink = c[Slot::sink][head_of_row(c, row)], most = std::max(sink, keys.value);
    if (most == -infinity) continue;  // the row's policy
    found.push_back(own.value);
    expected.push_back(most + std::log(std::exp(sink - most) + std::exp(keys.value - most)));
    errors.push_back(own.error + keys.error + 0x1p-49 * (1 + std::fabs(most)));
  }
  if (found.empty() && rows > 0) return excused("no row has a log-sum-exp with a bound");
  const Shape shape{std::ssize(found)};
  return agree({Numbers(shape, found).loosened(errors), Numbers(shape, expected)});
}

/// o' = o / (1 + e^(sink - lse)) element by element: every component of a row by one factor in (0, 1).
Verdict rescaled(Kernel& kernel, const Case& c) {
  const Result with = run(kernel, c), without = run_with_lse(kernel, without_sinks(c));
  const std::int64_t dv = c.v().shape()[3];
  const Numbers left(with), right(without);
  if (in_a_proof()) {
    GenericInputs& inputs = GenericInputs::current();
    using Traits = ScalarTraits<Expression>;
    return agree({left, left.formally([&](std::int64_t e) {
                    const double sink = c[Slot::sink][head_of_row(c, e / dv)];
                    if (sink == -infinity) return right.formal(e);
                    const Expression keys = Traits::exp(without.run().formal_lse()[e / dv]);
                    return right.formal(e) * keys / (keys + Traits::exp(inputs.at(sink)));
                  })});
  }
  Indices judged;
  std::vector<double> values, errors;
  Excuse why = Excuse::none;
  for (std::int64_t e = 0; e < left.elements(); ++e) {
    const Lse keys = lse_of(without, e / dv);
    const double sink = c[Slot::sink][head_of_row(c, e / dv)];
    const bool vacuous = right.excuse(e) == Excuse::vacuous;
    if (!keys.known || keys.value == -infinity || (right.excuse(e) != Excuse::none && !vacuous) ||
        !(right.allowed(e) < infinity) || !std::isfinite(right.value(e))) {
      why = right.excuse(e) != Excuse::none ? right.excuse(e) : Excuse::infinite;
      continue;
    }
    const auto [factor, moved] = share_of(keys.value - sink, keys.error);
    const auto allowed = static_cast<double>(right.allowed(e));
    judged.push_back(e);
    values.push_back(factor * right.value(e));
    errors.push_back((factor + moved) * allowed + moved * std::fabs(right.value(e)) +
                     std::numeric_limits<double>::denorm_min());
  }
  if (judged.empty() && left.elements() > 0) return excused(std::string(name_of(why)));
  const Shape shape{std::ssize(judged)};
  return agree({Numbers(with.at(shape, judged)), Numbers(shape, values).loosened(errors)});
}

/// Sinks that lie `above(h)` above the largest log-sum-exp of their head's rows, and so above each of their scores.
std::optional<Case> with_sinks_above(Kernel& kernel, const Case& c, const auto& above) {
  const AttentionBounds bounds = attention_bounds(without_sinks(c), kernel.manifest().arithmetic_for(c),
                                                  /*ignores_dead_values=*/true);
  std::vector<double> most(static_cast<std::size_t>(heads_of(c)), -infinity);
  for (std::int64_t row = 0; row < std::ssize(bounds.rows); ++row) {
    const RowBound& bound = bounds.rows[static_cast<std::size_t>(row)];
    double& of_head = most[static_cast<std::size_t>(head_of_row(c, row))];
    if (bound.excuse == Excuse::none) of_head = std::max(of_head, bound.lse);
  }
  if (std::ranges::max(most) == -infinity) return std::nullopt;
  // By so much that the format of the sinks tells them apart.
  const Format& format = format_of(c[Slot::sink].dtype());
  std::vector<double> sinks;
  for (std::int64_t h = 0; h < heads_of(c); ++h) {
    const double of_head = most[static_cast<std::size_t>(h)];
    sinks.push_back(of_head == -infinity ? 0.0 : of_head + std::max(above(h), 8 * format.unit * std::fabs(of_head)));
    if (std::fabs(sinks.back()) > format.largest) return std::nullopt;
  }
  return with_sinks(c, [&](std::int64_t h, double) { return sinks[static_cast<std::size_t>(h)]; });
}

// The sink is in the sum once, into however many blocks and parts the keys are cut: where it lies 10 above every score,
// a second time would halve the output.
Verdict counted_once(Kernel& kernel, const Case& c) {
  if (in_a_proof()) return rescaled(kernel, c);
  Stream stream(seed_argument(c, "above"));
  const std::optional<Case> above = with_sinks_above(kernel, c, [&](std::int64_t) { return stream.uniform(10, 14); });
  return above ? rescaled(kernel, *above) : excused("no sink lies so far above the scores");
}

// From 20 to 300 above every score: o' = e^(lse - sink) o, and lse' is near the sink, a number.
Verdict large(Kernel& kernel, const Case& c) {
  if (in_a_proof()) return rescaled(kernel, c);
  Stream stream(seed_argument(c, "above"));
  const std::optional<Case> above = with_sinks_above(kernel, c, [&](std::int64_t) { return stream.uniform(20, 300); });
  if (!above) return excused("no sink lies so far above the scores");
  Verdict verdict = rescaled(kernel, *above);
  const Result out = run_with_lse(kernel, *above);
  for (std::int64_t row = 0; out.run().lse().present() && row < out.run().lse().elements(); ++row) {
    const Lse found = lse_of(out, row);
    const double sink = (*above)[Slot::sink][head_of_row(c, row)];
    if (!found.known) continue;
    // lse' - sink = ln(1 + e^(lse - sink)) is from 0 to 2^-28.
    if (found.value >= sink - found.error && found.value <= sink + 0x1p-28 + found.error) continue;
    return violated(Violation::lse, fmt::format("lse {} is {:.9g} with a sink of {:.9g}, {} above every score", row,
                                                printed(found.value), printed(sink), "20 or more"));
  }
  return verdict;
}

// V = 1: o' = 1 - e^(sink - lse').
Verdict rows_sum(Kernel& kernel, const Case& c) {
  Case ones = c;
  ones[Slot::v] = mapped(c.v(), [](std::int64_t, double) { return 1.0; });
  const Result out = run_with_lse(kernel, ones);
  const std::int64_t dv = c.v().shape()[3];
  const Numbers found(out);
  if (in_a_proof()) {
    GenericInputs& inputs = GenericInputs::current();
    using Traits = ScalarTraits<Expression>;
    return agree({found, found.formally([&](std::int64_t e) {
                    const double sink = c[Slot::sink][head_of_row(c, e / dv)];
                    const Expression one = Traits::from_double(1);
                    if (sink == -infinity) return one;
                    return one - Traits::exp(inputs.at(sink)) / Traits::exp(out.run().formal_lse()[e / dv]);
                  })});
  }
  std::vector<double> expected, errors;
  Indices judged;
  for (std::int64_t e = 0; e < found.elements(); ++e) {
    const Lse all = lse_of(out, e / dv);
    const double sink = c[Slot::sink][head_of_row(c, e / dv)];
    if (!all.known || all.empty) continue;
    // No share is larger than 1, whatever the log-sum-exp.
    const double above = sink == -infinity ? -infinity : sink - all.value;
    const double share = std::exp(std::min(above, 0.0));
    const double most = std::exp(std::min(above + all.error, 0.0)), least = std::exp(std::min(above - all.error, 0.0));
    judged.push_back(e);
    expected.push_back(1 - share);
    errors.push_back(std::max(most - share, share - least) + 0x1p-49);
  }
  if (judged.empty() && found.elements() > 0) return excused("no row has a log-sum-exp with a bound");
  const Shape shape{std::ssize(judged)};
  return agree({Numbers(out.at(shape, judged)), Numbers(shape, expected).loosened(errors)});
}

// A row that sees no key: its output is exactly 0 and its lse the sink; the other rows are as they were.
Verdict empty_row(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c);
  if (M == 0) return {};
  const std::int64_t i = argument(c, "i", M);
  const Case before = with_some_mask(
      with_sinks(c, [](std::int64_t, double sink) { return sink == -infinity ? any_number(0.5) : sink; }));
  Case masked = before;
  for (std::int64_t j = 0; j < keys_of(c); ++j) masked = hide(std::move(masked), i, j);
  const Result out = run_with_lse(kernel, masked);
  const Result row = out.queries({i});
  std::int64_t judged = 0;
  for (std::int64_t e = 0; e < row.elements() && !in_a_proof(); ++e) {
    const std::int64_t at = row.origin(e);
    if (out.run().bound(at).excuse != Excuse::none) continue;
    ++judged;
    if (const double x = out.run().out()[at]; x != 0)
      return violated(
          Violation::bound,
          fmt::format("element {} of a row that sees no key and has a sink is {:.6g}; it is 0", at, printed(x)));
  }
  Verdict verdict;
  if (in_a_proof())
    verdict =
        agree({Numbers(row), Numbers(row.shape(), std::vector<double>(static_cast<std::size_t>(row.elements())))});
  else if (judged == 0)
    verdict = excused(std::string(name_of(Excuse::overflow)));
  for (std::int64_t of = i; out.run().lse().present() && of < out.run().lse().elements(); of += M) {
    const Lse found = lse_of(out, of);
    const double sink = masked[Slot::sink][head_of_row(c, of)];
    if (!found.known || std::fabs(found.value - sink) <= found.error) continue;
    return violated(Violation::lse, fmt::format("lse {} of a row that sees no key is {:.9g}; it is the sink, {:.9g}",
                                                of, printed(found.value), printed(sink)));
  }
  if (M == 1) return verdict;
  return worse_of({std::move(verdict), agree({out.without_query(i), run(kernel, before).without_query(i)},
                                             bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true)});
}

// (scale, Q, sink) is (1, scale Q, sink): the scale does not touch the sink. A power of two, by which numbers are
// multiplied exactly.
Verdict unscaled(Kernel& kernel, const Case& c) {
  const std::optional<ScaledQueries> both = with_scale_in_queries(c);
  if (!both) return excused("scale q is no number of its format");
  return same(run_with_lse(kernel, within_reach(kernel, both->apart)),
              run_with_lse(kernel, within_reach(kernel, both->together)), Match::bound);
}

// Heads permuted with their sinks: their outputs are.
Verdict per_head(Kernel& kernel, const Case& c) {
  const Indices heads = permutation_argument(c, "heads", heads_of(c));
  const Case permuted = with_heads(c, heads);
  return agree({run(kernel, within_reach(kernel, permuted)), run(kernel, c).heads(heads)},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

// The last row of M queries is the single-query call.
Verdict query_count(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c);
  const Case last = with_queries(c, {M - 1});
  return agree({run(kernel, within_reach(kernel, last)), run(kernel, c).queries({M - 1})},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

/// Mask and sinks on a grid on which both and their sums with one of the shifts are exact.
constexpr double shifts[] = {1, -2, 0.5, -0.25};
Case on_grid(const Case& c) {
  const double most = std::ldexp(0.125, std::min(format_of(c.dtype()).precision, 10));
  const auto gridded = [&](double old) {
    return old == -infinity || in_a_proof() ? old : std::clamp(std::round(4 * old) / 4, -most, most);
  };
  Case grid = with_additive_mask(with_convention_of_numbers(c));
  grid[Slot::mask] = mapped(grid.mask(), [&](std::int64_t, double old) { return gridded(old); });
  return with_sinks(grid, [&](std::int64_t, double old) { return gridded(old); });
}

// B + t in every row and sink + t: the same output, and lse + t.
Verdict joint_shift(Kernel& kernel, const Case& c) {
  const Case grid = on_grid(c);
  const double t = any_number(shifts[argument(c, "t", 4)]);
  Case shifted = with_sinks(grid, [&](std::int64_t, double sink) { return sum_of(sink, t); });
  shifted[Slot::mask] = mapped(grid.mask(), [&](std::int64_t, double old) { return sum_of(old, t); });
  const Result left = run_with_lse(kernel, shifted), right = run_with_lse(kernel, grid);
  Verdict verdict = agree({left, right}, Match::bound);
  for (std::int64_t row = 0; left.run().lse().present() && row < left.run().lse().elements(); ++row) {
    const Lse one = lse_of(left, row), other = lse_of(right, row);
    if (!one.known || !other.known || other.empty) continue;
    if (std::fabs(one.value - other.value - t) <= one.error + other.error + 0x1p-49 * (1 + std::fabs(other.value)))
      continue;
    return violated(Violation::lse, fmt::format("lse {} is {:.9g}, and {:.9g} with {} less added to every score", row,
                                                printed(one.value), printed(other.value), t));
  }
  return verdict;
}

// Refuted: with a sink, adding t to a row of B changes nothing. Q = 0 and V = 1, so that o' = n/(n + e^(sink - t)).
Verdict breaks_row_shift(Kernel& kernel, const Case& c) {
  return refuted(/*budget=*/4, [&](int n) {
    const double t = shifts[n] * 4;
    Case plain = with_sinks(with_additive_mask(c), [](std::int64_t, double) { return 0.0; });
    plain[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
    plain[Slot::v] = mapped(c.v(), [](std::int64_t, double) { return 1.0; });
    plain[Slot::mask] = mapped(plain.mask(), [](std::int64_t, double) { return 0.0; });
    Case shifted = plain;
    shifted[Slot::mask] = mapped(plain.mask(), [&](std::int64_t, double) { return t; });
    return Attempt{run(kernel, shifted), run(kernel, plain),
                   fmt::format("Q = 0, V = 1, a sink of 0, and {} added to every score", t)};
  });
}

constexpr std::array sunk{defining(hypotheses::sink, "the theorem is about one")};
constexpr std::array sunk_and_masked{
    defining(hypotheses::sink, "the theorem is about one"),
    defining(hypotheses::added_after_scale, "the mask adds the sink to the score of the appended key"),
    defining(hypotheses::infinite_dtype, "the mask is written out, and has to hide what positions hide")};
constexpr std::array sunk_alone{
    defining(hypotheses::sink, "the theorem is about one"),
    needed(hypotheses::no_causal_form, "the form counts rows, and a single one begins to count anew"),
    defining(hypotheses::a_query, "the theorem is about the last one")};
constexpr std::array sunk_after_scale{
    defining(hypotheses::sink, "the theorem is about one"),
    needed(hypotheses::added_after_scale, "a mask before the scale is scaled with the products")};
constexpr std::array sunk_heads{defining(hypotheses::sink, "the theorem is about one"),
                                defining(hypotheses::two_heads, "a permutation needs two")};
constexpr std::array sunk_before_empty{defining(hypotheses::sink, "the theorem is about one"),
                                       defining(hypotheses::no_causal_form, "the theorem hides keys by the mask"),
                                       defining(hypotheses::infinity_to_hide, "the theorem hides keys")};
constexpr std::array sunk_and_biased{
    defining(hypotheses::sink, "the theorem is about one"),
    defining(hypotheses::infinity_for_a_mask, "the mask is written out"),
    defining(hypotheses::no_causal_form, "the theorem adds to the mask"),
    needed(hypotheses::added_after_scale, "a mask before the scale is scaled, and the sink is not")};
constexpr std::array broken{defining(hypotheses::sink, "the theorem is about one"),
                            defining(hypotheses::infinity_for_a_mask, "the mask is written out"),
                            defining(hypotheses::no_causal_form, "the counterexample has a mask alone"),
                            defining(hypotheses::a_query_and_a_key, "a counterexample needs them")};
constexpr std::array sunk_blocks{
    defining(hypotheses::sink, "the theorem is about one"),
    needed(hypotheses::no_causal_form, "the form counts keys, and a block begins to count anew")};

void more_than_a_block(Recipe& r) {
  if (!r.large && r.seed % 4 != 0) r.keys = std::max<std::int32_t>(r.keys, 33 + static_cast<std::int32_t>(r.seed % 96));
}
void two_heads(Recipe& r) {
  if (r.heads == 1) r.heads = r.kv_heads = 2;
}
void additive(Recipe& r) {
  r.boolean_mask = false;
  r.convention = MaskConvention::post_scale;
}
void some_keys(Recipe& r) {
  r.queries = std::max(r.queries, 1), r.keys = std::max(r.keys, 1);
}

const Property family[] = {
    {.name = "sink.equals-key",
     .statement = "a sink is one appended key with score σ and v = 0: the same O and lse",
     .source = "+",
     .needs = "attention, sink, additive masks",
     .floating_point = "bound",
     .variant = "sink",
     .under = "window chunk softcap",
     .hypotheses = sunk_and_masked,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_sinks().where([](Recipe& r) {
         r.convention = MaskConvention::post_scale;
       });
     },
     .check = equals_key},
    {.name = "sink.minus-infinity",
     .statement = "σ = −∞ is no sink, and so is the lowest number of its format",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bound",
     .variant = "sink",
     .under = "window chunk lengths packed left_pad softcap dropout alibi",
     .hypotheses = sunk,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().with_sinks();
     },
     .check = minus_infinity},
    {.name = "sink.lse",
     .statement = "lse′ = ln(e^lse + e^σ)",
     .source = "+",
     .needs = "attention, sink, lse",
     .floating_point = "bound",
     .variant = "sink",
     .under = "window chunk softcap dropout alibi",
     .hypotheses = sunk,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).with_sinks(); },
     .check = lse},
    {.name = "sink.rescales",
     .statement = "o′ = o/(1 + e^(σ − lse)): all components of a row by one factor in (0, 1)",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bound",
     .variant = "sink",
     .under = "window chunk softcap dropout alibi",
     .hypotheses = sunk,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).with_sinks(); },
     .check = rescaled},
    {.name = "sink.rows-sum",
     .statement = "V = 1: o′ = 1 − e^(σ − lse′)",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bound",
     .variant = "sink",
     .under = "window chunk softcap alibi",
     .hypotheses = sunk,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).with_sinks(); },
     .check = rows_sum},
    {.name = "sink.empty-row",
     .statement = "a row that sees no key: o = 0 and lse = σ, not NaN; other rows are unaffected",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "inside the domain: zero bitwise; the other rows: bitwise if batch-invariant",
     .variant = "sink",
     .hypotheses = sunk_before_empty,
     .given = [](Draw& draw) -> Case { return draw.attention().masked().where(some_keys).with_sinks(); },
     .check = empty_row},
    {.name = "sink.unscaled",
     .statement = "(scale, Q, σ) is (1, scale·Q, σ): the scale does not touch the sink",
     .source = "+",
     .needs = "attention, sink, any scale",
     .floating_point = "bound",
     .variant = "sink",
     .under = "window chunk softcap dropout alibi",
     .hypotheses = sunk_after_scale,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_sinks().where([](Recipe& r) {
         r.convention = MaskConvention::post_scale;
         if (r.scale == ScaleKind::one) r.scale = ScaleKind::power_of_two;
       });
     },
     .check = unscaled},
    {.name = "sink.per-head",
     .statement = "each query head has its own: permuting heads with their sinks permutes outputs",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bitwise if batch-invariant",
     .variant = "sink",
     .under = "window chunk lengths packed left_pad softcap dropout alibi",
     .hypotheses = sunk_heads,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).with_later_arguments().where(two_heads).with_sinks();
     },
     .check = per_head},
    {.name = "sink.counted-once",
     .statement = "σ ≥ max s + 10: o′ = o/(1 + e^(σ − lse)), whatever the number of blocks and parts of keys",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bound",
     .variant = "sink",
     .hypotheses = sunk,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where(some_keys).where(more_than_a_block).with_sinks();
     },
     .check = counted_once},
    {.name = "sink.query-count",
     .statement = "the last row of M queries is the single-query call",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bitwise if batch-invariant",
     .variant = "sink",
     .hypotheses = sunk_alone,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).masked().where(some_keys).with_sinks();
     },
     .check = query_count},
    {.name = "sink.large",
     .statement = "σ − max s from 20 to 300: o′ = e^(lse − σ) o, and lse′ ≈ σ is a number",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bound",
     .variant = "sink",
     .hypotheses = sunk,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).where(some_keys).with_sinks(); },
     .check = large},
    {.name = "sink.joint-shift",
     .statement = "B + t in every row and σ + t: the same O, and lse + t",
     .source = "+",
     .needs = "attention, sink, additive masks",
     .floating_point = "bound",
     .variant = "sink",
     .hypotheses = sunk_and_biased,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).masked().where(additive).with_sinks();
     },
     .check = joint_shift},
    {.name = "sink.breaks-row-shift",
     .statement = "with a sink, adding a constant to a row of B changes nothing",
     .source = "+",
     .needs = "attention, sink, additive masks",
     .floating_point = "counterexample",
     .variant = "sink",
     .hypotheses = broken,
     .given = [](Draw& draw) -> Case {
       return draw.attention().unmasked().where(some_keys).where(additive).with_sinks();
     },
     .check = breaks_row_shift},
    {.name = "sink.split-merge",
     .statement =
         "attention over concatenated key blocks is the log-sum-exp-weighted merge of the blocks' attentions, the "
         "sink in exactly one of them, any one",
     .source = "+",
     .needs = "attention, sink",
     .floating_point = "bound",
     .variant = "sink",
     .hypotheses = sunk_blocks,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).masked().at_least(0, 2).with_sinks();
     },
     .check = split_merge},
};

}  // namespace

std::span<const Property> sink_properties() {
  return family;
}

}  // namespace attest
