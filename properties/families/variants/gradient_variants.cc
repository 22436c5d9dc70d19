// Gradients under a variant of attention: rows of the variants' own families.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/sequences.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/families/variants/sequence_laws.h"
#include "properties/families/variants/sink_as_key.h"
#include "properties/language/balance.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

// dk_j and dv_j do not depend on rows that do not see key j by their position, nor dq_i on keys that row i does not
// see.
Verdict window_locality(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c), i = argument(c, "i", M), j = argument(c, "j", N);
  const auto sees = [&](std::int64_t row, std::int64_t key) { return sight(sight_rule(c), row, M, N).sees(key); };
  Case other_rows = c, other_keys = c;
  for (const Slot slot : {Slot::q, Slot::d_out})
    other_rows[slot] = with_rows_as(c[slot], [&](std::int64_t row) { return !sees(row, j); }, another);
  for (const Slot slot : {Slot::k, Slot::v})
    other_keys[slot] = with_rows_as(c[slot], [&](std::int64_t key) { return !sees(i, key); }, another);
  const BackwardRun run(kernel, c), rows(kernel, other_rows), keys(kernel, other_keys);
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of == Gradient::q)
      return gradients_agree(of, {keys.of(of).queries({i}), run.of(of).queries({i})}, match_of_dead_gradients(kernel));
    return gradients_agree(of, {rows.of(of).queries({j}), run.of(of).queries({j})}, match_of_unseen_rows(kernel));
  });
}

// A sink as a key of its score and of value 0: the other gradients are the same.
Verdict sink_equals_key(Kernel& kernel, const Case& c) {
  const auto [sinks, key] = sink_as_key(kernel, c);
  const BackwardRun run(kernel, sinks), with_key(kernel, key);
  const Indices old = all_of(keys_of(c));
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of == Gradient::q) return gradients_agree(of, {with_key.of(of), run.of(of)}, Match::bound);
    return gradients_agree(of, {with_key.of(of).queries(old), run.of(of)}, Match::bound);
  });
}

// Sum_j dk_j is what the key in the sink's place has with the other sign.
Verdict sink_dk_sum(Kernel& kernel, const Case& c) {
  const auto [sinks, key] = sink_as_key(kernel, c);
  const BackwardRun run(kernel, sinks), with_key(kernel, key);
  const Numbers own(run.of(Gradient::k)), beside(with_key.of(Gradient::k));
  const Shape& k = c.k().shape();
  WorstBalance worst;
  for (std::int64_t page = 0; page < k[0] * k[1]; ++page)
    for (std::int64_t e = 0; e < k[3]; ++e) {
      Balance balance;
      for (std::int64_t j = 0; j < k[2]; ++j) balance.add(own, (page * k[2] + j) * k[3] + e, 1);
      balance.add(beside, (page * (k[2] + 1) + k[2]) * k[3] + e, 1);
      worst.judge(balance, [&] { return fmt::format("key-value head {} of all entries, column {}", page, e); });
    }
  return worst.verdict();
}

/// In a proof dO is 0 but in one row: a formula of all has the denominators of all, and what is a sum over rows is
/// proved for each.
Case of_one_row(const Case& c) {
  if (!in_a_proof()) return c;
  Case one = c;
  const Tensor& d_out = c[Slot::d_out];
  const std::int64_t columns = d_out.shape()[3], row = argument(c, "row", d_out.elements() / columns);
  one[Slot::d_out] = mapped(d_out, [&](std::int64_t e, double old) { return e / columns == row ? old : 0.0; });
  return one;
}

// V >= 0 and dO >= 0: every D_i is, and dsigma is no more than 0.
Verdict sink_gradient_sign(Kernel& kernel, const Case& c) {
  Case positive = c;
  for (const Slot slot : {Slot::v, Slot::d_out})
    positive[slot] =
        mapped(c[slot], [](std::int64_t, double old) { return in_a_proof() ? any_positive_number() : std::fabs(old); });
  const BackwardRun run(kernel, of_one_row(positive));
  const Numbers found(run.of(Gradient::sink));
  const std::vector<double> zeros(static_cast<std::size_t>(found.elements()), 0.0), nothing(zeros.size(), -infinity);
  return about(Gradient::sink, within(found, Numbers(found.shape(), nothing), Numbers(found.shape(), zeros)));
}

