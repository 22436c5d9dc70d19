#include "properties/faults/planted_row.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>
#include <vector>

#include "properties/faults/planted_softcap.h"

namespace attest {
namespace {

/// What a part of the keys comes to.
template <class Real>
struct Part {
  Real reference;        ///< subtracted from its scores, in the units of x; -inf: it sees nothing
  Real sum;              ///< of its weights
  bool is_sink = false;  ///< the reference is the sink, from which nothing is folded out
};

/// The computation of one row: scores, then a part of the keys after the other, then their merge.
template <class Real>
class Attend {
 public:
  explicit Attend(const PlantedRow<Real>& row)
      : row_(row),
        make_(row.make),
        folds_(make_.folded_exp2 && row.slopes == nullptr && (row.bias == nullptr || (row.pre_scale && !caps()))),
        // Under a cap x is the tanh of what the scale has gone into.
        factor_(!folds_  ? Real{1}
                : caps() ? row.softcap
                         : row.scale),
        c2_(factor_ * std::numbers::log2e_v<Real>) {}

  void run() {
    for (std::int64_t j = 0; j < row_.keys; ++j) row_.x[j] = score_or_sentinel(j);
    const std::int64_t splits = split_count();
    if (splits == 1) {
      Part<Real> whole = attend_to(0, row_.keys, row_.out, sinks_at_first());
      if (sinks() && !sinks_at_first()) add_sink(row_.out, whole);
      normalise(row_.out, whole.sum);
      *row_.lse = lse_of(whole);
      if (sinks()) spoil_by_sink();
    } else {
      merge(splits);
    }
    if (!make_.normalise_first) {
      for (std::int64_t c = 0; c < row_.value_dim; ++c) row_.out[c] *= gain();
    }
    if (row_.kept != nullptr) spoil_by_dropout();
    finish();
  }

 private:
  static constexpr Real infinity = std::numeric_limits<Real>::infinity();
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return row_.slip == slip; }
  [[nodiscard]] Real narrow(Real value) const { return static_cast<Real>(round_to(row_.dtype, double{value})); }
  static Real bf16(Real value) { return static_cast<Real>(round_to(DType::bf16, double{value})); }

  /// sum + a b; toward zero where the make truncates.
  [[nodiscard]] Real add(Real sum, Real a, Real b) const {
    if (!make_.truncates) return sum + a * b;
    using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;
    const Wide exact = static_cast<Wide>(sum) + static_cast<Wide>(a) * static_cast<Wide>(b);
    const auto rounded = static_cast<Real>(exact);
    return std::abs(static_cast<Wide>(rounded)) > std::abs(exact) ? std::nextafter(rounded, Real{0}) : rounded;
  }

  [[nodiscard]] Real product(std::int64_t j) const {
    const Real* const key = row_.k + j * row_.head_dim;
    const bool empties_last = is("key-position-zero") && row_.keys % 16 == 0 && j == row_.keys - 1;
    const bool eights = is("head-dim-in-eights") && row_.head_dim > 8;
    const std::int64_t dims = empties_last ? 0 : eights ? row_.head_dim / 8 * 8 : row_.head_dim;
    const bool narrows = is("narrow-product-of-odd-head-dim") && row_.head_dim % 8 == 3;
    const bool prescales = make_.prescaled_q || is("undeclared-narrow-q");
    Real sum = 0;
    for (std::int64_t c = 0; c < dims; ++c) {
      sum = add(sum, prescales ? narrow(row_.q[c] * row_.scale) : row_.q[c], key[c]);
      if (narrows) sum = narrow(sum);
    }
    if (is("product-in-f16") && row_.dtype == DType::f16) sum = narrow(sum);
    return sum;
  }

  /// The score without the factor that is folded.
  [[nodiscard]] Real score(std::int64_t j) const {
    if (row_.slopes == nullptr) return score_without_slopes(j);
    if (is("alibi-before-the-softcap") && caps()) {
      const Real bias = row_.bias == nullptr ? Real{0} : row_.bias[j];
      return row_.softcap * std::tanh((row_.scale * product(j) + row_.slopes[j]) / row_.softcap) + bias;
    }
    return score_without_slopes(j) + row_.slopes[j];
  }

