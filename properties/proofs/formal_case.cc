#include "properties/proofs/formal_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "core/kernel/formal.h"
#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/support/errors.h"
#include "properties/arrangement/arrange.h"
#include "properties/road/fit_form.h"

namespace attest {
namespace {

/// Doubles of 53 random bits, no two of them a power of two apart but with a probability of 2^-50.
class GenericNumbers {
 public:
  explicit GenericNumbers(std::uint64_t seed) : engine_(seed) {}
  double next() {
    // The lowest bit set, so that none has few significant ones.
    return std::ldexp(static_cast<double>((engine_() >> 11U) | (std::uint64_t{1} << 52U) | 1U), -52);
  }
  /// One that f32 holds, as slopes are in no other format: more bits than a number has that a theorem states, and of
  /// two of them the same with a probability of 2^-22.
  double next_of_24_bits() {
    return std::ldexp(static_cast<double>((engine_() >> 41U) | (std::uint64_t{1} << 23U) | 1U), -23);
  }

 private:
  std::mt19937_64 engine_;
};

std::string element_name(Slot slot, const Shape& shape, std::int64_t e) {
  std::string indices;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    indices = fmt::format("{}{}{}", e % shape[axis], indices.empty() ? "" : "_", indices);
    e /= shape[axis];
  }
  return fmt::format("{}{}", name_of(slot), indices);
}

/// So many indices of an axis, ascending and far apart where there are enough: of tokens that stand one after another
/// some of each sequence.
Indices spread(std::int64_t extent, std::int64_t wanted) {
  if (wanted >= extent) return cycled(extent, wanted);
  Indices indices;
  for (std::int64_t i = 0; i < wanted; ++i) indices.push_back(i * extent / wanted);
  return indices;
}

/// The case at the shape: rows, keys, columns and heads cropped or repeated.
Case at_shape(const Case& c, const ProofShape& shape) {
  const Extents extents = extents_of(c);
  Selection s = everything(c);
  s.batch = cycled(extents.batch, std::min<std::int64_t>(extents.batch, 2));
  const auto tokens = c[Slot::q_starts].present() ? spread : cycled;
  s.queries = tokens(extents.queries, shape.queries);
  s.keys = tokens(extents.keys, shape.keys);
  s.dk = cycled(extents.dk, shape.dk);
  s.dv = cycled(extents.dv, shape.dv);
  s.heads = cycled(extents.heads, shape.heads);
  // Groups stay groups.
  if (c.operation == Operation::attention)
    s.kv_heads = cycled(extents.kv_heads, extents.kv_heads < extents.heads ? 1 : shape.heads);
  keep_widths(c, s);
  return select(c, s);
}

constexpr std::array parameters{Slot::q,   Slot::k,      Slot::v,      Slot::w_q,   Slot::w_k,
                                Slot::w_v, Slot::w_o,    Slot::b_q,    Slot::b_k,   Slot::b_v,
                                Slot::b_o, Slot::bias_k, Slot::bias_v, Slot::d_out, Slot::d_lse};

/// Its numbers, other than -inf, as generic ones that are declared under their names.
void make_generic(Case& c, GenericNumbers& numbers, GenericInputs& inputs) {
  Case old = c;
  for (std::size_t at = 0; at < parameters.size(); ++at) {
    const Slot slot = parameters[at];
    if (!c[slot].present()) continue;
    const auto* const twin =
        std::find_if(parameters.begin(), parameters.begin() + static_cast<std::ptrdiff_t>(at),
                     [&](Slot earlier) { return old[earlier].present() && old[earlier] == old[slot]; });
    if (twin != parameters.begin() + static_cast<std::ptrdiff_t>(at)) {
      c[slot] = c[*twin];
      continue;
    }
    for (std::int64_t e = 0; e < c[slot].elements(); ++e) {
      c[slot].set(e, numbers.next());
      inputs.declare(c[slot][e], element_name(slot, c[slot].shape(), e));
    }
  }
  Tensor& mask = c[Slot::mask];
  if (mask.present() && mask.dtype() != DType::boolean) {
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      if (std::isinf(mask[e])) continue;
      mask.set(e, numbers.next());
      inputs.declare(mask[e], element_name(Slot::mask, mask.shape(), e));
    }
  }
  if (Tensor& sinks = c[Slot::sink]; sinks.present()) {
    // In a format that holds generic numbers.
    sinks = mapped(Tensor(DType::f64, sinks.shape()), [&, old = sinks](std::int64_t h, double) {
      if (std::isinf(old[h])) return old[h];
      const double sink = numbers.next();
      inputs.declare(sink, element_name(Slot::sink, old.shape(), h));
      return sink;
    });
  }
  if (Tensor& slopes = c[Slot::alibi_slopes]; slopes.present()) {
    for (std::int64_t e = 0; e < slopes.elements(); ++e) {
      slopes.set(e, numbers.next_of_24_bits());
      inputs.declare(slopes[e], element_name(Slot::alibi_slopes, slopes.shape(), e));
    }
  }
  for (const Slot slot : {Slot::q_descale, Slot::k_descale, Slot::v_descale}) {
    Tensor& factors = c[slot];
    for (std::int64_t e = 0; factors.present() && e < factors.elements(); ++e) {
      factors.set(e, numbers.next_of_24_bits());
      inputs.declare(factors[e], element_name(slot, factors.shape(), e), /*positive=*/true);
    }
  }
  c.scale = numbers.next();
  inputs.declare(c.scale, "scale", /*positive=*/true);
  if (c.softcap > 0) {
    c.softcap = numbers.next();
    inputs.declare(c.softcap, "softcap", /*positive=*/true);
  }
  if (c.dropout_p > 0) {
    // Any rate below 0, where 1 - p is known not to be 0: sides of a law are quotients of polynomials in p, and what is
    // the same at all of these is the same wherever it is defined. The double itself is a rate that there may be.
    const double size = numbers.next();
    inputs.declare(size, "dropout", /*positive=*/true);
    c.dropout_p = inputs.stand_for(inputs.at(-size));
  }
}

}  // namespace