// Sum_ij dS_ij + dsigma = 0, over the entries and heads that share the mask: what is added to all scores of a row, the
// sink's among them, is not seen.
Verdict sink_gradient_balance(Kernel& kernel, const Case& c) {
  const BackwardRun run(kernel, of_one_row(c));
  const Numbers of_mask(run.of(Gradient::mask)), of_sink(run.of(Gradient::sink));
  const Shape& mask = of_mask.shape();
  const std::int64_t page = mask[2] * mask[3], shares = mask[1];
  WorstBalance worst;
  for (std::int64_t h = 0; h < shares; ++h) {
    Balance balance;
    for (std::int64_t b = 0; b < mask[0]; ++b)
      for (std::int64_t e = 0; e < page; ++e) balance.add(of_mask, (b * shares + h) * page + e, 1);
    for (std::int64_t head = 0; head < of_sink.elements(); ++head)
      if (shares == 1 || head == h) balance.add(of_sink, head, 1);
    worst.judge(balance, [&] { return shares == 1 ? "all heads" : fmt::format("head {}", h); });
  }
  return worst.verdict();
}

/// What is left of the gradients where every |t| is 20 caps or more: 1 - y^2 < 4 e^(-40), and |dS_ij| is at most twice
/// the largest |dP_ij| of the row.
class Remainders {
 public:
  explicit Remainders(const Case& c)
      : of_q_(static_cast<std::size_t>(c.q().elements())), of_k_(static_cast<std::size_t>(c.k().elements())) {
    const Shape &q = c.q().shape(), &k = c.k().shape();
    for (std::int64_t b = 0; b < q[0]; ++b)
      for (std::int64_t h = 0; h < q[1]; ++h)
        for (std::int64_t i = 0; i < q[2]; ++i) add_row(c, q, k, b, h, i);
  }
  [[nodiscard]] const std::vector<long double>& of(Gradient gradient) const {
    return gradient == Gradient::q ? of_q_ : of_k_;
  }

 private:
  void add_row(const Case& c, const Shape& q, const Shape& k, std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t kv = kv_head_of(c, h), dv = c.v().shape()[3];
    long double most = 0;
    for (std::int64_t j = 0; j < k[2]; ++j) {
      long double size = 0;
      for (std::int64_t e = 0; e < dv; ++e)
        size += std::fabs(static_cast<long double>(c[Slot::d_out].at(b, h, i, e)) * c.v().at(b, kv, j, e));
      most = std::max(most, size / (1 - static_cast<long double>(c.dropout_p)));
    }
    const long double factor = 8 * std::exp(-40.0L) * (1 + 0x1p-20L) * std::fabs(c.scale) * most;
    for (std::int64_t j = 0; j < k[2]; ++j) {
      if (hidden(c, b, h, i, j)) continue;
      for (std::int64_t e = 0; e < q[3]; ++e) {
        long double& here = of_q_[static_cast<std::size_t>(q.flat(b, h, i, e))];
        here = std::max(here, factor * std::fabs(c.k().at(b, kv, j, e)));
        of_k_[static_cast<std::size_t>(k.flat(b, kv, j, e))] += factor * std::fabs(c.q().at(b, h, i, e));
      }
    }
  }
  std::vector<long double> of_q_, of_k_;
};