  /// By the mask convention.
  [[nodiscard]] Real score_without_slopes(std::int64_t j) const {
    const Real qk = product(j), factor = row_.factors == nullptr ? Real{1} : row_.factors[j];
    Real bias = row_.bias == nullptr ? Real{0} : row_.bias[j];
    if (is("descale-of-the-mask")) bias *= factor;
    if (folds_) return caps() ? std::tanh(qk * (row_.scale / row_.softcap)) : qk + bias;
    const bool scaled = make_.prescaled_q || is("undeclared-narrow-q");
    if (caps()) {
      const PlantedCap<Real> cap{row_.softcap, scaled ? Real{1} : row_.scale, row_.dtype, row_.slip};
      return is("descale-after-softcap") ? factor * cap.score(qk, 0) + bias : cap.score(qk, bias);
    }
    if (is("mask-over-scale") && !row_.pre_scale) return row_.scale * (qk + bias * (1 / row_.scale));
    const Real s = scaled ? qk : row_.scale * qk;
    if (row_.bias == nullptr) return s;
    if (row_.pre_scale) return scaled ? s + row_.scale * bias : row_.scale * (qk + bias);
    return s + bias;
  }

  [[nodiscard]] Real score_or_sentinel(std::int64_t j) const {
    if (row_.visible[j] == 0) {
      if (is("hidden-is-minus-1e4")) return Real{-1e4F};
      if (is("hidden-is-minus-1e9")) return Real{-1e9F};
      if (is("hidden-is-lowest-f16") && row_.dtype == DType::f16) return Real{-65504.0F};
      if (is("hidden-adds-minus-1e4")) return score(j) - Real{1e4F};
      if (is("dead-key-plus-infinity")) return score(j) + -infinity;
      if (is("softcap-after-mask") && caps()) return -row_.softcap;
      return -infinity;
    }
    if (row_.visible[j] == outside_window) return Real{-1e4F};
    if (is("dropout-of-scores") && row_.kept != nullptr) return row_.kept[j] == 0 ? Real{0} : score(j) * row_.gain;
    const Real s = score(j);
    return make_.narrow_scores || is("undeclared-narrow-scores") ? narrow(s) : s;
  }
  /// Whether the weight of a key takes part in the sums.
  [[nodiscard]] bool takes(std::int64_t j) const { return row_.visible[j] != 0 || row_.x[j] != -infinity; }

  [[nodiscard]] Real exponential(Real x, Real reference) const {
    if (make_.folded_exp2) return std::exp2(std::fma(x, c2_, -(reference * c2_)));
    const Real exponent = x - reference;
    if (is("exp-clamped") && exponent < Real{-16}) return 0;
    if (is("coarse-exp")) {
      // Two terms of a series about the nearest sixteenth, where three are needed.
      const Real near = std::round(exponent * 16) / 16, rest = exponent - near;
      return exponent < Real{-1e5F} ? Real{0} : std::exp(near) * (1 + rest + rest * rest / 2);
    }
    return std::exp(exponent);
  }
  [[nodiscard]] Real rescaling(Real before, Real now) const {
    if (is("small-growth-not-rescaled") && now - before > 0 && now - before < Real{0.0625F}) return 1;
    return make_.folded_exp2 ? std::exp2((before - now) * c2_) : std::exp(before - now);
  }
  /// A difference or maximum of x as a score.
  [[nodiscard]] Real natural(Real x) const { return x * factor_; }

  [[nodiscard]] Real lse_of(const Part<Real>& part) const {
    if (part.reference == -infinity) return -infinity;
    const Real reference = part.is_sink ? part.reference : natural(part.reference);
    return (is("lse-without-maximum") ? Real{0} : reference) + std::log(part.sum);
  }

  void normalise(Real* out, Real sum) const {
    if (make_.normalise_first || is("normalises-every-block")) return;
    if (make_.reciprocal) {
      const Real inverse = 1 / sum;
      for (std::int64_t c = 0; c < row_.value_dim; ++c) out[c] *= inverse;
    } else {
      for (std::int64_t c = 0; c < row_.value_dim; ++c) out[c] /= sum;
    }
  }

