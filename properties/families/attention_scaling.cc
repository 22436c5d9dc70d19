// attention: changes of basis between queries and keys, and of the size of values. Powers of two change no rounding, so
// that both are laws about bits for a kernel that repeats its own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "core/scalars/wide.h"
#include "core/support/infinity.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/shifted.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/generators/stream.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

/// Smallest and largest absolute values of a tensor but 0.
struct Sizes {
  double least = infinity, most = 0;
};
Sizes sizes_of(const Tensor& t) {
  Sizes s;
  for (std::int64_t e = 0; e < t.elements(); ++e) {
    const double x = std::fabs(t[e]);
    if (x == 0) continue;
    s.least = std::min(s.least, x), s.most = std::max(s.most, x);
  }
  return s;
}

Profile profile_of_case(const Kernel& kernel, const Case& c) {
  return profile_of(kernel.manifest().arithmetic_for(c), {.keys = keys_of(c),
                                                          .dk = c.q().shape()[3],
                                                          .scale = c.scale,
                                                          .bias = c.mask().present(),
                                                          .convention = c.mask_convention,
                                                          .mask = c.dtype()});
}

/// Do q·2^a and k·2^-a give a kernel the same numbers after the products, bit for bit? error-bounds.md, C14: every
/// number that is kept of them, q·scale too, is far from the ends of the formats on both sides.
bool same_products(const Profile& p, const Case& c, int a) {
  const Sizes q = sizes_of(c.q()), k = sizes_of(c.k());
  const double factor = std::ldexp(1.0, std::abs(a)), tau = std::min(1.0, c.scale);
  const Format &of_q = format_of(c.dtype()), &of_k = format_of(c.k().dtype());
  const double least = std::max({format_of(p.score_format).min_normal, of_q.min_normal, of_k.min_normal}) * 0x1p2;
  const double most = std::min({p.H_s, of_q.largest, of_k.largest}) * 0x1p-2 /
                      (static_cast<double>(c.q().shape()[3]) * std::max(1.0, 2 * c.scale));
  return q.least / factor * tau >= least && k.least / factor >= least && q.least * k.least * tau >= least &&
         q.most * factor <= most && k.most * factor <= most && q.most * k.most <= most;
}

/// Whether a power of two times a number is a number: not in a scalar of another base.
bool scales_exactly(const Result& result) {
  const auto* const wide = result.run().out().as<Enclosures>();
  return wide == nullptr || wide->rounding().exact_inputs;
}

// +: Q -> QG, K -> KG^-T changes nothing: G = ±2^a I, or a permutation of the columns with such a factor each.
Verdict query_key_exchange(Kernel& kernel, const Case& c) {
  const std::int64_t dk = c.q().shape()[3];
  const bool one_factor = argument(c, "scalar", 2) == 1;
  const Indices from = one_factor ? all_of(dk) : permutation_argument(c, "columns", dk);
  Stream stream(seed_argument(c, "G"));
  std::vector<double> g;
  for (std::int64_t column = 0; column < dk; ++column) {
    const double power = std::ldexp(1.0, static_cast<int>(stream.between(-3, 3)));
    const double factor = stream.either(power);
    g.push_back(one_factor && column > 0 ? g[0] : factor);
  }
  Selection s = everything(c);
  s.dk = from;
  const auto at = [&](std::int64_t e) { return g[static_cast<std::size_t>(e % dk)]; };
  Case other = select(c, s);
  const bool exact =
      multiply(other[Slot::q], at) && multiply(other[Slot::k], [&](std::int64_t e) { return 1 / at(e); });
  if (!exact) {
    // At the ends of the format signs are what is left of G.
    other = select(c, s);
    for (double& factor : g) factor = std::copysign(1.0, factor);
    for (const Slot slot : {Slot::q, Slot::k})
      if (!multiply(other[slot], at)) throw std::logic_error("a sign is always exact");
  }
  const bool same =
      one_factor && (std::fabs(g[0]) == 1 || same_products(profile_of_case(kernel, c), c, std::ilogb(g[0])));
  const Match match = same ? bits_if(kernel, {Claim::deterministic}) : Match::bound;
  const Result left = run(kernel, other), right = run(kernel, c);
  return agree({left, right}, scales_exactly(left) ? match : Match::bound, /*about_bits=*/same);
}