/// A cap so far below all products that are seen; none where one of them is 0, or no more than what it is rounded by.
std::optional<double> cap_far_below(const Case& c) {
  const Shape& q = c.q().shape();
  long double least = infinity;
  for (std::int64_t b = 0; b < q[0]; ++b)
    for (std::int64_t h = 0; h < q[1]; ++h)
      for (std::int64_t i = 0; i < q[2]; ++i)
        for (std::int64_t j = 0; j < keys_of(c); ++j) {
          if (hidden(c, b, h, i, j)) continue;
          long double product = 0, size = 0;
          for (std::int64_t e = 0; e < q[3]; ++e) {
            const long double term =
                static_cast<long double>(c.q().at(b, h, i, e)) * c.k().at(b, kv_head_of(c, h), j, e);
            product += term, size += std::fabs(term);
          }
          if (!(std::fabs(product) > 0x1p-40L * size)) return std::nullopt;
          least = std::min(least, std::fabs(product));
        }
  const auto cap = static_cast<double>(std::fabs(c.scale) * least / (21 << argument(c, "times", 4)));
  // Between what is small beside every other rounding and what a float holds.
  if (!(cap > 0x1p-40 && cap < 0x1p40)) return std::nullopt;
  return cap;
}

// Every |t| is 20 caps or more: dQ and dK are 0 but for what is left, and dV is that of any other cap's weights.
Verdict softcap_vanishes(Kernel& kernel, const Case& c) {
  const std::optional<double> cap = cap_far_below(c);
  if (!cap) return excused("no cap lies so far below the products");
  Case low = c;
  low.softcap = *cap;
  const BackwardRun run(kernel, low);
  const Remainders rest(low);
  return each_gradient(run, {Gradient::q, Gradient::k}, [&](Gradient of) {
    const Numbers found(run.of(of));
    const std::vector<double> zeros(static_cast<std::size_t>(found.elements()), 0.0);
    return gradients_agree(of, {found, Numbers(found.shape(), zeros).loosened(rest.of(of))});
  });
}

