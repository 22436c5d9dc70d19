#include "properties/diagnosis/probe_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

#include "core/kernel/limits.h"
#include "properties/diagnosis/probe_denominator.h"
#include "properties/diagnosis/probe_sums.h"
#include "properties/generators/stream.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

using Weights = std::vector<long double>;

constexpr long double infinite = std::numeric_limits<long double>::infinity();

/// exp of a sum of pieces that are exact.
long double expected(const std::vector<double>& pieces) {
  long double sum = 0;
  for (const double piece : pieces) sum += piece;
  return std::exp(sum);
}

/// The largest relative error; infinite where an answer is no number.
long double largest_error(const Weights& found, const Weights& right) {
  long double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const long double error = std::fabs(found[i] / right[i] - 1);
    most = error <= most ? most : std::isfinite(static_cast<double>(error)) ? error : infinite;
  }
  return most;
}

/// Scores that every format holds: -k units, from the first k to the last.
std::vector<WeightQuestion> plain_scores(int a, int b, double unit, std::int64_t target) {
  std::vector<WeightQuestion> questions;
  for (int k = a; k <= b; ++k) questions.push_back({.pieces = {-k * unit}, .target = target, .top = {}, .others = {}});
  return questions;
}

class WeightProber {
 public:
  WeightProber(ArithmeticQuestions& ask, ProbedArithmetic& probed)
      : ask_(ask), probed_(probed), a_(probed.declare), before_(probed.declare) {}

  void run(const Arithmetic& before) {
    before_ = before;
    const int sums = format_of(a_.accumulate).precision, wide = format_of(ask_.dtype()).precision;
    ask_.read_bits(sums <= 24 ? sums : std::max(48, wide));
    unit_ = format_of(a_.score_sums).unit;
    ask_normalised();
    if (!ask_exponentials()) return;
    ask_large_scores();
    ask_prescaled();
    ask_distant();
    ask_maximum();
    ask_blocks();
    ask_folded();
    ask_denominators();
  }

 private:
  void note(ArithmeticFinding finding) { probed_.findings.push_back(std::move(finding)); }

  std::optional<Weights> read(const std::vector<WeightQuestion>& questions, std::int64_t keys) {
    return ask_.weights(questions, keys);
  }

  static Weights right(const std::vector<WeightQuestion>& questions) {
    Weights all;
    for (const WeightQuestion& one : questions) all.push_back(expected(one.pieces) / expected(one.top));
    return all;
  }

  /// Where the keys of the largest score begin, and the target.
  struct Layout {
    std::int64_t keys, tops, target;
  };
  /// The target beside keys of the largest score, of few keys and of many, and far from them: a kernel that takes parts
  /// may round a weight in one place that it does not in another.
  [[nodiscard]] std::vector<Layout> layouts() const {
    std::vector<Layout> all;
    const std::int64_t tops = ask_.top_keys();
    if (const auto few = ask_.keys_near(8); few && *few > tops) all.push_back({*few, 0, tops});
    if (const auto many = ask_.keys_near(1000); many && *many > 2 * tops + 8) {
      all.push_back({*many, 0, tops});
      all.push_back({*many, *many / 2 + 3, *many / 2 + 3 + tops});
      all.push_back({*many, 0, *many - 1});
    }
    return all;
  }

  /// What all of a layout's weights are.
  struct Shown {
    long double error = 0;
    std::optional<DType> format{};  ///< a narrower one, of which all are numbers
    bool wide = true;               ///< no error but of the last bits
  };

  /// Weights of small distances: what they are rounded to, and the error of exp.
  bool ask_exponentials() {
    noise_ = format_of(a_.accumulate).unit;
    std::vector<Shown> all;
    long double widest = 0;
    for (const Layout& layout : layouts()) {
      auto questions = plain_scores(1, 128, 1.0 / 128, layout.target);
      for (WeightQuestion& one : questions) one.tops = layout.tops;
      const auto found = read(questions, layout.keys);
      if (!found) {
        note({.question = "weights before V",
              .declared = std::string(name_of(before_.weights)),
              .found = "not asked: " + ask_.failure(),
              .evidence = {}});
        return false;
      }
      Shown& shown = all.emplace_back();
      shown.error = largest_error(*found, right(questions));
      shown.wide = shown.error <= 64 * std::max(unit_, noise_);
      for (const DType format : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
        const double unit = format_of(format).unit;
        if (shown.format || unit <= 4 * std::max(unit_, noise_) || shown.error > 2.1 * unit) continue;
        if (share_in(format, *found, noise_) >= 0.99) shown.format = format;
      }
      // Far from it a weight may be rescaled, which errs by as many exponentials again.
      if (layout.target == layout.tops + ask_.top_keys() || all.size() == 1) error_ = std::max(error_, shown.error);
      widest = std::max(widest, shown.error);
    }
    const std::string words = fmt::format(
        "Weights of 128 distances between 1/128 and 1 were read bit by bit, of 8 keys and of 1000, beside the largest "
        "and far from it: the largest relative errors are {:.3g} and {:.3g}.",
        static_cast<double>(error_), static_cast<double>(widest));
    note_weights(all, widest, words);
    note_exp(words);
    return true;
  }