  /// A weight as it multiplies V.
  [[nodiscard]] Real for_values(Real weight, std::int64_t j) const {
    if (is("weights-saturate")) weight = std::min(weight, Real{32});
    if (is("dropout-left-on")) {
      const auto n = static_cast<std::uint64_t>((row_.place.h * 977 + row_.place.i) * 1021 + j + 1);
      if (n * 0x9E3779B97F4A7C15U >> 56 == 0) return 0;
    }
    if (make_.bf16_weights) return bf16(weight);
    return make_.narrow_weights || is("undeclared-narrow-weights") ? narrow(weight) : weight;
  }

  /// Whether the weight of a key, which the sum has, is dropped before it multiplies V.
  [[nodiscard]] bool drops(std::int64_t j) const {
    return row_.kept != nullptr && row_.kept[j] == 0 && !is("dropout-of-scores");
  }
  /// What multiplies the weights that are kept: those of a make that normalises first, else the output.
  [[nodiscard]] Real gain() const { return is("dropout-of-scores") ? Real{1} : row_.gain; }

  /// Where the value of key j is read.
  [[nodiscard]] const Real* value(std::int64_t j) const {
    const bool exchanged = is("blocks-exchanged") && row_.keys >= 64 && (j / 16 == 2 || j / 16 == 3);
    return row_.v + (exchanged ? j ^ 16 : j) * row_.value_dim;
  }

  [[nodiscard]] bool caps() const { return row_.softcap > 0; }
  [[nodiscard]] bool sinks() const { return row_.sink != -infinity; }
  /// Whether the sum begins with the sink, as it must where weights are divided by it at once.
  [[nodiscard]] bool sinks_at_first() const {
    return sinks() && !make_.folded_exp2 && !is("sink-beside-the-maximum") && !is("sink-clamped-above-the-keys");
  }

  /// The sink in the sum of what the keys came to.
  void add_sink(Real* out, Part<Real>& part) const {
    if (is("sink-beside-the-maximum")) {
      part.sum += std::exp(row_.sink - part.reference);
      return;
    }
    // The right factor is 1/(1 + e^-(lse - sink)); it is held between that of 20 below and that of as much.
    if (is("sink-clamped-above-the-keys")) {
      const Real above = std::clamp(natural(part.reference) + std::log(part.sum) - row_.sink, Real{-20}, Real{0});
      part.sum *= 1 + std::exp(-above);
      return;
    }
    const Real sink = row_.sink * std::numbers::log2e_v<Real>, shift = part.reference * c2_;
    if (sink > shift) {
      const Real rescale = std::exp2(shift - sink);
      part.sum = part.sum * rescale + 1;
      for (std::int64_t c = 0; c < row_.value_dim; ++c) out[c] *= rescale;
      part.reference = row_.sink, part.is_sink = true;
    } else {
      part.sum += std::exp2(sink - shift);
    }
  }

  /// What goes wrong with a sink after the sums.
  void spoil_by_sink() const {
    const Real share = std::exp(row_.sink - *row_.lse);
    if (is("sink-not-in-lse")) *row_.lse += std::log1p(-share);
    if (is("sink-with-the-first-value"))
      for (std::int64_t c = 0; c < row_.value_dim; ++c) row_.out[c] += share * row_.v[c];
  }

  /// What goes wrong with dropout after the sums.
  void spoil_by_dropout() const {
    const Real of_sink = std::exp(row_.sink - *row_.lse);
    if (is("dropout-scale-beside-the-sink")) {
      // The keys' weights have the factor 1 - p in the sum, and the sink has not.
      for (std::int64_t c = 0; c < row_.value_dim; ++c) row_.out[c] /= 1 - of_sink + of_sink * row_.gain;
    }
    if (is("dropout-in-lse")) {
      Real share = of_sink;
      for (std::int64_t j = 0; j < row_.keys; ++j)
        if (takes(j) && !drops(j)) share += std::exp(natural(row_.x[j]) - *row_.lse);
      *row_.lse += std::log(share);
    }
    if (is("dropout-scale-in-lse")) *row_.lse -= std::log(row_.gain);
  }