/// Largest difference between two scores of a row that a kernel may form, the sink beside them, over all rows; against
/// 0 too where it takes no maximum, and then with what a slope's column form adds to all of them.
double spread_of_scores(const Profile& p, const Case& c) {
  double spread = 0;
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    for (std::int64_t h = 0; h < heads_of(c); ++h) {
      for (std::int64_t i = 0; i < queries_of(c); ++i) {
        double low = infinity, high = -infinity;
        const Tensor& sinks = c[Slot::sink];
        if (sinks.present() && std::isfinite(sinks[h])) low = high = sinks[h];
        for (std::int64_t j = 0; j < keys_of(c); ++j) {
          if (hidden(c, b, h, i, j)) continue;
          const Score score = score_of(c, b, h, i, j);
          low = std::min(low, score.value - 0x1p-4 * score.size),
          high = std::max(high, score.value + 0x1p-4 * score.size);
        }
        if (!(low <= high)) continue;
        spread = std::max(spread, high - low);
        if (!p.fixed_shift) continue;
        const double shift = std::fabs(slope_of(c, b, h)) * static_cast<double>(std::max(queries_of(c), keys_of(c)));
        spread = std::max({spread, std::fabs(low) + shift, std::fabs(high) + shift});
      }
    }
  }
  return spread;
}

/// Are all products p_j v_jk, their sums and the rescaled sums either 0 or normal, on both sides? Weights are at least
/// e^-spread / N, a sum that cancels is still a multiple of the last bit of its smallest term (2^-53 of it at the
/// least), and a later maximum rescales it by e^-spread at the least. What dropout multiplies may be the values, in
/// their own format.
bool same_sums(const Profile& p, const Case& c, double factor) {
  const Sizes v = sizes_of(c.v());
  if (v.most == 0) return true;
  const double gain = 1 / (1 - c.dropout_p);
  if (gain > 1 && v.least * std::min(1.0, factor) < format_of(c.v().dtype()).min_normal) return false;
  const double N = static_cast<double>(keys_of(c)), spread = spread_of_scores(p, c) + p.lazy + 1;
  const double least = v.least * std::min(1.0, factor) * 0x1p-54 * std::exp(-2 * spread) / N;
  const double most = gain * v.most * std::max(1.0, factor) * N * std::exp(p.fixed_shift ? spread : p.lazy + 1);
  return least >= std::max(p.least_weight, p.lam_a) &&
         most <= 0x1p-2 * std::min({p.H_a, p.H_o, format_of(c.v().dtype()).largest});
}

/// Is left = factor * right, element e, exactly? NaN is not.
bool is_scaled(const Result& left, const Result& right, std::int64_t e, double factor) {
  const Values &found = left.run().out(), &other = right.run().out();
  if (found.is<Tensor>()) return found[left.origin(e)] == factor * other[right.origin(e)];
  const WideInterval x = found.enclosure(left.origin(e)), y = other.enclosure(right.origin(e));
  const Wide low = factor < 0 ? y.upper : y.lower, high = factor < 0 ? y.lower : y.upper;
  return x.lower == low * factor && x.upper == high * factor;
}

/// May an element of the output have lost bits to underflow? One below the normal numbers, or one that was before it
/// was rounded to the least of these; of a wide scalar one with an
/// end within 2^64 of MPFR's smallest number (e^-(2^30) is below it).
bool may_have_lost_bits(const Result& result, std::int64_t e, double normal) {
  const auto* const wide = result.run().out().as<Enclosures>();
  if (wide == nullptr) return std::fabs(result.run().out()[result.origin(e)]) <= normal;
  const WideInterval& x = (*wide)[result.origin(e)];
  const auto lost = [](const Wide& end) {
    return mpfr_regular_p(end.data()) != 0 && mpfr_get_exp(end.data()) < mpfr_get_emin() + 64;
  };
  return lost(x.lower) || lost(x.upper);
}