/// The mask with every entry and head written out; zeros where there is none.
Case with_masks_apart(const Case& c) {
  Case apart = c;
  const Tensor& mask = c.mask();
  const DType dtype = mask.present() && mask.dtype() != DType::boolean ? mask.dtype() : c.dtype();
  Tensor& to = apart[Slot::mask] = Tensor(dtype, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  std::int64_t e = 0;
  for (std::int64_t b = 0; b < batch_of(c); ++b)
    for (std::int64_t h = 0; h < heads_of(c); ++h)
      for (std::int64_t i = 0; i < queries_of(c); ++i)
        for (std::int64_t j = 0; j < keys_of(c); ++j, ++e) {
          if (!mask.present()) continue;
          const double entry = mask.at(mask.shape()[0] == 1 ? 0 : b, mask.shape()[1] == 1 ? 0 : h, i, j);
          to.set(e, mask.dtype() != DType::boolean ? entry : entry != 0 ? 0 : -infinity);
        }
  return apart;
}

/// 1 - tanh(z)^2.
long double slope_at(long double z) {
  const long double cosh = std::cosh(z);
  return 1 / cosh / cosh;
}

// dq_i = scale Sum_j (1 - y_ij^2) dB_ij k_j, dB read from the gradient by a mask that no rows share.
Verdict softcap_gradient_factor(Kernel& kernel, const Case& c) {
  const Case apart = with_masks_apart(c);
  const BackwardRun run(kernel, apart);
  const Numbers of_mask(run.of(Gradient::mask)), of_q(run.of(Gradient::q));
  const Shape& q = c.q().shape();
  const std::int64_t N = keys_of(c);
  WorstBalance worst;
  std::vector<double> slope(static_cast<std::size_t>(N)), of_slope(slope);
  for (std::int64_t row = 0; row < q[0] * q[1] * q[2]; ++row) {
    const std::int64_t b = row / q[2] / q[1], h = row / q[2] % q[1], i = row % q[2], kv = kv_head_of(c, h);
    for (std::int64_t j = 0; j < N; ++j) {
      const auto at = static_cast<std::size_t>(j);
      long double product = 0, size = 0;
      for (std::int64_t e = 0; e < q[3]; ++e) {
        const long double term = static_cast<long double>(c.q().at(b, h, i, e)) * c.k().at(b, kv, j, e);
        product += term, size += std::fabs(term);
      }
      // Of the exact product, which is within so much of this one.
      const long double z = std::fabs(static_cast<long double>(c.scale) * product / c.softcap),
                        apart_by = static_cast<long double>(c.scale) * size / c.softcap *
                                   static_cast<long double>(q[3] + 4) * 0x1p-63L;
      slope[at] = static_cast<double>(slope_at(z));
      of_slope[at] = static_cast<double>(slope_at(std::max(0.0L, z - apart_by)) - slope_at(z + apart_by)) +
                     0x1p-49 * slope[at] + 0x1p-1074;
    }
    for (std::int64_t e = 0; e < q[3]; ++e) {
      Balance balance;
      balance.add(of_q, row * q[3] + e, 1);
      for (std::int64_t j = 0; j < N; ++j) {
        if (hidden(apart, b, h, i, j)) continue;
        const auto at = static_cast<std::size_t>(j);
        const double factor = c.scale * slope[at] * c.k().at(b, kv, j, e);
        balance.add(of_mask, row * N + j, factor, -1);
        // The factor is rounded, a subnormal one by as much as 2^-1074.
        const long double of_factor =
            std::fabs(static_cast<long double>(c.scale) * c.k().at(b, kv, j, e)) * of_slope[at];
        const long double more =
            std::fabs(static_cast<long double>(of_mask.value(row * N + j))) * (of_factor + 0x1p-1073L) + 0x1p-1070L;
        balance.allow(static_cast<double>(std::min<long double>(more, std::numeric_limits<double>::max())));
      }
      worst.judge(balance, [&] { return fmt::format("row {} of all of dq's, column {}", row, e); });
    }
  }
  return worst.verdict();
}

/// keep(old) for key s of every row.
Case with_kept_key(Case c, std::int64_t s, double keep) {
  const std::int64_t N = keys_of(c);
  c[Slot::keep] = mapped(c[Slot::keep], [&](std::int64_t e, double old) { return e % N == s ? keep : old; });
  return c;
}

// A key that every row drops: dv_s = 0, and the other gradients, dk_s among them, are those of v_s = 0.
Verdict gradient_through_dropped(Kernel& kernel, const Case& c) {
  const std::int64_t N = keys_of(c), s = argument(c, "s", N);
  Case zero = with_kept_key(c, s, 1);
  zero[Slot::v] = with_rows_as(c.v(), [&](std::int64_t j) { return j == s; }, [](double) { return 0.0; });
  const BackwardRun dropped(kernel, with_kept_key(c, s, 0)), without(kernel, zero);
  Zeros zeros;
  if (dropped.has(Gradient::v)) zeros.look_at(dropped.of(Gradient::v).queries({s}), "dv");
  Verdict same = each_gradient(dropped, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of != Gradient::v) return gradients_agree(of, {dropped.of(of), without.of(of)}, Match::bound);
    const Indices others = all_but(N, s);
    return gradients_agree(of, {dropped.of(of).queries(others), without.of(of).queries(others)}, Match::bound);
  });
  return dropped.has(Gradient::v) ? worse_of({std::move(same), zeros.verdict()}) : same;
}

// Nothing is kept: every gradient is 0.
Verdict gradient_of_nothing_kept(Kernel& kernel, const Case& c) {
  Case nothing = c;
  nothing[Slot::keep] = mapped(c[Slot::keep], [](std::int64_t, double) { return 0.0; });
  const BackwardRun run(kernel, nothing);
  Zeros zeros;
  for (const Gradient of : every_gradient)
    if (run.has(of)) zeros.look_at(run.of(of), name_of(of));
  return zeros.verdict();
}

/// Slopes that are powers of two of either sign, and a mask that hides alone: what a mask holds in their place. In a
/// proof the slopes that there are.
Case with_plain_slopes(const Case& c) {
  Case plain = c;
  if (c.mask().present() && c.mask().dtype() != DType::boolean)
    plain[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return old == -infinity ? old : 0; });
  if (in_a_proof()) return plain;
  plain[Slot::alibi_slopes] = mapped(c[Slot::alibi_slopes], [&](std::int64_t e, double old) {
    const auto power = static_cast<int>(argument(c, fmt::format("power{}", e), 6)) - 5;
    return std::copysign(std::ldexp(1.0, power), old);
  });
  return plain;
}