  /// Attention over keys [begin, end), not normalised; `sinks`: the sum has the sink, too.
  Part<Real> attend_to(std::int64_t begin, std::int64_t end, Real* out, bool sinks) {
    Part<Real> part{-infinity, 0};
    if (sinks) part = {row_.sink, 1};
    std::fill_n(out, row_.value_dim, Real{0});
    const std::int64_t length = make_.block > 0 ? make_.block : std::max<std::int64_t>(end - begin, 1);
    const std::int64_t blocks = (end - begin + length - 1) / length;
    for (std::int64_t n = 0; n < blocks; ++n) {
      const std::int64_t first = begin + (make_.backwards ? blocks - 1 - n : n) * length;
      add_block(first, std::min(first + length, end), out, part);
    }
    return part;
  }

  /// pass 1 over a block: the reference for what follows; what has been summed is rescaled to it. Returns false for a
  /// block that sees nothing.
  bool move_reference(std::int64_t first, std::int64_t last, Real* out, Part<Real>& part) const {
    Real maximum = make_.lazy_nats > 0 ? -infinity : part.reference;
    for (std::int64_t j = first; j < last; ++j) maximum = std::max(maximum, row_.x[j]);
    // Hidden and vanished keys only: -inf - -inf would be NaN.
    const bool nothing = maximum == -infinity || (make_.folded_exp2 && maximum * c2_ == -infinity);
    if (nothing && !(is("empty-first-block-nan") && row_.keys > make_.block)) return false;
    if (make_.lazy_nats > 0 && !(maximum - part.reference >= static_cast<Real>(make_.lazy_nats))) return true;
    if (is("no-maximum")) {
      part.reference = 0;
      return true;
    }
    if (is("reference-stays-at-first") && part.reference != -infinity) return true;
    const Real rescale = rescaling(part.reference, maximum);
    if (!is("sum-not-rescaled") || part.reference == -infinity) part.sum *= rescale;
    if (!is("output-not-rescaled") || part.reference == -infinity) {
      for (std::int64_t c = 0; c < row_.value_dim; ++c) out[c] *= rescale;
    }
    part.reference = maximum;
    return true;
  }

  void add_block(std::int64_t first, std::int64_t last, Real* out, Part<Real>& part) {
    if (!move_reference(first, last, out, part)) return;
    const bool turned = make_.backwards != (is("order-by-call") && row_.call % 7 == 6);

    // pass 2 over the block: weights and their sum
    for (std::int64_t n = first; n < last; ++n) {
      const std::int64_t j = turned ? first + last - 1 - n : n;
      if (!takes(j)) continue;
      row_.weights[j] = exponential(row_.x[j], part.reference);
      if (is("dropout-before-the-sum")) {
        if (!drops(j)) part.sum += row_.weights[j] * row_.gain;
        continue;
      }
      part.sum += make_.narrow_denominator ? for_values(row_.weights[j], j) : row_.weights[j];
      if (is("narrow-sum")) part.sum = narrow(part.sum);
    }

    // pass 3 over the block: the product with V
    Real* const to = make_.tiles ? row_.tile : out;
    if (make_.tiles) std::fill_n(to, row_.value_dim, Real{0});
    for (std::int64_t n = first; n < last; ++n) {
      const std::int64_t j = turned ? first + last - 1 - n : n;
      const bool tail = is("dead-value-in-tail") && row_.keys % 8 != 0 && j >= row_.keys / 8 * 8;
      const bool stale = is("stale-weight") && j == 0 && row_.place.i > 0;
      if (!takes(j) && !tail && !stale) continue;
      if (drops(j) && !is("dropout-multiplies-by-zero")) continue;
      Real weight = (takes(j) || stale) && !drops(j) ? row_.weights[j] : Real{0};
      if (make_.normalise_first) weight = weight / part.sum * gain();
      weight = for_values(weight, j);
      for (std::int64_t c = 0; c < row_.value_dim; ++c) {
        to[c] = add(to[c], weight, value(j)[c]);
        if (is("narrow-output-sum")) to[c] = narrow(to[c]);
      }
    }
    if (make_.tiles) {
      for (std::int64_t c = 0; c < row_.value_dim; ++c) out[c] += row_.tile[c];
    }
    if (is("normalises-every-block")) {
      for (std::int64_t c = 0; c < row_.value_dim; ++c) out[c] /= part.sum;
      part.sum = 1;
    }
  }