/// An element of the output as a message has it.
std::string printed_element(const Result& result, std::int64_t e) {
  const auto* const wide = result.run().out().as<Enclosures>();
  if (wide == nullptr) return fmt::format("{:.17g}", result.run().out()[result.origin(e)]);
  const WideInterval& x = (*wide)[result.origin(e)];
  return fmt::format("[{}, {}]", x.lower.str(17), x.upper.str(17));
}

bool is_nan(const Result& result, std::int64_t e) {
  const auto* const wide = result.run().out().as<Enclosures>();
  return wide == nullptr ? std::isnan(result.run().out()[result.origin(e)]) : is_nan((*wide)[result.origin(e)]);
}

// +: V -> cV => O -> cO, c = ±2^k.
Verdict value_scaling(Kernel& kernel, const Case& c) {
  const int k = static_cast<int>(argument(c, "k", 9)) - 4;
  double factor = std::ldexp(k == 0 || argument(c, "sign", 2) == 1 ? -1.0 : 1.0, k);
  Case scaled = c;
  if (in_a_proof()) {
    factor = any_number(factor);
    scaled[Slot::v] = mapped(c.v(), [&](std::int64_t, double x) { return product_of(x, factor); });
    return agree({Numbers(run(kernel, scaled)), Numbers(run(kernel, c)).scaled(factor)});
  }
  if (!multiply(scaled[Slot::v], [&](std::int64_t) { return factor; })) {
    factor = -1;
    scaled[Slot::v] = mapped(c.v(), [](std::int64_t, double x) { return -x; });
  }
  const Result left = run(kernel, scaled), right = run(kernel, c);
  const bool claims = kernel.manifest().claims_to(Claim::deterministic);
  const bool same =
      factor == -1 || (left.run().out().is<Enclosures>() ? scales_exactly(left)
                                                         : same_sums(profile_of_case(kernel, c), c, std::fabs(factor)));
  const double normal = format_of(c.dtype()).min_normal;
  std::int64_t agreed = 0, compared = 0;
  bool all = true;
  for (std::int64_t e = 0; e < left.elements(); ++e) {
    const bool equal = is_scaled(left, right, e, factor);
    all = all && equal;
    if (!same || is_nan(left, e) || is_nan(right, e)) continue;
    // What one side has lost the other may keep.
    if (factor != -1 && (may_have_lost_bits(left, e, normal) || may_have_lost_bits(right, e, normal))) continue;
    ++compared, agreed += equal;
    if (equal || !claims) continue;
    Verdict verdict = violated(
        Violation::bits, fmt::format("not equal: element {} of the scaled values is {}, and {} times {} was expected "
                                     "of a deterministic kernel",
                                     e, printed_element(left, e), factor, printed_element(right, e)));
    verdict.element = e;
    return verdict;
  }
  Verdict verdict;
  if (!all || left.elements() == 0) verdict = agree({Numbers(left), Numbers(right).scaled(factor)});
  if (!claims) verdict.bits_agreed = agreed, verdict.bits_compared = compared;
  return verdict;
}

const Property family[] = {
    {.name = "attention.query-key-exchange",
     .statement = "Q→QG, K→KG^{-T} changes nothing",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound; bitwise for G = ±2^a I if deterministic, barring under/overflow",
     .given = [](Draw& draw) -> Case { return draw.attention(); },
     .check = query_key_exchange},
    {.name = "attention.value-scaling",
     .statement = "V→cV ⇒ O→cO",
     .source = "+",
     .needs = "attention",
     .floating_point =
         "bound; bitwise for c = ±2^k if deterministic, barring under/overflow (compare values: +0 equals "
         "−0)",
     .under = "window chunk lengths packed left_pad sink softcap dropout alibi",
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments(); },
     .check = value_scaling},
};

}  // namespace

std::span<const Property> attention_scaling_properties() {
  return family;
}

}  // namespace attest