// Slopes are the mask -m|p - j|.
Verdict alibi_equals_mask(Kernel& kernel, const Case& c) {
  const Case sloped = with_plain_slopes(c);
  Case masked = sloped;
  drop_variant(masked, alibi_variant.name);
  Tensor mask(c.dtype(), {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    const Tensor& old = sloped.mask();
    const double before = old.present() ? mask_entry(old, b, h, i, j) : 0;
    if (old.present() && (old.dtype() == DType::boolean ? before == 0 : before == -infinity)) {
      mask.set(e, -infinity);
      continue;
    }
    const auto distance = static_cast<std::int64_t>(distance_of(sloped, b, i, j));
    const double entry = product_of(-slope_of(sloped, b, h), count_of(distance));
    mask.set(e, entry);
    if (!in_a_proof() && mask[e] != entry) return excused("the mask's format does not hold what slopes add");
  }
  masked[Slot::mask] = std::move(mask);
  masked.mask_convention = convention_of(sloped);
  set_layouts(masked, Layouts());
  const BackwardRun run(kernel, sloped), with_mask(kernel, masked);
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v},
                       [&](Gradient of) { return gradients_agree(of, {with_mask.of(of), run.of(of)}, Match::bound); });
}

// The gradients of each sequence are those that it has alone.
Verdict sequences_separate(Kernel& kernel, const Case& c) {
  const std::int64_t s = some_sequence(c, "s");
  const Sequence own = sequence_of(c, s);
  if (own.queries == 0 || own.keys == 0) return excused("no sequence has a query and a key");
  const BackwardRun together(kernel, c), by_itself(kernel, alone(c, s));
  const bool padded = has_padding(c) && !has_variant(c, packed_variant.name);
  const Match match = padded ? gradient_bits_if(kernel, {Claim::batch_invariant, Claim::padding_invariant})
                             : gradient_bits_if(kernel, {Claim::batch_invariant});
  return each_gradient(together, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    const bool of_q = of == Gradient::q;
    Indices rows = all_of(of_q ? own.queries : own.keys);
    for (std::int64_t& row : rows) row += of_q ? own.first_query : own.first_key;
    return gradients_agree(of, {by_itself.of(of), together.of(of).batch({own.entry}).queries(rows)}, match);
  });
}

void a_row_and_a_key(Recipe& r) {
  r.queries = std::max(r.queries, 1), r.keys = std::max(r.keys, 1);
}
/// Loops over pairs of rows and keys are soon done.
void few(Recipe& r) {
  r.keys = std::min(r.keys, 300), r.queries = std::min(r.queries, 80);
}

Case beside_sinks_with_gradients(Draw& draw) {
  return draw.attention()
      .where(few)
      .where([](Recipe& r) { r.convention = MaskConvention::post_scale; })
      .with_later_arguments()
      .with_sinks()
      .with_gradients();
}

/// The same, with a mask that adds numbers.
Case beside_sinks_and_a_mask(Draw& draw) {
  return draw.attention()
      .masked()
      .where(few)
      .where([](Recipe& r) {
        r.convention = MaskConvention::post_scale;
        adding_numbers(r);
      })
      .with_later_arguments()
      .with_sinks()
      .with_gradients();
}
Case with_sinks_and_gradients(Draw& draw) {
  return draw.attention().with_later_arguments().with_sinks().with_gradients();
}

constexpr Stated about_them = defining(hypotheses::gradients, "it is about them"),
                 something = defining(hypotheses::a_query_and_a_key, "a row and a key are looked at"),
                 written_out = defining(hypotheses::infinity_for_a_mask, "the mask is written out");
constexpr std::array in_windows{about_them, defining(hypotheses::window, "the theorem is about windows"), something};
constexpr std::array beside_sinks{
    about_them, defining(hypotheses::sink, "the theorem is about sinks"),
    defining(hypotheses::added_after_scale, "the mask adds the sink to the score of the appended key"),
    defining(hypotheses::infinite_dtype, "the mask is written out, and has to hide what positions hide")};