  /// Values that add up to a last bit of the first, with weights that are no powers of two: products of the weights
  /// divided by their sum are rounded, and those of weights of 1 are not.
  void ask_normalised() {
    ArithmeticFinding finding{.question = "weights divided by their sum before V",
                              .declared = before_.normalise_first ? "may be" : "no",
                              .found = {},
                              .evidence = {}};
    const int own = format_of(ask_.values()).precision, bits = std::min(format_of(a_.accumulate).precision, 53) - 2;
    std::vector<double> pieces;
    double left = 1;
    int last = 0;
    pieces.push_back(1);
    while (last < bits) {
      const int next = std::min(bits, last + own);
      pieces.push_back(std::ldexp(1.0, -next) - left);
      left = std::ldexp(1.0, -next), last = next;
    }
    const double large = std::ldexp(1.0, std::min(std::ilogb(format_of(ask_.values()).largest), 40));
    double most = 0;
    bool answered = true;
    for (const std::int64_t n : {3, 5, 7, 11, 13}) {
      const auto keys = ask_.keys_from(std::max<std::int64_t>(n, 4));
      if (!keys || n < static_cast<std::int64_t>(pieces.size())) continue;
      std::vector<std::int64_t> visible;
      SumTerms up, down;
      visible.resize(static_cast<std::size_t>(n));
      std::iota(visible.begin(), visible.end(), std::int64_t{0});
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        up.push_back({static_cast<std::int64_t>(k), large * pieces[k]});
        down.push_back({n - 1 - static_cast<std::int64_t>(k), large * pieces[k]});
      }
      const auto out = ask_.sums({up, down}, *keys, visible);
      answered = answered && out.has_value();
      for (const double sum : out.value_or(std::vector<double>()))
        most = std::max(most, std::fabs(sum / (large * left) - 1));
    }
    const bool shown = answered && !(most < 0x1p-5);
    finding.evidence = fmt::format(
        "Values that cancel to 2^-{} of the largest, of 3 to 13 keys of equal weight, gave that to within {:.2g}: weights "
        "of 1/n round their products, and weights of 1 do not.",
        bits, most);
    finding.found = !answered ? "not asked: " + ask_.failure()
                    : shown   ? "yes, or parts are merged by factors"
                              : "not shown: no, or by products that round nothing";
    if (shown) {
      normalised_ = true;
      finding.contradicts = !before_.normalise_first && !before_.split_merge;
      a_.normalise_first = true;
      a_.division_roundings = std::max<std::int64_t>(a_.division_roundings, 2);
    }
    note(std::move(finding));
  }

  /// The share of the weights that are numbers of the format, to within how well they are read.
  static double share_in(DType format, const Weights& found, double noise) {
    std::size_t in = 0;
    for (const long double w : found) {
      const long double near = round_to(format, static_cast<double>(w));
      in += std::fabs(w - near) <= 2 * static_cast<long double>(noise) * w ? 1U : 0U;
    }
    return static_cast<double>(in) / static_cast<double>(found.size());
  }

  void note_weights(const std::vector<Shown>& all, long double widest, const std::string& words) {
    ArithmeticFinding finding{.question = "weights before V",
                              .declared = std::string(name_of(before_.weights)),
                              .found = {},
                              .evidence = words};
    const auto narrow = std::ranges::find_if(all, [](const Shown& one) { return one.format.has_value(); });
    if (std::ranges::all_of(all, &Shown::wide)) {
      const bool coarse = noise_ > unit_;
      a_.weights = coarse ? a_.accumulate : a_.score_sums;
      finding.found = fmt::format("not rounded: as wide as {}", coarse ? "the sums" : "the scores");
      const DType own = size_of(ask_.dtype()) > 2 ? DType::f16 : ask_.dtype();
      finding.evidence +=
          fmt::format(" Weights rounded to {} would err by up to {:.3g}.", name_of(own), format_of(own).unit);
    } else if (narrow != all.end() &&
               std::ranges::all_of(all, [&](const Shown& one) { return one.wide || one.format == narrow->format; })) {
      rounded_ = true;
      a_.weights = *narrow->format;
      const bool everywhere = std::ranges::none_of(all, &Shown::wide);
      finding.found = fmt::format("rounded to {}{}", name_of(a_.weights),
                                  everywhere ? "" : ", but not in every place, such as alone in a block");
      finding.evidence += fmt::format(" {} are numbers of {}, which few would be otherwise.",
                                      everywhere ? "All" : "All of one place", name_of(a_.weights));
    } else {
      // Divided by their sum first and rounded then: two roundings in what is read.
      rounded_ = true;
      DType format = DType::f8_e5m2;
      for (const DType one : {DType::f8_e4m3, DType::bf16, DType::f16, DType::f32})
        if (format_of(one).unit > unit_ && widest <= 2.1 * format_of(one).unit) format = one;
      a_.weights = format;
      a_.normalise_first = normalised_ = true;
      ambiguous_ = true;
      finding.found = fmt::format(
          "not told apart: errors as of weights in {} divided by their sum first, or of an exp that errs as much",
          name_of(format));
      finding.evidence += " They are numbers of no narrower format.";
    }
    finding.contradicts = format_of(a_.weights).unit > format_of(before_.weights).unit &&
                          format_of(a_.weights).unit > format_of(before_.score_sums).unit;
    note(std::move(finding));
  }

  void note_exp(const std::string& words) {
    ArithmeticFinding finding{
        .question = "error of exp",
        .declared = before_.exp_ulp > 0 ? fmt::format("{} ulp", before_.exp_ulp) : "4 units roundoff",
        .found = {},
        .evidence = words};
    double relative = static_cast<double>(error_) + (noise_ > unit_ ? noise_ : 0);
    if (rounded_ && !ambiguous_) {
      // All are the nearest numbers of the format, or nearly all: an error of a 64th of its last bit would move some.
      relative = std::max(format_of(a_.weights).unit / 64, noise_);
      finding.found = fmt::format("not told apart below {:.2g} of it: the rounding of the weights hides it", relative);
      finding.evidence += " What is hidden is declared as if it were so.";
    } else {
      // An ulp of the manifest is two units roundoff, relatively.
      finding.found = fmt::format("up to {:.2g} ulp of {}", relative / (2 * unit_), name_of(a_.score_sums));
    }
    // Where exp is wrong by far more than the scores' format makes it, a narrower one says the same: of double
    // precision an exp of single precision, and whatever is wrong by a quarter of itself, of which a bound allows
    // anything.
    for (const DType format : {DType::f32, DType::f16, DType::bf16}) {
      const double unit = format_of(format).unit;
      const bool far = relative > 0.25 || (format == DType::f32 && relative > unit / 4);
      if (unit <= unit_ || !far) continue;
      a_.score_sums = format, unit_ = unit;
      finding.evidence += fmt::format(" Scores are declared in {}, whose exp is no better.", name_of(format));
    }
    a_.exp_ulp = std::min(std::ceil(1.25 * relative / (2 * unit_) + 0.25), 0.25 / unit_);
    const double allowed = before_.exp_ulp > 0 ? before_.exp_ulp : 2;
    finding.contradicts =
        !rounded_ && static_cast<double>(error_) > 2 * allowed * format_of(before_.score_sums).unit + 2 * noise_;
    finding.evidence += fmt::format(" exp_ulp {} is declared, with room for what was not asked.", a_.exp_ulp);
    note(std::move(finding));
  }

  /// Scores near 1000 of which the last bits matter: what they are kept in.
  void ask_large_scores() {
    ArithmeticFinding finding{
        .question = "scores in memory", .declared = stored_words(before_), .found = {}, .evidence = {}};
    if (format_of(a_.score_sums).precision < 24) {
      finding.found = fmt::format("not asked: they are sums of {}", name_of(a_.score_sums));
      note(std::move(finding));
      return;
    }
    long double error = 0;
    for (const Layout& layout : layouts()) {
      Stream stream(3);
      std::vector<WeightQuestion> questions;
      for (int k = 0; k < 48; ++k) {
        const double high = static_cast<double>(stream.between(16, 31)) / 8,
                     low = static_cast<double>(stream.between(1, 127)) / 1024;
        // Below what f32 holds near 1000, where the sums hold more.
        const double lowest = a_.score_sums == DType::f64 ? static_cast<double>(stream.between(1, 127)) * 0x1p-21 : 0;
        questions.push_back({.pieces = {1000, -high, -low, -lowest},
                             .target = layout.target,
                             .top = {1000},
                             .tops = layout.tops,
                             .others = {}});
      }
      const auto found = read(questions, layout.keys);
      if (!found) {
        finding.found = "not asked: " + ask_.failure();
        note(std::move(finding));
        return;
      }
      error = std::max(error, largest_error(*found, right(questions)));
    }
    finite_ = std::isfinite(static_cast<double>(error));
    // Without a maximum, exp of 1000 is too large.
    if (!finite_) {
      finding.found = "not asked: scores near 1000 give no numbers";
      note(std::move(finding));
      return;
    }
    // log2(e) may round scores near 1000 a few times.
    const long double noise = 2 * error_ + 8 * 1000 * static_cast<long double>(unit_);
    finding.found = "not stored in a narrower format";
    finding.evidence = fmt::format(
        "Scores of 1000 - d, where d has bits down to 2^-{}, give weights that err by up to {:.3g}: scores rounded to "
        "f32 would err by up to 3e-05, to f16 by 0.25, to bf16 by 2.",
        a_.score_sums == DType::f64 ? 21 : 10, static_cast<double>(error));
    a_.stored_raw = a_.stored_scaled = a_.stored_biased = std::nullopt;
    if (error > noise) {
      const DType format = error <= 0x1p-14L ? DType::f32 : error <= std::expm1(0.3L) ? DType::f16 : DType::bf16;
      a_.stored_raw = a_.stored_scaled = a_.stored_biased = format;
      finding.found =
          fmt::format("rounded as {} rounds; before or after scale and mask: not told apart", name_of(format));
      finding.contradicts = !before_.stored_raw && !before_.stored_scaled && !before_.stored_biased;
    }
    note(std::move(finding));
  }

  static std::string stored_words(const Arithmetic& a) {
    for (const auto& stored : {a.stored_raw, a.stored_scaled, a.stored_biased})
      if (stored) return fmt::format("stored in {}", name_of(*stored));
    return "not stored";
  }

  struct AskedScale {
    std::int64_t dk;  ///< 0: none
    double scale;
  };

  /// The largest error of the scores of q = (1 + a, 1 + b) and k = (-large, large), a and b being a few `ulp`; infinite
  /// where one is no number.
  std::optional<double> error_of_cancelling(const AskedScale& asked, std::int64_t keys, double ulp, double large) {
    const std::int64_t dv = ask_.value_dim(1, asked.dk);
    Case c = ask_.blank(16, keys, asked.dk, dv);
    c.scale = asked.scale;
    for (std::int64_t b = 0; b < 16; ++b) {
      ArithmeticQuestions::set(c, Slot::q, b, 0, 0, 1 + static_cast<double>(3 + b) * ulp);
      ArithmeticQuestions::set(c, Slot::q, b, 0, 1, 1 + 2 * ulp);
      ArithmeticQuestions::set(c, Slot::k, b, keys - 1, 0, -large);
      ArithmeticQuestions::set(c, Slot::k, b, keys - 1, 1, large);
      for (std::int64_t d = 0; d < dv; ++d) ArithmeticQuestions::set(c, Slot::v, b, keys - 1, d, 1);
    }
    const auto out = ask_.ask(c, ask_.output());
    if (!out) return std::nullopt;
    double most = 0;
    for (std::int64_t b = 0; b < 16; ++b) {
      const double share = (*out)[static_cast<std::size_t>(b * dv)];
      const double score = std::log(share / (1 - share) * static_cast<double>(keys - 1));
      const double wanted = -static_cast<double>(1 + b) * ulp * large * c.scale;
      const double error = std::fabs(score - wanted);
      most = error <= most ? most : std::isfinite(error) ? error : HUGE_VAL;
    }
    return most;
  }

  /// q of two large numbers that nearly cancel, times a scale that is no power of two.
  void ask_prescaled() {
    const std::optional<DType> before = a_.prescaled_q;
    a_.prescaled_q = a_.score_sums;
    ArithmeticFinding finding{.question = "q times scale before the product",
                              .declared = before ? std::string(name_of(*before)) : "no",
                              .found = {},
                              .evidence = {}};
    const auto keys = ask_.keys_from(2);
    const AskedScale asked = scale_that_rounds();
    const bool sums = format_of(a_.score_sums).precision < 24 || a_.stored_raw;
    const int bits = format_of(ask_.dtype()).precision;
    // The difference of the two is a few of their last bits, and a few units as a score.
    const double ulp = std::ldexp(1.0, 1 - bits),
                 large = std::ldexp(1.0, std::min(bits - 3, ask_.is_short() ? 14 : 100));
    if (!keys || asked.dk == 0 || sums || ulp * large < 0x1p-3) {
      finding.found = sums            ? "not told apart: scores are rounded"
                      : asked.dk == 0 ? "not told apart: no scale that rounds is taken"
                                      : "not asked: the keys do not reach far enough";
      if (before && format_of(*before).unit > unit_) a_.prescaled_q = before;
      note(std::move(finding));
      return;
    }

    const std::optional<double> shown = error_of_cancelling(asked, *keys, ulp, large);
    if (!shown) {
      finding.found = "not asked: " + ask_.failure();
      note(std::move(finding));
      return;
    }
    const double most = *shown;
    // q times scale lies between 1/2 and 1: it is rounded by half a unit roundoff.
    const auto limit = [&](double unit) { return (large + 4) * unit * 1.05; };
    const double out_noise = 3 * format_of(ask_.output()).unit + (rounded_ ? 2 * format_of(a_.weights).unit : 0.0);
    const double noise = out_noise + 32 * unit_;
    finding.evidence = fmt::format(
        "q = (1 + a, 1 + b) and k = (-K, K), whose product is exact, came out as scores that err by up to {:.3g}; q "
        "times scale rounded to {} first would err by up to {:.3g}.",
        most, name_of(ask_.dtype()), limit(format_of(ask_.dtype()).unit));
    DType format = a_.score_sums;
    for (const DType one : {DType::bf16, DType::f16, DType::f32, DType::f64})
      if (most <= out_noise + limit(format_of(one).unit)) format = one;
    const double finest = limit(unit_);
    if (most <= noise && finest > 4 * noise) {
      a_.prescaled_q = std::nullopt;
      finding.found = "no";
    } else if (most <= noise) {
      finding.found = fmt::format("not told apart: no, or in {}", name_of(a_.score_sums));
    } else {
      a_.prescaled_q = coarser(format, a_.score_sums);
      finding.found = fmt::format("rounded to {}", name_of(*a_.prescaled_q));
      finding.contradicts = !before_.prescaled_q ||
                            format_of(*a_.prescaled_q).unit >
                                std::max(format_of(*before_.prescaled_q).unit, format_of(before_.score_sums).unit);
    }
    note(std::move(finding));
  }

  AskedScale scale_that_rounds() {
    if (ask_.manifest().any_scale) return {*ask_.head_dim_from(4), 0.7};
    const AllowedExtents allowed = allowed_head_dims(ask_.manifest());
    for (const std::int64_t dk : {8, 32, 128, 2, 24, 40, 48, 80, 96})
      if (allowed.has(dk)) return {dk, inverse_root(dk)};
    return {0, 1};
  }

  /// Weights of large distances, at which log2(e) rounds the exponent.
  void ask_distant() {
    ArithmeticFinding finding{
        .question = "exp2", .declared = before_.base2 ? "may be" : "no", .found = {}, .evidence = {}};
    a_.base2 = a_.folded_exp2 = true;
    const double most = distance();
    if (most < 4 || !finite_) {
      finding.found = "not told apart";
      note(std::move(finding));
      return;
    }
    long double error = 0;
    for (const Layout& layout : layouts()) {
      if (layout.target != layout.tops + ask_.top_keys()) continue;  // in other parts other roundings show
      auto questions = plain_scores(64, 127, most / 128, layout.target);
      for (WeightQuestion& one : questions) one.tops = layout.tops;
      const auto found = read(questions, layout.keys);
      if (found) error = std::max(error, largest_error(*found, right(questions)));
    }
    const double shown = static_cast<double>(error), rounds = most * unit_;
    finding.evidence = fmt::format(
        "Weights of distances from {:.3g} to {:.3g} err by up to {:.3g}, those of distances up to 1 by {:.3g}; a product "
        "with log2(e) that is rounded errs by up to {:.3g} there.",
        most / 2, most, shown, static_cast<double>(error_), rounds);
    // Half of what 64 roundings of the exponent would show at the least.
    if (rounds / 4 < 2 * static_cast<double>(error_)) {
      finding.found = "not told apart: other errors hide it";
    } else if (shown < rounds / 4) {
      a_.base2 = a_.folded_exp2 = false;
      if (!rounded_) a_.exp_ulp = std::max(a_.exp_ulp, std::ceil(1.25 * shown / (2 * unit_) + 0.25));
      finding.found = "no: exponents are not multiplied by log2(e), or not rounded then";
    } else {
      finding.found = "yes: scores are multiplied by log2(e)";
      finding.contradicts = !before_.base2;
    }
    note(std::move(finding));
  }

  /// How far weights can be read: those of small numbers need values as large.
  [[nodiscard]] double distance() const {
    const double least = std::min(-std::log(format_of(a_.score_sums).min_normal),
                                  std::log(format_of(ask_.values()).largest) *
                                      (size_of(ask_.values()) > 2 || ask_.values() == DType::bf16 ? 1 : 0.7));
    return std::exp2(std::floor(std::log2(least)));
  }

  static constexpr double rises[] = {0.5, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24};

  /// Whether weights that were formed before a larger maximum came differ from those formed after it.
  void ask_maximum() {
    ArithmeticFinding finding{.question = "maximum", .declared = maximum_words(before_), .found = {}, .evidence = {}};
    a_.max = MaxPolicy::unstated;
    a_.lazy_nats = 0;
    if (!finite_) {
      a_.max = MaxPolicy::none;
      finding.found = "none is taken";
      finding.evidence = "Scores near 1000, whose exp no format holds, give no numbers.";
      finding.contradicts = before_.max == MaxPolicy::running || before_.max == MaxPolicy::lazy;
      note(std::move(finding));
      return;
    }
    if (format_of(a_.score_sums).precision >= 24) a_.max = MaxPolicy::running;
    finding.found = "the largest score so far, or of all keys";
    finding.evidence = "Scores near 1000 give numbers, which exp of them would not.";
    const double lag = lag_of(finding);
    if (lag > 0) {
      a_.max = MaxPolicy::lazy;
      a_.lazy_nats = lag;
      finding.contradicts = before_.max == MaxPolicy::running || (before_.max == MaxPolicy::unstated) ||
                            (before_.max == MaxPolicy::lazy && before_.lazy_nats < lag);
    }
    note(std::move(finding));
  }

  static std::string maximum_words(const Arithmetic& a) {
    if (a.max == MaxPolicy::unstated) return "any but a lazy one";
    return a.max == MaxPolicy::lazy ? fmt::format("lazy, {} nats", a.lazy_nats) : std::string(name_of(a.max));
  }

  /// By how much the maximum lags behind at most; 0: by nothing.
  double lag_of(ArithmeticFinding& finding) {
    const auto keys = ask_.keys_near(1000);
    if (!keys || *keys < 4 * ask_.top_keys() + 4) return 0;
    // So small a weight takes a value as large, and its last bits one as small.
    const double most_rise = ask_.values() == DType::f16 ? 10 : distance() / 2;
    // Bits that differ; errors of scores near 1000; errors as large as those of rounded weights.
    std::vector<bool> differs, errs, rough;
    for (const double rise : rises) {
      if (rise > most_rise) break;
      std::vector<WeightQuestion> first, last, high;
      for (int k = 0; k < 24; ++k) {
        WeightQuestion one{.pieces = {-rise, -k / 64.0}, .target = *keys - 1, .top = {}, .others = {}};
        first.push_back(one);
        one.target = 0, one.tops = *keys - ask_.top_keys();
        last.push_back(one);
        one.top = {1000, k * 1.0}, one.pieces = {1000, k * 1.0, -rise, -k / 64.0};
        high.push_back(one);
      }
      const auto after = read(first, *keys), before = read(last, *keys), offset = read(high, *keys);
      if (!after || !before || !offset) return 0;
      const double noise = std::max(unit_, format_of(a_.accumulate).unit);
      differs.push_back(largest_error(*before, *after) > noise / 4);
      errs.push_back(largest_error(*offset, right(high)) > 40 * noise + static_cast<double>(error_));
      rough.push_back(largest_error(*before, right(last)) > format_of(a_.weights).unit / 16);
    }
    // Until it follows, both weights are exponentials above the old maximum; then one of them is 1 again.
    const auto switches = [&](const std::vector<bool>& shown) -> std::size_t {
      std::size_t at = 0;
      while (at < shown.size() && shown[at] == shown[0]) ++at;
      return std::all_of(shown.begin() + static_cast<std::ptrdiff_t>(at), shown.end(),
                         [&](bool s) { return s != shown[0]; })
                 ? at
                 : shown.size();
    };
    if (differs.empty()) return 0;
    std::size_t at = differs.size();
    if (rounded_) {
      // Beside a larger one the first weight, 1, is that of an exponential which is rounded.
      if (rough[0]) at = switches(rough);
    } else if (differs[0] && reads_alike(*keys, /*before_too=*/false)) {
      at = switches(differs);
    }
    if (at == differs.size() && !rounded_ && differs[0] && !errs[0]) at = switches(errs);
    if (at >= differs.size()) {
      const bool folds = std::ranges::all_of(errs, [](bool err) { return err; });
      if ((differs[0] && !folds && !rounded_) || (rounded_ && std::ranges::count(rough, true) > 0)) {
        a_.max = MaxPolicy::unstated;
        finding.found += "; whether it lags behind is not told apart";
      }
      return 0;
    }
    finding.found =
        fmt::format("lazy: it follows only a rise of more than {} to {} nats", at > 0 ? rises[at - 1] : 0.0, rises[at]);
    finding.evidence += fmt::format(
        " The weight of a first key beside a last one that is larger by up to {} nats shows two exponentials, by {} and "
        "more one: the reference stays behind until then.",
        at > 0 ? rises[at - 1] : 0.0, rises[at]);
    return rises[at];
  }

  /// Whether weights of scores near 1000 err by more than those near 0: a maximum that is multiplied by log2(e) and
  /// rounded by itself leaves its error where the maximum changes, and cancels where it does not.
  std::optional<bool> errs_near_1000(std::int64_t target, std::int64_t top, std::int64_t keys) {
    std::vector<WeightQuestion> questions;
    questions.reserve(20);
    for (int k = 0; k < 20; ++k)
      questions.push_back(
          {.pieces = {1000, 3.0 * k, -1.5}, .target = target, .top = {1000, 3.0 * k}, .tops = top, .others = {}});
    const auto found = read(questions, keys);
    if (!found) return std::nullopt;
    return largest_error(*found, right(questions)) > 100 * unit_ + static_cast<double>(error_);
  }

  /// Weights of a key and one before it, as a larger maximum at key `top` makes them; `direct`: as they are where it
  /// came first.
  std::vector<WeightQuestion> raised(std::int64_t target, std::int64_t top, std::int64_t keys, bool backwards,
                                     bool direct) {
    const std::int64_t tops = ask_.top_keys();
    const auto at = [&](std::int64_t j) { return backwards ? keys - 1 - j : j; };
    std::vector<WeightQuestion> questions;
    for (int k = 0; k < 16; ++k) {
      const double rise = (37 + 3 * k) / 64.0;
      WeightQuestion one{.pieces = {-rise, -(11 + 7 * k) / 128.0},
                         .target = at(target),
                         .top = {},
                         .tops = backwards ? keys - top - tops : top,
                         .others = {}};
      if (!direct) one.others.push_back({at(target - 1), {-rise}});
      questions.push_back(one);
    }
    return questions;
  }

  /// Whether the weight of a key shows two roundings where a larger maximum comes at key `top`, as against `direct`,
  /// that of one which came first. Keys are counted from the last one where `backwards`.
  std::optional<bool> rescales(std::int64_t target, std::int64_t top, std::int64_t keys, bool backwards,
                               const Weights& direct) {
    if (by_offset_) {
      return errs_near_1000(backwards ? keys - 1 - target : target, backwards ? keys - top - ask_.top_keys() : top,
                            keys);
    }
    const auto found = read(raised(target, top, keys, backwards, /*direct=*/false), keys);
    if (!found) return std::nullopt;
    return largest_error(*found, direct) > std::max(unit_, rounded_ ? format_of(a_.weights).unit / 64 : 0.0) / 4;
  }

  /// The first `most` keys at which a block begins, from a search by halves of where a rescaling first shows.
  std::optional<std::vector<std::int64_t>> boundaries(std::int64_t keys, bool backwards, std::size_t most) {
    std::vector<std::int64_t> found;
    std::int64_t target = 1;
    const std::int64_t last = keys - ask_.top_keys();
    const auto direct = read(raised(ask_.top_keys(), 0, keys, backwards, /*direct=*/true), keys);
    if (!direct) return std::nullopt;
    while (found.size() < most && target + 1 <= last) {
      const auto any = rescales(target, last, keys, backwards, *direct);
      if (!any) return std::nullopt;
      if (!*any) break;
      std::int64_t low = target, high = last;  // not at low, and at high
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        const auto there = rescales(target, middle, keys, backwards, *direct);
        if (!there) return std::nullopt;
        (*there ? high : low) = middle;
      }
      found.push_back(high);
      target = high;
    }
    return found;
  }

  void ask_blocks() {
    ArithmeticFinding finding{.question = "block of keys",
                              .declared = before_.block == 0 ? "no rescaling" : fmt::format("{} keys", before_.block),
                              .found = {},
                              .evidence = {}};
    a_.block = 1;
    if (!finite_ || normalised_ || a_.max == MaxPolicy::lazy || format_of(a_.accumulate).unit > unit_ ||
        format_of(a_.score_sums).precision < 24) {
      finding.found = finite_ ? "not told apart: other roundings hide it" : "not asked: no maximum is taken";
      note(std::move(finding));
      return;
    }
    std::vector<std::string> words;
    std::optional<std::int64_t> least;
    std::int64_t longest = 0, at_longest = 0;
    bool stable = true;
    for (const std::int64_t wanted : {64, 1000, 4097}) {
      const auto keys = ask_.keys_near(wanted);
      if (!keys || *keys == longest || *keys < 4 * ask_.top_keys() + 4) continue;
      longest = *keys;
      by_offset_ = !reads_alike(*keys, /*before_too=*/true);
      if (by_offset_) {
        const auto apart = errs_near_1000(0, *keys - ask_.top_keys(), *keys);
        const auto beside = errs_near_1000(ask_.top_keys(), 0, *keys);
        stable = stable && a_.base2 && apart == true && beside == false;
      }
      if (!stable) break;
      std::vector<std::int64_t> spacings;
      for (const bool backwards : {false, true}) {
        const auto found = boundaries(*keys, backwards, wanted > 2000 ? 1 : 3);
        if (!found) {
          stable = false;
          break;
        }
        std::int64_t from = 0;
        for (const std::int64_t at : *found) spacings.push_back(at - from), from = at;
        if (!found->empty()) break;  // from the first key on
      }
      words.push_back(spacings.empty() ? fmt::format("{} keys: none", *keys)
                                       : fmt::format("{} keys: {}", *keys, fmt::join(spacings, ", ")));
      at_longest = spacings.empty() ? 0 : *std::ranges::min_element(spacings);
      for (const std::int64_t one : spacings) least = std::min(least.value_or(one), one);
    }
    if (longest == 0) {
      finding.found = "not asked: it takes too few keys";
      note(std::move(finding));
      return;
    }
    if (!stable) {
      finding.found = "not told apart: weights are not read alike at every place";
      note(std::move(finding));
      return;
    }
    finding.evidence = fmt::format(
        "{} Keys from one block to the next, of {}.",
        by_offset_
            ? "Weights of scores near 1000 err where a larger maximum comes in a later block, which rounds it by "
              "itself."
            : "The weight of a key shows one rounding of exp, and two where a larger maximum comes in a later "
              "block.",
        fmt::join(words, "; of "));
    if (least) {
      a_.block = *least;
      finding.found = *least == 1 ? "1 key" : fmt::format("{} keys", *least);
      // Of few keys the end of a part may cut a block off.
      finding.contradicts = at_longest > 0 && (before_.block == 0 ? !before_.split_merge : before_.block > at_longest);
      online_ = true;
    } else {
      a_.block = longest;
      finding.found = fmt::format("not told apart: none, the maximum being known first, or more than {} keys", longest);
    }
    note(std::move(finding));
  }

  /// Weights are the same bits wherever they stand after the maximum, and before it beside a lower key, so that a
  /// difference shows a rescaling and nothing else.
  bool reads_alike(std::int64_t keys, bool before_too) {
    const std::int64_t tops = ask_.top_keys();
    std::vector<WeightQuestion> near, far, before;
    for (int k = 0; k < 24; ++k) {
      const double lower = (3 + 5 * k) / 64.0;
      WeightQuestion one{.pieces = {-lower}, .target = tops, .top = {}, .others = {{tops + 1, {-lower - 0.375}}}};
      near.push_back(one);
      one.target = keys - 1, one.others = {{keys - 2, {-lower - 0.375}}};
      far.push_back(one);
      one.target = 1, one.tops = keys - tops, one.others = {{0, {-lower - 0.375}}};
      before.push_back(one);
    }
    const auto a = read(near, keys), b = read(far, keys), c = read(before, keys);
    // Where weights are rounded, the one before the maximum is 1, and its factor is not.
    if (!a || !b || !c || largest_error(*a, *b) > unit_ / 8) return false;
    return !before_too || rounded_ || largest_error(*a, *c) <= unit_ / 8;
  }

  /// In another block than the maximum, a product m log2(e) that is rounded by itself leaves its error.
  void ask_folded() {
    ArithmeticFinding finding{.question = "maximum folded into exp2",
                              .declared = before_.folded_exp2 ? "may be" : "no",
                              .found = {},
                              .evidence = {}};
    if (!a_.base2) {
      finding.found = "no: there is no exp2";
      note(std::move(finding));
      return;
    }
    if (!online_ || !finite_) {
      finding.found = "not told apart: within one block it cancels";
      note(std::move(finding));
      return;
    }
    long double most = 0;
    for (const std::int64_t wanted : {64, 1000}) {
      const auto keys = ask_.keys_near(wanted);
      if (!keys) continue;
      std::vector<WeightQuestion> questions;
      questions.reserve(48);
      for (int k = 0; k < 48; ++k)
        questions.push_back({.pieces = {1000, k * 1.0, -1.5},
                             .target = 0,
                             .top = {1000, k * 1.0},
                             .tops = *keys - ask_.top_keys(),
                             .others = {}});
      if (const auto found = read(questions, *keys)) most = std::max(most, largest_error(*found, right(questions)));
    }
    const double rounds = 1000 * unit_;
    finding.evidence = fmt::format(
        "Scores near 1000 in two blocks give weights that err by up to {:.3g}, those near 0 by {:.3g}; a maximum that is "
        "rounded by itself errs by up to {:.3g}.",
        static_cast<double>(most), static_cast<double>(error_), rounds);
    if (rounds / 8 < 2 * static_cast<double>(error_)) {
      finding.found = "not told apart: other errors hide it";
    } else if (most < rounds / 8) {
      a_.folded_exp2 = false;
      finding.found = "no";
    } else {
      finding.found = "yes, or the scores are rounded as much";
      finding.contradicts = !before_.folded_exp2;
    }
    note(std::move(finding));
  }

  Denominator denominator_under(const Arithmetic& arithmetic) {
    Manifest manifest = ask_.manifest();
    manifest.arithmetic.usual[ask_.dtype()] = arithmetic;
    RedeclaredKernel kernel(ask_.kernel(), std::move(manifest));
    return denominator_of(kernel, ask_.dtype());
  }

  void ask_denominators() {
    if (!(format_of(a_.weights).unit > unit_)) return;
    ArithmeticFinding finding{.question = fmt::format("rounded weights in the denominator, {}", name_of(ask_.dtype())),
                              .declared = before_.weights_in_denominator ? "yes" : "no",
                              .found = {},
                              .evidence = {}};
    Denominator found = denominator_under(a_);
    // What was stated, where it is no tighter than what was found, leaves less room for errors that hide it.
    const bool stated = format_of(a_.score_sums).unit <= format_of(before_.score_sums).unit &&
                        (!a_.stored_biased || before_.stored_biased);
    if (found.sums == Denominator::Sums::unknown && stated) {
      Arithmetic before = before_;
      before.weights = a_.weights;
      found = denominator_under(before);
    }
    a_.weights_in_denominator = found.sums != Denominator::Sums::unrounded;
    finding.found = found.sums == Denominator::Sums::unknown ? "not told apart: " + found.words : found.words;
    finding.evidence =
        "Rows of two scores were asked, whose weights lie where the format rounds them noticeably: sums of rounded, of "
        "unrounded and of normalised weights lie in different intervals.";
    finding.contradicts = found.sums == Denominator::Sums::rounded && !before_.weights_in_denominator;
    note(std::move(finding));
  }

  ArithmeticQuestions& ask_;
  ProbedArithmetic& probed_;
  Arithmetic& a_;
  Arithmetic before_;
  double unit_ = 0;          ///< of the scores
  double noise_ = 0;         ///< of weights as they are read
  long double error_ = 0;    ///< of weights of small distances
  bool rounded_ = false;     ///< the weights are
  bool ambiguous_ = false;   ///< or exp errs as much
  bool finite_ = true;       ///< scores near 1000 give numbers
  bool normalised_ = false;  ///< the weights are divided first
  bool by_offset_ = false;   ///< blocks show by a maximum that is rounded by itself
  bool online_ = false;      ///< there are blocks
};

}  // namespace

void ask_weights(ArithmeticQuestions& ask, ProbedArithmetic& probed) {
  WeightProber(ask, probed).run(ask.manifest().arithmetic.usual_for(ask.dtype()));
}

}  // namespace attest
