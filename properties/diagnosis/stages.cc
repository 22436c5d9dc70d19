#include "properties/diagnosis/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/bound/error_bound.h"
#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "properties/road/fit_form.h"

namespace attest {
namespace {

/// How a fed case came out.
struct Fed {
  Outcome outcome = Outcome::skipped;  ///< skipped, excused and inconclusive say nothing
  double utilisation = 0;
  Tensor out;
  std::int64_t element = -1;  ///< the worst
  [[nodiscard]] bool wrong() const { return outcome == Outcome::violated; }
  /// Right by far: nothing of a fault is left.
  [[nodiscard]] bool right() const { return outcome == Outcome::held && utilisation <= 0.5; }
};

Fed fed(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  const Case asked = in_kv_dtypes(c, manifest);
  if (!why_unsupported(manifest, asked).empty()) return {};
  Reply reply = kernel.run(asked);
  if (reply.status != CallStatus::ok) return {};
  const Verdict verdict = judge_attention(asked, reply.out, {}, manifest.arithmetic_for(asked));
  return {verdict.outcome, verdict.utilisation, std::move(reply.out.tensor()), verdict.element};
}

/// One row of one head with the keys that it sees.
struct Row {
  DType dtype = DType::f32;
  double scale = 1, softcap = 0;
  MaskConvention convention = MaskConvention::post_scale;
  DType mask = DType::f32;
  std::vector<double> q, k, v, bias;  ///< k and v row-major; what slopes add is in the bias
  std::vector<double> products;       ///< q.k times the scale, as double computes them
  std::vector<double> scores;         ///< likewise
  std::int64_t keys = 0, dk = 0, dv = 0;
  std::vector<double> keep;  ///< of the keys; empty: nothing is dropped
  double dropout_p = 0;
  bool has_slopes = false;
  bool has_factors = false;  ///< by which q, k and v are multiplied here, as far as the dtype holds it
};

Row row_of(const Case& c, std::int64_t element) {
  const Shape shape = c.out_shape();
  const auto [b, h, i, column] = shape.index_of(element);
  Row out;
  out.dtype = c.dtype(), out.scale = c.scale, out.softcap = c.softcap, out.convention = convention_of(c);
  out.dropout_p = c.dropout_p;
  out.dk = c.k().shape()[3], out.dv = c.v().shape()[3];
  out.has_slopes = c[Slot::alibi_slopes].present();
  out.has_factors = has_variant(c, descale_variant.name);
  if (c.mask().present() && c.mask().dtype() != DType::boolean)
    out.mask = c.mask().dtype();
  else if (out.has_slopes)
    out.mask = c.dtype();  // that every kernel's masks have which takes numbers at all
  const std::int64_t kv = kv_head_of(c, h), all = c.k().shape()[2];
  const auto multiplied = [&](Slot slot, std::int64_t head, std::int64_t row, std::int64_t x) {
    const double one = c[slot].at(b, head, row, x);
    return c[descale_of(slot)].present() ? round_to(out.dtype, one * factor_of(c, slot, b, head, row)) : one;
  };
  for (std::int64_t x = 0; x < out.dk; ++x) out.q.push_back(multiplied(Slot::q, h, i, x));
  for (std::int64_t j = 0; j < all; ++j) {
    if (hidden(c, b, h, i, j)) continue;
    double product = 0;
    for (std::int64_t x = 0; x < out.dk; ++x) {
      out.k.push_back(multiplied(Slot::k, kv, j, x));
      product += out.q[static_cast<std::size_t>(x)] * out.k.back();
    }
    for (std::int64_t x = 0; x < out.dv; ++x) out.v.push_back(multiplied(Slot::v, kv, j, x));
    // Slopes become a mask, of whatever its format makes of them.
    const double bias = round_to(out.mask, bias_of(c, b, h, i, j));
    out.bias.push_back(bias);
    out.products.push_back(c.scale * product);
    out.scores.push_back(score_in(c, product, bias));
    if (c[Slot::keep].present()) out.keep.push_back(keeps(c, b, h, i, j) ? 1.0 : 0.0);
    ++out.keys;
  }
  return out;
}

/// One query, one head, no mask.
Case case_of(DType dtype, const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
             std::int64_t keys, double scale) {
  const auto dk = static_cast<std::int64_t>(q.size()), dv = static_cast<std::int64_t>(v.size()) / keys;
  Case c;
  c[Slot::q] = Tensor(dtype, {1, 1, 1, dk}, q);
  c[Slot::k] = Tensor(dtype, {1, 1, keys, dk}, k);
  c[Slot::v] = Tensor(dtype, {1, 1, keys, dv}, v);
  c.scale = scale;
  return c;
}

Case alone(const Row& row) {
  Case c = case_of(row.dtype, row.q, row.k, row.v, row.keys, row.scale);
  c.mask_convention = row.convention, c.softcap = row.softcap;
  if (std::ranges::any_of(row.bias, [](double b) { return b != 0; }))
    c[Slot::mask] = Tensor(row.mask, {1, 1, 1, row.keys}, row.bias);
  if (!row.keep.empty())
    c[Slot::keep] = Tensor(DType::boolean, {1, 1, 1, row.keys}, row.keep), c.dropout_p = row.dropout_p;
  return c;
}

/// Four equal scores, and values whose mean lies a quarter and three quarters between two neighbours, on both sides of
/// zero. Their sums need two bits more than the dtype has.
Case exact_sums(const Row& row) {
  const double ulp = std::ldexp(1.0, 1 - format_of(row.dtype).precision);
  std::vector<double> v;
  for (int key = 0; key < 4; ++key) {
    for (std::int64_t x = 0; x < row.dv; ++x) {
      const bool high = key < (x % 2 == 0 ? 3 : 1);
      v.push_back((x / 2 % 2 == 0 ? 1 : -1) * (high ? 1 + ulp : 1.0));
    }
  }
  const std::vector<double> q(row.q.size(), 0.0), k(4 * row.q.size(), 0.0);
  return case_of(row.dtype, q, k, v, 4, row.scale);
}

Case equal_scores(const Row& row) {
  return case_of(row.dtype, std::vector<double>(row.q.size(), 0.0), row.k, row.v, row.keys, row.scale);
}

/// Equal scores, and values of every bit in [1, 2), every third column negative.
Case long_sum(const Row& row, std::int64_t keys) {
  const double ulp = std::ldexp(1.0, 1 - format_of(row.dtype).precision);
  std::vector<double> v;
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < keys * row.dv; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    const double size = 1 + std::floor(static_cast<double>(state >> 33) * 0x1p-31 / ulp) * ulp;
    const std::int64_t column = i % row.dv;
    v.push_back(column % 3 == 1 ? -size : size);
  }
  return case_of(row.dtype, std::vector<double>(row.q.size(), 0.0),
                 std::vector<double>(static_cast<std::size_t>(keys * row.dk), 0.0), v, keys, row.scale);
}

/// Scores, rounded to the dtype, as the only column of k.
Case exact_scores(DType dtype, const std::vector<double>& scores, const std::vector<double>& v) {
  return case_of(dtype, {1.0}, scores, v, static_cast<std::int64_t>(scores.size()), 1.0);
}

/// The scaled products, rounded to the dtype, as the only column of k, and the row's cap.
Case exact_products(const Row& row) {
  Case c = exact_scores(row.dtype, row.products, row.v);
  c.softcap = row.softcap;
  return c;
}

/// Four rows of two keys whose weights are nearly equal, and values 1 and -1: what is lost of a weight shows, however
/// the output is rounded.
Case differences(const Row& row) {
  Case c = case_of(row.dtype, {1.0}, {0.0, -1.0 / 64}, std::vector<double>{1.0, -1.0}, 2, 1.0);
  std::vector<double> v;
  for (int key = 0; key < 2; ++key) v.insert(v.end(), static_cast<std::size_t>(row.dv), key == 0 ? 1.0 : -1.0);
  c[Slot::q] = Tensor(row.dtype, {1, 1, 4, 1}, std::vector<double>{1, 3, 5, 7});
  c[Slot::v] = Tensor(row.dtype, {1, 1, 2, row.dv}, v);
  return c;
}

/// One-hot columns of `width` keys from `first` on.
std::vector<double> one_hot(std::int64_t keys, std::int64_t first, std::int64_t width) {
  std::vector<double> v(static_cast<std::size_t>(keys * width), 0.0);
  for (std::int64_t x = 0; x < width && first + x < keys; ++x) v[static_cast<std::size_t>((first + x) * width + x)] = 1;
  return v;
}

/// What came of the weights of exact scores.
struct Weights {
  bool known = false, wrong = false;
  double worst = 0;                          ///< utilisation
  std::vector<double> scores, found, exact;  ///< of the weights that are large enough to be rounded finely
};

/// Scores that every dtype holds, and weights that all are large.
const std::vector<double> ladder{0, -0.5, -1, -1.5, -2, -2.5, -3, -3.5};

Weights weights_of(Kernel& kernel, const Row& row, const std::vector<double>& scores) {
  Weights weights;
  const auto keys = static_cast<std::int64_t>(scores.size());
  for (std::int64_t first = 0; first < keys; first += row.dv) {
    const Case c = exact_scores(row.dtype, scores, one_hot(keys, first, row.dv));
    const Fed one = fed(kernel, c);
    if (one.outcome != Outcome::held && !one.wrong()) return {};
    weights.wrong = weights.wrong || one.wrong();
    weights.worst = std::max(weights.worst, one.utilisation);
    const AttentionBounds bounds = attention_bounds(c, kernel.manifest().arithmetic_for(c));
    for (std::int64_t x = 0; x < row.dv && first + x < keys; ++x) {
      const double exact = bounds.elements[static_cast<std::size_t>(x)].value;
      if (!(exact >= format_of(row.dtype).unit / 4)) continue;
      weights.scores.push_back(scores[static_cast<std::size_t>(first + x)]);
      weights.found.push_back(one.out[x]);
      weights.exact.push_back(exact);
    }
  }
  weights.known = true;
  return weights;
}

/// The found weights of the ladder are C exp(c s): the exponentials are right, of scores c times as large.
struct PowerLaw {
  bool fits = false;
  double power = 1, factor = 1;  ///< c; C over the exact one
};
PowerLaw power_law(const Weights& weights, DType dtype) {
  PowerLaw law;
  const std::size_t n = weights.found.size();
  if (n < 4 || std::ranges::any_of(weights.found, [](double w) { return !(w > 0) || std::isinf(w); })) return law;
  const auto from_exact = [&](std::size_t i) { return std::log(weights.found[i]) - std::log(weights.exact[i]); };
  const double per_score = (from_exact(n - 1) - from_exact(0)) / (weights.scores[n - 1] - weights.scores[0]);
  law.power = 1 + per_score, law.factor = std::exp(from_exact(0) - per_score * weights.scores[0]);
  // Found weights are rounded, each by itself, and so are the two that the law was taken from.
  const double rounding = 32 * format_of(dtype).unit;
  law.fits = true;
  for (std::size_t i = 0; i < n; ++i)
    law.fits = law.fits && std::abs(from_exact(i) - from_exact(0) -
                                    per_score * (weights.scores[i] - weights.scores[0])) <= rounding;
  return law;
}

StageFound undetermined(std::string why) {
  return {std::nullopt, std::move(why)};
}

}  // namespace