std::string to_string(const ProofShape& s) {
  return fmt::format("{},{},{},{},{}", s.queries, s.keys, s.dk, s.dv, s.heads);
}

std::optional<Case> formal_case(const Property& property, const ProofShape& shape, std::int64_t k,
                                GenericInputs& inputs) {
  constexpr std::int64_t tries = 40;
  bool declared = false;
  for (std::int64_t attempt = 0; attempt < tries && !declared; ++attempt) {
    const Case drawn = generate(property, DType::f64, /*run_seed=*/1, k * tries + attempt);
    if (const Extents e = extents_of(drawn); e.queries == 0 || e.keys == 0) continue;
    Case c = at_shape(drawn, shape);
    c.provenance.strides.reset();
    if (const Extents e = extents_of(c); e.queries != shape.queries || e.keys != shape.keys) continue;
    fit_sequences(c, formal_kernel()->manifest());
    fit_caches(c, formal_kernel()->manifest());
    if (!property.misses(c).empty()) continue;
    GenericNumbers numbers(case_seed(1, property.name, DType::f64, k * tries + attempt));
    const Case before = c;
    make_generic(c, numbers, inputs);
    declared = true;
    // What a hypothesis fixes is put back, one tensor at a time.
    for (const Slot slot : {Slot::w_o, Slot::b_o, Slot::b_q, Slot::b_k, Slot::b_v, Slot::mask}) {
      if (property.misses(c).empty()) break;
      Case fixed = c;
      fixed[slot] = before[slot];
      if (property.misses(fixed).empty() || property.misses(fixed) != property.misses(c)) c = std::move(fixed);
    }
    if (!property.misses(c).empty()) {
      // A scale that the definition fixes.
      c.scale = before.scale;
      if (!property.misses(c).empty()) continue;
      if (!GenericInputs::is_constant(c.scale)) inputs.declare(c.scale, "root", /*positive=*/true);
    }
    // Any factor is one of numbers that no format holds.
    validate(has_variant(c, descale_variant.name) ? before : c);
    return c;
  }
  return std::nullopt;
}

}  // namespace attest