constexpr std::array of_sinks_alone{about_them, defining(hypotheses::sink, "it is about the gradient by it")};
constexpr std::array of_sinks_and_a_mask{
    about_them, defining(hypotheses::sink, "the theorem is about sinks"),
    defining(hypotheses::additive_mask, "dS is read from the gradient by it"),
    defining(hypotheses::added_after_scale, "a mask that is scaled has a gradient that is")};
constexpr std::array under_a_cap_and_a_mask{about_them, defining(hypotheses::softcap, "the theorem is about caps"),
                                            defining(hypotheses::a_query_and_a_key, "a row and a key are looked at"),
                                            defining(hypotheses::infinity_for_a_mask, "the mask is written out")};
constexpr std::array under_a_cap{about_them, defining(hypotheses::softcap, "the theorem is about caps"), something};
constexpr std::array dropped_weights{about_them, defining(hypotheses::dropout, "the theorem is about dropped weights"),
                                     something};
constexpr std::array with_slopes{about_them, defining(hypotheses::alibi, "the theorem is about slopes"), written_out};
constexpr std::array of_sequences{about_them, defining(hypotheses::sequences, "there is nothing to speak of then")};

constexpr Property about_variant(Property row, std::string_view variant, std::string_view needs,
                                 std::string_view under) {
  row.variant = variant, row.needs = needs;
  return about_gradients(row, under);
}

const Property of_windows[] = {about_variant(
    {.name = "window.gradient-locality",
     .statement = "dk_j and dv_j do not depend on rows whose window does not have key j, nor dq_i on keys outside its "
                  "row's window",
     .floating_point = "dQ bitwise if ignores-dead-values, equal values (+0 equals −0) if only deterministic; dK, dV "
                       "equal values if deterministic and batch-invariant; else bound",
     .hypotheses = in_windows,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(a_row_and_a_key).with_later_arguments().windowed().with_gradients();
     },
     .check = window_locality},
    "window", "attention_backward, window", "chunk sink softcap dropout alibi")};

const Property of_sinks[] = {
    about_variant({.name = "sink.gradient-sign",
                   .statement = "V ≥ 0 and dO ≥ 0: dσ ≤ 0",
                   .floating_point = "within the bound of 0",
                   .hypotheses = of_sinks_alone,
                   .given = with_sinks_and_gradients,
                   .check = sink_gradient_sign},
                  "sink", "attention_backward, sink", without_sink),
    about_variant({.name = "sink.gradient-balance",
                   .statement = "Σ_ij dB_ij + dσ_h = 0, over the entries and heads that share the mask",
                   .floating_point = "bound around 0",
                   .hypotheses = of_sinks_and_a_mask,
                   .given = beside_sinks_and_a_mask,
                   .check = sink_gradient_balance},
                  "sink", "attention_backward, sink, additive masks", without_sink),
    about_variant({.name = "sink.gradient-equals-key",
                   .statement = "one appended key with score σ and v = 0: the same dQ, dK and dV",
                   .floating_point = "bound",
                   .hypotheses = beside_sinks,
                   .given = beside_sinks_with_gradients,
                   .check = sink_equals_key},
                  "sink", "attention_backward, sink, additive masks", "window chunk softcap"),
    about_variant({.name = "sink.dk-sum",
                   .statement = "Σ_j dk_j = scale·Σ_h Σ_i p^σ_i D_i q_i, p^σ the sink's share: what a key with score σ "
                                "and v = 0 has in its place, with the other sign",
                   .floating_point = "bound",
                   .hypotheses = beside_sinks,
                   .given = beside_sinks_with_gradients,
                   .check = sink_dk_sum},
                  "sink", "attention_backward, sink, additive masks", "window chunk")};