StageFound stage_of(Kernel& kernel, const Case& c) {
  if (c.operation != Operation::attention || c.out_shape().elements() == 0)
    return undetermined("only attention has these stages");
  if (draws_own_dropout(c)) return undetermined("what the kernel drops, and so its output, nobody else knows");
  const Fed whole = fed(kernel, c);
  if (!whole.wrong() || whole.element < 0) return undetermined("the output by itself is within its bound");
  Row row = row_of(c, whole.element);
  if (row.keys == 0) return undetermined("the row sees no key");
  const auto finite = [](const std::vector<double>& all) {
    return std::ranges::all_of(all, [](double x) { return std::isfinite(x); });
  };
  if (row.has_factors && !(finite(row.q) && finite(row.k) && finite(row.v)))
    return undetermined("what its factors multiply leaves the range of the dtype");
  Fed single = fed(kernel, alone(row));
  if (!single.wrong())
    return undetermined(
        single.outcome == Outcome::held
            ? fmt::format("its row alone, with the keys that it sees{}{}, comes out right: {}{}masks, other "
                          "rows or heads, lengths or memory are at fault",
                          row.has_slopes ? " and a mask of what slopes add" : "",
                          row.has_factors ? ", multiplied by their factors" : "", row.has_slopes ? "slopes, " : "",
                          row.has_factors ? "factors, " : "")
            : "its row alone cannot be judged");
  // What is fed below drops nothing, and would come out right of a kernel that is wrong about dropout alone.
  if (!row.keep.empty()) {
    row.keep.clear();
    single = fed(kernel, alone(row));
    if (!single.wrong())
      return undetermined(single.outcome == Outcome::held
                              ? "its row alone comes out right where nothing is dropped: what is dropped, or the "
                                "division by 1 - p, is at fault"
                              : "its row alone cannot be judged where nothing is dropped");
  }
  const Arithmetic& arithmetic = kernel.manifest().arithmetic_for(c);
  const bool wider = format_of(arithmetic.accumulate).unit * 8 <= format_of(c.dtype()).unit;
  if (wider && fed(kernel, exact_sums(row)).wrong())
    return {Stage::output, "equal scores and sums that are exact come out wrong too"};
  if (fed(kernel, equal_scores(row)).wrong())
    return {Stage::sums, "with q = 0 the scores are 0 and the exponentials 1, and the output is wrong too"};
  // f16 counts to 2048.
  for (const std::int64_t keys : {std::int64_t{64}, std::int64_t{2100}})
    if (fed(kernel, long_sum(row, keys)).wrong())
      return {Stage::sums, fmt::format("equal scores of {} keys come out wrong too", keys)};
  // Each weight is read by a call of its own.
  constexpr std::int64_t most_keys = 2048;
  if (row.keys > most_keys)
    return undetermined(fmt::format("its row sees {} keys; the weights of {} are read at most", row.keys, most_keys));
  const double largest = format_of(row.dtype).largest;
  if (!std::ranges::all_of(row.scores, [&](double s) { return std::abs(s) <= largest; }))
    return undetermined("its scores leave the range of the dtype");
  // The simplest scores first: their weights tell a wrong scale from wrong exponentials.
  const Weights simple = weights_of(kernel, row, ladder);
  if (!simple.known) return undetermined("a single column of q and k cannot be fed");
  if (simple.wrong) {
    const double rounding = 32 * format_of(row.dtype).unit;
    const PowerLaw law = power_law(simple, row.dtype);
    if (law.fits && std::abs(law.power - 1) > rounding)
      return {Stage::scores,
              fmt::format("the weights of exact scores are those of scores {:.6g} times as large", law.power)};
    if (law.fits && std::abs(law.factor - 1) > rounding)
      return {Stage::sums,
              fmt::format("the weights of exact scores are all wrong by one factor, {:.6g}: their sum is", law.factor)};
    return {Stage::weights, "the weights of exact scores are wrong"};
  }
  if (fed(kernel, differences(row)).wrong())
    return {Stage::weights, "the difference of two nearly equal weights of exact scores is wrong"};
  const Weights weights = weights_of(kernel, row, row.scores);
  if (!weights.known) return undetermined("the weights of its scores cannot be judged");
  if (weights.wrong) return {Stage::weights, "the weights of its scores, fed exactly, are wrong"};
  const Fed exact = fed(kernel, exact_scores(row.dtype, row.scores, row.v));
  if (exact.wrong())
    return {Stage::weights, "with exact scores the output is wrong, and sums of weights that are exact come out right"};
  if (exact.right() && weights.worst <= 0.5) {
    const std::string evidence = fmt::format(
        "with exact scores in the place of q.k, scale{} and bias the row comes out right, at {:.2g} of its bound for "
        "{:.2g}",
        row.softcap > 0 ? ", cap" : "", exact.utilisation, single.utilisation);
    const bool by_cap = row.softcap > 0 && fed(kernel, exact_products(row)).wrong();
    return {Stage::scores,
            evidence + (by_cap ? ", and wrong with exact products and the cap alone: the cap is at fault" : "")};
  }
  return undetermined("with exact scores the row comes out right, but not by far");
}

}  // namespace attest
