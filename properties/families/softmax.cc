// softmax, read from an attention kernel through K = I and V = I: A = scale * q, whatever the scale, which the bound
// knows, and the output is softmax(A). K and V are made from q by every check, so that a case stays one of softmax
// whatever becomes of its shape.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/kernel/limits.h"
#include "core/scalars/wide.h"
#include "core/support/printed.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"
#include "properties/families/core_laws.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"
#include "properties/language/weights.h"

namespace attest {
namespace {

std::int64_t columns_of(const Case& c) {
  return c.q().shape()[3];
}

/// The same softmax problem with its columns at the indices.
Case with_columns(const Case& c, const Indices& columns) {
  Selection s = everything(c);
  s.dk = columns;
  return select(c, s);
}

/// Where the manifest does not allow as many keys as columns, all of them stand there several times, which divides
/// every weight by as much and adds it up again.
Result softmax_of(Kernel& kernel, Case c) {
  const Manifest& m = kernel.manifest();
  const std::int64_t n = columns_of(c), M = queries_of(c);
  const std::int64_t heads = heads_of(c), kv_heads = c.k().shape()[1];
  Case asked = with_identity_keys(std::move(c));
  if (!allows_heads(m, heads, heads)) {
    Selection groups = everything(asked);
    groups.kv_heads = all_of(kv_heads);
    asked = select(asked, groups);
  }
  const std::int64_t least = m.same_lengths ? std::max(n, M) : n;
  const AllowedExtents several{.multiple = std::lcm(n, m.keys_multiple), .least = m.min_keys, .most = m.max_keys};
  const std::int64_t keys = several.from(least).value_or(n);
  if (keys != n) asked = with_keys(asked, cycled(n, keys));
  return run_rows(kernel, asked, all_of(M));
}

/// Columns of an exact matrix of `value`, in the shape of `like`.
Numbers filled(const Shape& like, double value) {
  return {like, std::vector<double>(static_cast<std::size_t>(like.elements()), value)};
}

// 000: sum_j alpha_ij = 1.
Verdict rows_sum_to_one(Kernel& kernel, const Case& c) {
  const Result alpha = softmax_of(kernel, c);
  const std::int64_t n = columns_of(c);
  const Numbers sums = Numbers(alpha).times(std::vector<double>(static_cast<std::size_t>(n), 1.0), n, 1);
  return agree({sums, filled(sums.shape(), 1.0)});
}

/// scale (A_ij - max_l A_il), a double; e is the element of A.
double score_below_its_row(const Case& c, std::int64_t e) {
  const std::int64_t n = columns_of(c), row = e / n * n;
  double most = c.q()[row];
  for (std::int64_t j = 1; j < n; ++j) most = std::max(most, c.q()[row + j]);
  return c.scale * c.q()[e] - c.scale * most;
}

/// A score less far below the largest of its row has a weight that the scalar holds: a little more than the logarithm
/// of its least number; of intervals, whose ends are MPFR's and Arb's, of 2^-2^30.
double far_below(const Enclosures& out) {
  return out.unit() == 0 ? -7e8 : 0.65 * out.rounding().least;
}

// 003: alpha_ij >= 0, never NaN for finite scores. That it is above 0 in exact arithmetic shows only where the scalar's
// exponents reach as far as e^A does: in the wide ones, and of an interval by its upper end.
Verdict nonnegative(Kernel& kernel, const Case& c) {
  const Result alpha = softmax_of(kernel, c);
  const Values& out = alpha.run().out();
  const auto* const wide = out.as<Enclosures>();
  if (out.is<Expressions>()) return positive_formulas(Numbers(alpha));
  bool excused = false, judged = false;
  for (std::int64_t e = 0; e < alpha.elements(); ++e) {
    const std::int64_t at = alpha.origin(e);
    const auto found = [&]() -> double {
      if (wide == nullptr) return out[at];
      const WideInterval x = out.enclosure(at);
      return is_nan(x) ? std::numeric_limits<double>::quiet_NaN() : x.upper.sign();
    }();
    const bool positive = wide != nullptr && score_below_its_row(c, at) > far_below(*wide);
    if (positive ? found > 0 : found >= 0) {
      judged = true;
      continue;
    }
    if (std::isnan(found) && !alpha.run().bound(at).finite_required) {
      excused = true;
      continue;
    }
    const AllowedError bound = alpha.run().bound(at);
    if (std::isnan(found) && (bound.excuse == Excuse::overflow || bound.excuse == Excuse::not_finite)) {
      excused = true;
      continue;
    }
    Verdict verdict = violated(std::isnan(found) ? Violation::not_finite : Violation::bound,
                               fmt::format("weight {} is {}; it must be {} 0, and a number", e, printed(found),
                                           positive ? "above" : "at least"));
    verdict.element = e;
    return verdict;
  }
  if (excused && !judged) return {.outcome = Outcome::excused, .reason = std::string(name_of(Excuse::overflow))};
  return {};
}

// 000: softmax(pi(x)) = pi(softmax(x)): each row of A a vector x with a permutation of its own.
Verdict permutation_equivariance(Kernel& kernel, const Case& c) {
  const std::int64_t n = columns_of(c), rows = c.q().elements() / n;
  Indices from;
  for (std::int64_t row = 0; row < rows; ++row)
    for (const std::int64_t j : permutation_argument(c, fmt::format("pi{}", row), n)) from.push_back(row * n + j);
  Case permuted = c;
  permuted[Slot::q] = mapped(c.q(), [&](std::int64_t e, double) { return c.q()[from[static_cast<std::size_t>(e)]]; });
  const Result left = softmax_of(kernel, permuted), right = softmax_of(kernel, c);
  return agree({left, right.at(right.shape(), from)}, Match::bound);
}

// 000: softmax(A C_pi) = softmax(A) C_pi.
Verdict column_permutation(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", columns_of(c));
  return agree({softmax_of(kernel, with_columns(c, pi)), softmax_of(kernel, c).columns(pi)}, Match::bound);
}

// 000, 003: row i of softmax(A) depends on row i of A only: the others are exchanged for others, or for NaN.
Verdict row_locality(Kernel& kernel, const Case& c) {
  const std::int64_t M = queries_of(c), n = columns_of(c);
  if (M == 0) return {};
  const std::int64_t i = argument(c, "i", M);
  const bool poisoned = argument(c, "poison", 2) == 1;
  Case other = c;
  other[Slot::q] = mapped(c.q(), [&](std::int64_t e, double old) {
    if (e / n % M == i) return old;
    return poisoned ? std::numeric_limits<double>::quiet_NaN() : -c.q()[c.q().elements() - 1 - e];
  });
  if (poisoned) other.provenance.non_finite = "yes";
  return agree({softmax_of(kernel, other).queries({i}), softmax_of(kernel, c).queries({i})},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

// 000: softmax(R_pi A) = R_pi softmax(A).
Verdict row_permutation(Kernel& kernel, const Case& c) {
  const Indices pi = permutation_argument(c, "pi", queries_of(c));
  return agree({softmax_of(kernel, with_queries(c, pi)), softmax_of(kernel, c).queries(pi)},
               bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
}

// 002: softmax down the columns of Aᵀ, one column x after another, is softmax(A)ᵀ. A kernel knows rows only, so that
// each column is a problem of its own, with one query; transposing moves no number of it. The core has both softmaxes.
Verdict columnwise_is_transpose(Kernel& kernel, const Case& c) {
  // Each is filled up to as many queries as the manifest asks for: of many such problems four rows a head will do.
  const bool filled_up = fewest(kernel, {1, 1}).queries > 1;
  const Case some = filled_up ? with_queries(c, all_of(std::min<std::int64_t>(queries_of(c), 4))) : c;
  const Shape q = some.q().shape();
  Case columns = some;
  columns[Slot::q] = some.q().reshaped({q[0] * q[1] * q[2], 1, 1, q[3]});
  if (columns.q().elements() == 0) return {};
  const Verdict rows = agree({softmax_of(kernel, columns).reshaped(q), softmax_of(kernel, some)},
                             bits_if(kernel, {Claim::batch_invariant}), /*about_bits=*/true);
  const CoreFunctions* const core = core_functions(kernel.id());
  return core == nullptr ? rows : worse_of({rows, columnwise_softmax(*core, c)});
}

/// A number near c of which x + c and x are both representable: c, or else 0 where rounding x + c moved x. What x is
/// then: x + c rounded, and c taken away again.
struct Shifted {
  Tensor before, after;
};
Shifted shifted_rows(const Case& c) {
  const std::int64_t n = columns_of(c);
  Shifted s{c.q(), c.q()};
  for (std::int64_t row = 0; row < c.q().elements() / n; ++row) {
    if (in_a_proof()) {
      const double shift = any_number(1);
      for (std::int64_t e = row * n; e < (row + 1) * n; ++e) s.after.set(e, sum_of(c.q()[e], shift));
      continue;
    }
    double largest = 0;
    for (std::int64_t j = 0; j < n; ++j) largest = std::max(largest, std::fabs(c.q()[row * n + j]));
    // A power of two from a 16th of the largest entry to 16 times it, of either sign.
    const std::int64_t power = argument(c, fmt::format("power{}", row), 9) - 4;
    const double shift = std::ldexp(argument(c, fmt::format("sign{}", row), 2) == 0 ? 1.0 : -1.0,
                                    (largest > 0 ? std::ilogb(largest) : 0) + static_cast<int>(power));
    bool exact = true;
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t e = row * n + j;
      s.after.set(e, c.q()[e] + shift);
      const double rest = s.after[e] - shift;
      s.before.set(e, rest);
      exact = exact && s.before[e] == rest && s.after[e] == rest + shift && std::isfinite(s.after[e]);
    }
    for (std::int64_t e = row * n; e < (row + 1) * n && !exact; ++e) {
      s.before.set(e, c.q()[e]);
      s.after.set(e, c.q()[e]);
    }
  }
  return s;
}

// +: softmax(x + c1) = softmax(x). Rows are first rounded to where both sides are representable.
Verdict shift_invariance(Kernel& kernel, const Case& c) {
  Shifted rows = shifted_rows(c);
  Case before = c, after = c;
  before[Slot::q] = std::move(rows.before);
  after[Slot::q] = std::move(rows.after);
  return agree({softmax_of(kernel, after), softmax_of(kernel, before)}, Match::bound);
}

/// The columns of a row from its smallest entry on; equal ones in their order.
Indices ascending_order(const Case& c, std::int64_t row, std::int64_t n) {
  Indices order = all_of(n);
  std::ranges::sort(order, {}, [&](std::int64_t j) { return std::pair(c.q()[row * n + j], j); });
  return order;
}

/// In a proof: rows that grow in the order of `c`'s, by any number that is not negative: by ln(1 + t), t >= 0, since
/// exp grows.
Case growing_rows(const Case& c, std::int64_t n) {
  Case growing = c;
  growing.scale = 1;
  for (std::int64_t row = 0; row < c.q().elements() / n; ++row) {
    const Indices order = ascending_order(c, row, n);
    for (std::size_t j = 1; j < order.size(); ++j)
      growing[Slot::q].set(row * n + order[j],
                           sum_of(growing.q()[row * n + order[j - 1]], logarithm_of(sum_of(1, any_positive_number()))));
  }
  return growing;
}

// +: x_j >= x_l => alpha_j >= alpha_l: each weight at least the one of the next smaller entry, to within both bounds.
Verdict monotone(Kernel& kernel, const Case& c) {
  const std::int64_t n = columns_of(c);
  const Result alpha = softmax_of(kernel, in_a_proof() ? growing_rows(c, n) : c);
  Indices larger, smaller;
  for (std::int64_t row = 0; row < c.q().elements() / n; ++row) {
    const Indices order = ascending_order(c, row, n);
    for (std::size_t j = 1; j < order.size(); ++j) {
      smaller.push_back(row * n + order[j - 1]);
      larger.push_back(row * n + order[j]);
    }
  }
  const Numbers weights(alpha);
  const Shape pairs{static_cast<std::int64_t>(larger.size())};
  // The difference of the two, so that wide numbers lose nothing.
  const Numbers rise = weights.at(pairs, larger).plus(weights.at(pairs, smaller).scaled(-1));
  return within(rise, filled(pairs, 0), filled(pairs, std::numeric_limits<double>::infinity()));
}

/// Scores of every kind as a matrix A: those of an attention case, M x N, with the scale taken out again.
Case scores(Draw& draw) {
  Case c = draw.attention().unmasked().at_least(0, 1).where([](Recipe& r) {
    r.kv_heads = r.heads;
    r.keys = std::min(r.keys, 257);
  });
  const Shape q = c.q().shape();
  const std::int64_t N = keys_of(c), dk = q[3];
  if (is_inverse_root(c.scale, dk)) c.scale = inverse_root(N);
  const Format& format = format_of(c.dtype());
  Case source = c;
  source.scale = 1;
  Tensor a(c.dtype(), {q[0], q[1], q[2], N});
  for (std::int64_t row = 0; row < q[0] * q[1] * q[2]; ++row) {
    for (std::int64_t j = 0; j < N; ++j) {
      const double score = score_of(source, row / q[2] / q[1], row / q[2] % q[1], row % q[2], j).value;
      a.set(row * N + j, std::clamp(score, -format.largest, format.largest));
    }
  }
  c[Slot::q] = std::move(a);
  drop_kinds(c, "values:");
  return with_identity_keys(std::move(c));
}

/// Where a weight is the least number that exp gives, or 0.
constexpr Want wants_underflow[] = {
    {"weights that underflow", "scores:underflow-edges scores:spread scores:dominant scores:heavy scores:huge"}};

constexpr std::array plain{
    defining(hypotheses::unmasked, "a softmax has no mask: the checks make keys and values of their own")};

const Property family[] = {
    {.name = "softmax.rows-sum-to-one",
     .statement = "Σ_j α_ij = 1",
     .source = "000 003 004",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = plain,
     .given = scores,
     .check = rows_sum_to_one},
    {.name = "softmax.nonnegative",
     .statement = "α_ij ≥ 0; > 0 in exact arithmetic for finite scores",
     .source = "003",
     .needs = "attention",
     .floating_point = "bitwise (never negative, never NaN for finite scores)",
     .wants = wants_underflow,
     .hypotheses = plain,
     .given = scores,
     .check = nonnegative},
    {.name = "softmax.permutation-equivariance",
     .statement = "softmax(π(x)) = π(softmax(x))",
     .source = "000",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = plain,
     .given = scores,
     .check = permutation_equivariance},
    {.name = "softmax.column-permutation",
     .statement = "softmax(A C_π) = softmax(A) C_π",
     .source = "000",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = plain,
     .given = scores,
     .check = column_permutation},
    {.name = "softmax.row-locality",
     .statement = "row i of softmax(A) depends on row i of A only",
     .source = "000 003",
     .needs = "attention",
     .floating_point = "bitwise if batch-invariant",
     .hypotheses = plain,
     .given = scores,
     .check = row_locality},
    {.name = "softmax.row-permutation",
     .statement = "softmax(R_πA) = R_π softmax(A)",
     .source = "000",
     .needs = "attention",
     .floating_point = "bitwise if batch-invariant",
     .hypotheses = plain,
     .given = scores,
     .check = row_permutation},
    {.name = "softmax.columnwise-is-transpose",
     .statement = "the column-wise softmax of 002 is softmax(Aᵀ)ᵀ",
     .source = "002",
     .needs = "attention",
     .floating_point = "bitwise",
     .hypotheses = plain,
     .given = scores,
     .check = columnwise_is_transpose},
    {.name = "softmax.shift-invariance",
     .statement = "softmax(x + c1) = softmax(x): what makes max-subtraction legal",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = plain,
     .given = scores,
     .check = shift_invariance},
    {.name = "softmax.monotone",
     .statement = "x_j ≥ x_l ⇒ α_j ≥ α_l",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound",
     .hypotheses = plain,
     .given = scores,
     .check = monotone},
};

}  // namespace

std::span<const Property> softmax_properties() {
  return family;
}

}  // namespace attest