const Property of_caps[] = {
    about_variant({.name = "softcap.gradient-factor",
                   .statement = "dq_i = scale·Σ_j (1 − y_ij²) dB_ij k_j, y = tanh(t/c) and dB the gradient by a mask",
                   .floating_point = "bound",
                   .hypotheses = under_a_cap_and_a_mask,
                   .given = [](Draw& draw) -> Case {
                     return draw.attention()
                         .where(few)
                         .where(a_row_and_a_key)
                         .with_later_arguments()
                         .with_softcap()
                         .with_gradients();
                   },
                   .check = softcap_gradient_factor},
                  "softcap", "attention_backward, softcap, additive masks",
                  "window chunk lengths packed left_pad sink dropout alibi"),
    about_variant({.name = "softcap.gradient-vanishes",
                   .statement = "all |t| ≥ 20c: dQ and dK are 0 but for 4·scale·e^−40·Σ|dS||k|, and |q|",
                   .floating_point = "bound around 0",
                   .hypotheses = under_a_cap,
                   .given = [](Draw& draw) -> Case {
                     return draw.attention()
                         .where(few)
                         .where(a_row_and_a_key)
                         .with_later_arguments()
                         .with_softcap()
                         .with_gradients();
                   },
                   .check = softcap_vanishes},
                  "softcap", "attention_backward, softcap", "window chunk lengths packed left_pad sink dropout alibi")};

const Property of_dropout[] = {
    about_variant(
        {.name = "dropout.gradient-through-dropped",
         .statement = "κ_·j = 0: dv_j = 0, and dQ, dK and the other dv are those of v_j = 0: dk_j is "
                      "−scale·Σ_i α_ij D_i q_i",
         .floating_point = "bound; dv_j inside the domain: zero bitwise",
         .hypotheses = dropped_weights,
         .given = [](Draw& draw) -> Case {
           return draw.attention().where(a_row_and_a_key).with_later_arguments().with_dropout().with_gradients();
         },
         .check = gradient_through_dropped},
        "dropout", "attention_backward, dropout", "window chunk lengths packed left_pad sink softcap alibi"),
    about_variant(
        {.name = "dropout.gradient-of-nothing-kept",
         .statement = "κ = 0: every gradient is 0",
         .floating_point = "inside the domain: zero bitwise",
         .hypotheses = dropped_weights,
         .given = [](Draw& draw) -> Case {
           return draw.attention().where(a_row_and_a_key).with_later_arguments().with_dropout().with_gradients();
         },
         .check = gradient_of_nothing_kept},
        "dropout", "attention_backward, dropout", "window chunk lengths packed left_pad sink softcap alibi")};

const Property of_slopes[] = {about_variant(
    {.name = "alibi.gradient-equals-mask",
     .statement = "slopes m_h are the mask −m_h|p − j|: the same dQ, dK and dV",
     .floating_point = "bound",
     .hypotheses = with_slopes,
     .given = [](Draw& draw) -> Case {
       return draw.attention().where(few).with_later_arguments().with_slopes().with_gradients();
     },
     .check = alibi_equals_mask},
    "alibi", "attention_backward, alibi, additive masks", "window chunk lengths packed left_pad sink softcap dropout")};

const Property of_several_sequences[] = {about_variant(
    {.name = "varlen.gradients-separate",
     .statement = "sequences together, padded or packed: the gradients of each are those that it has alone",
     .floating_point = "bound; bitwise if batch-invariant, and padding-invariant where they are padded",
     .hypotheses = of_sequences,
     .given = [](Draw& draw) -> Case {
       return draw.attention()
           .where(sometimes_causal)
           .where(at_least_a_key)
           .with_later_arguments()
           .of_sequences()
           .with_gradients();
     },
     .check = sequences_separate},
    "lengths packed", "attention_backward, lengths or packed",
    "window chunk left_pad sink softcap dropout alibi d_lse")};

}  // namespace

std::span<const Property> window_gradient_properties() {
  return of_windows;
}
std::span<const Property> sink_gradient_properties() {
  return of_sinks;
}
std::span<const Property> softcap_gradient_properties() {
  return of_caps;
}
std::span<const Property> dropout_gradient_properties() {
  return of_dropout;
}
std::span<const Property> alibi_gradient_properties() {
  return of_slopes;
}
std::span<const Property> sequence_gradient_properties() {
  return of_several_sequences;
}

}  // namespace attest