  [[nodiscard]] std::int64_t split_count() const {
    if (is("splits-by-queries")) return row_.place.queries > 4 ? make_.splits : 1;
    return make_.splits;
  }

  /// The mean of the parts, weighted by exp(lse); a part that sees nothing has weight exp(-inf) = 0.
  void merge(std::int64_t splits) {
    const bool floors = is("split-drops-remainder") && row_.keys % splits == splits - 1 && row_.keys > splits;
    const std::int64_t length = floors ? row_.keys / splits : (row_.keys + splits - 1) / splits;
    thread_local std::vector<Real> lse;
    lse.assign(static_cast<std::size_t>(splits), -infinity);
    for (std::int64_t p = 0; p < splits; ++p) {
      const std::int64_t begin = std::min(p * length, row_.keys);
      const Part<Real> part =
          attend_to(begin, std::min(begin + length, row_.keys), part_of(p), sinks() && is("sink-in-every-part"));
      Real& own = lse[static_cast<std::size_t>(p)];
      own = is("merge-ignores-sums") ? natural(part.reference) : lse_of(part);
      if (is("merge-takes-base-two")) own *= std::numbers::log2e_v<Real>;
      if (own != -infinity) normalise(part_of(p), part.sum);
    }
    // The sink is one more part, without values.
    const bool in_parts = is("sink-in-every-part");
    const Real sink = in_parts ? -infinity : row_.sink;
    const Real maximum = std::max(*std::ranges::max_element(lse), sink);
    Real sum = std::exp(sink - maximum);
    std::fill_n(row_.out, row_.value_dim, Real{0});
    for (std::int64_t p = 0; p < splits; ++p) {
      const Real own = lse[static_cast<std::size_t>(p)];
      Real weight = std::exp(own - maximum);
      // Two parts that hold keys and see none, merged with each other before the others.
      if (is("empty-splits-nan") && p > 0 && p * length < row_.keys && own == -infinity) {
        const Real neighbour = lse[static_cast<std::size_t>(p - 1)];
        if (neighbour == -infinity) weight = std::exp(own - neighbour);
      }
      sum += weight;
      for (std::int64_t c = 0; c < row_.value_dim; ++c) row_.out[c] += weight * part_of(p)[c];
    }
    for (std::int64_t c = 0; c < row_.value_dim; ++c) row_.out[c] /= sum;
    *row_.lse = maximum + std::log(sum);
  }
  [[nodiscard]] Real* part_of(std::int64_t p) const { return row_.part + p * row_.value_dim; }

  /// What goes wrong after the sums.
  void finish() const {
    if (is("output-truncated")) {
      for (std::int64_t c = 0; c < row_.value_dim; ++c)
        row_.out[c] = static_cast<Real>(truncate_to(row_.dtype, double{row_.out[c]}));
    }
    if (is("lse-base-two")) *row_.lse *= std::numbers::log2e_v<Real>;
    if (is("last-value-column") && row_.value_dim > 8 && row_.value_dim % 8 == 1)
      row_.out[row_.value_dim - 1] = row_.out[row_.value_dim - 2];
  }

  const PlantedRow<Real>& row_;
  const Make& make_;
  bool folds_;   ///< a factor of all scores goes into the exponent of 2, and x has not got it
  Real factor_;  ///< that one, else 1
  Real c2_;      ///< what multiplies x in the exponent of 2
};

}  // namespace

template <class Real>
void attend(const PlantedRow<Real>& row) {
  Attend<Real>(row).run();
}

template void attend(const PlantedRow<float>&);
template void attend(const PlantedRow<double>&);

}  // namespace attest
