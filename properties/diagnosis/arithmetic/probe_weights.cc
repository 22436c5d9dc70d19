#include "properties/diagnosis/arithmetic/probe_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>

#include "core/kernel/limits.h"
#include "properties/diagnosis/arithmetic/probe_denominator.h"
#include "properties/diagnosis/arithmetic/probe_sums.h"
#include "properties/generators/stream.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

/// Scores that every format holds: -k units, from the first k to the last.
std::vector<WeightQuestion> plain_scores(int a, int b, double unit, std::int64_t target) {
  std::vector<WeightQuestion> questions;
  for (int k = a; k <= b; ++k) questions.push_back({.pieces = {-k * unit}, .target = target, .top = {}, .others = {}});
  return questions;
}

class WeightProber {
 public:
  WeightProber(ArithmeticQuestions& ask, ProbedArithmetic& probed)
      : ask_(ask), probed_(probed), a_(probed.declare), before_(ask.manifest().arithmetic.usual_for(ask.dtype())) {}

  SeenWeights run() {
    const int sums = format_of(a_.accumulate).precision, wide = format_of(ask_.dtype()).precision;
    ask_.read_bits(sums <= 24 ? sums : std::max(48, wide));
    seen_.unit = format_of(a_.score_sums).unit;
    ask_normalised();
    seen_.answered = ask_exponentials();
    if (!seen_.answered) return seen_;
    ask_large_scores();
    ask_prescaled();
    ask_distant();
    ask_denominators();
    return seen_;
  }

 private:
  void note(ArithmeticFinding finding) { probed_.findings.push_back(std::move(finding)); }

  std::optional<Weights> read(const std::vector<WeightQuestion>& questions, std::int64_t keys) {
    return ask_.weights(questions, keys);
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
    seen_.noise = format_of(a_.accumulate).unit;
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
      shown.error = largest_error(*found, exact_weights(questions));
      shown.wide = shown.error <= 64 * std::max(seen_.unit, seen_.noise);
      for (const DType format : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2}) {
        const double unit = format_of(format).unit;
        if (shown.format || unit <= 4 * std::max(seen_.unit, seen_.noise) || shown.error > 2.1 * unit) continue;
        if (share_in(format, *found, seen_.noise) >= 0.99) shown.format = format;
      }
      // Far from it a weight may be rescaled, which errs by as many exponentials again.
      if (layout.target == layout.tops + ask_.top_keys() || all.size() == 1)
        seen_.error = std::max(seen_.error, shown.error);
      widest = std::max(widest, shown.error);
    }
    const std::string words = fmt::format(
        "Weights of 128 distances between 1/128 and 1 were read bit by bit, of 8 keys and of 1000, beside the largest "
        "and far from it: the largest relative errors are {:.3g} and {:.3g}.",
        static_cast<double>(seen_.error), static_cast<double>(widest));
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
      seen_.normalised = true;
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
      const bool coarse = seen_.noise > seen_.unit;
      a_.weights = coarse ? a_.accumulate : a_.score_sums;
      finding.found = fmt::format("not rounded: as wide as {}", coarse ? "the sums" : "the scores");
      const DType own = size_of(ask_.dtype()) > 2 ? DType::f16 : ask_.dtype();
      finding.evidence +=
          fmt::format(" Weights rounded to {} would err by up to {:.3g}.", name_of(own), format_of(own).unit);
    } else if (narrow != all.end() &&
               std::ranges::all_of(all, [&](const Shown& one) { return one.wide || one.format == narrow->format; })) {
      seen_.rounded = true;
      a_.weights = *narrow->format;
      const bool everywhere = std::ranges::none_of(all, &Shown::wide);
      finding.found = fmt::format("rounded to {}{}", name_of(a_.weights),
                                  everywhere ? "" : ", but not in every place, such as alone in a block");
      finding.evidence += fmt::format(" {} are numbers of {}, which few would be otherwise.",
                                      everywhere ? "All" : "All of one place", name_of(a_.weights));
    } else {
      // Divided by their sum first and rounded then: two roundings in what is read.
      seen_.rounded = true;
      DType format = DType::f8_e5m2;
      for (const DType one : {DType::f8_e4m3, DType::bf16, DType::f16, DType::f32})
        if (format_of(one).unit > seen_.unit && widest <= 2.1 * format_of(one).unit) format = one;
      a_.weights = format;
      a_.normalise_first = seen_.normalised = true;
      seen_.ambiguous = true;
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
    if (seen_.rounded && !seen_.ambiguous) {
      // All are the nearest numbers of the format, or nearly all: an error of a 64th of its last bit would move some.
      // To declare that much would say of exp what only the rounding is known to do.
      const double hidden = std::max(format_of(a_.weights).unit / 64, seen_.noise);
      a_.exp_ulp = before_.exp_ulp;
      finding.found = fmt::format("not told below {:.2g} of it: the rounding of the weights to {} hides it", hidden,
                                  name_of(a_.weights));
      finding.evidence += before_.exp_ulp > 0
                              ? fmt::format(" exp_ulp {} is declared as it was.", before_.exp_ulp)
                              : " exp_ulp is left out, so that 4 units roundoff count: state it where exp is coarser.";
      note(std::move(finding));
      return;
    }
    const double relative = static_cast<double>(seen_.error) + (seen_.noise > seen_.unit ? seen_.noise : 0);
    // An ulp of the manifest is two units roundoff, relatively.
    finding.found = fmt::format("up to {:.2g} ulp of {}", relative / (2 * seen_.unit), name_of(a_.score_sums));
    // Where exp is wrong by far more than the scores' format makes it, a narrower one says the same: of double
    // precision an exp of single precision, and whatever is wrong by a quarter of itself, of which a bound allows
    // anything.
    for (const DType format : {DType::f32, DType::f16, DType::bf16}) {
      const double unit = format_of(format).unit;
      const bool far = relative > 0.25 || (format == DType::f32 && relative > unit / 4);
      if (unit <= seen_.unit || !far) continue;
      a_.score_sums = format, seen_.unit = unit;
      finding.evidence += fmt::format(" Scores are declared in {}, whose exp is no better.", name_of(format));
    }
    a_.exp_ulp = std::min(std::ceil(1.25 * relative / (2 * seen_.unit) + 0.25), 0.25 / seen_.unit);
    const double allowed = before_.exp_ulp > 0 ? before_.exp_ulp : 2;
    finding.contradicts = !seen_.rounded && static_cast<double>(seen_.error) >
                                                2 * allowed * format_of(before_.score_sums).unit + 2 * seen_.noise;
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
      error = std::max(error, largest_error(*found, exact_weights(questions)));
    }
    seen_.finite = std::isfinite(static_cast<double>(error));
    // Without a maximum, exp of 1000 is too large.
    if (!seen_.finite) {
      finding.found = "not asked: scores near 1000 give no numbers";
      note(std::move(finding));
      return;
    }
    // log2(e) may round scores near 1000 a few times.
    const long double noise = 2 * seen_.error + 8 * 1000 * static_cast<long double>(seen_.unit);
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
      if (before && format_of(*before).unit > seen_.unit) a_.prescaled_q = before;
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
    const double out_noise = 3 * format_of(ask_.output()).unit + (seen_.rounded ? 2 * format_of(a_.weights).unit : 0.0);
    const double noise = out_noise + 32 * seen_.unit;
    finding.evidence = fmt::format(
        "q = (1 + a, 1 + b) and k = (-K, K), whose product is exact, came out as scores that err by up to {:.3g}; q "
        "times scale rounded to {} first would err by up to {:.3g}.",
        most, name_of(ask_.dtype()), limit(format_of(ask_.dtype()).unit));
    DType format = a_.score_sums;
    for (const DType one : {DType::bf16, DType::f16, DType::f32, DType::f64})
      if (most <= out_noise + limit(format_of(one).unit)) format = one;
    const double finest = limit(seen_.unit);
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
    const double most = readable_distance(ask_, a_);
    if (most < 4 || !seen_.finite) {
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
      if (found) error = std::max(error, largest_error(*found, exact_weights(questions)));
    }
    const double shown = static_cast<double>(error), rounds = most * seen_.unit;
    finding.evidence = fmt::format(
        "Weights of distances from {:.3g} to {:.3g} err by up to {:.3g}, those of distances up to 1 by {:.3g}; a product "
        "with log2(e) that is rounded errs by up to {:.3g} there.",
        most / 2, most, shown, static_cast<double>(seen_.error), rounds);
    // Half of what 64 roundings of the exponent would show at the least.
    if (rounds / 4 < 2 * static_cast<double>(seen_.error)) {
      finding.found = "not told apart: other errors hide it";
    } else if (shown < rounds / 4) {
      a_.base2 = a_.folded_exp2 = false;
      if (!seen_.rounded) a_.exp_ulp = std::max(a_.exp_ulp, std::ceil(1.25 * shown / (2 * seen_.unit) + 0.25));
      finding.found = "no: exponents are not multiplied by log2(e), or not rounded then";
    } else {
      finding.found = "yes: scores are multiplied by log2(e)";
      finding.contradicts = !before_.base2;
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
    if (!(format_of(a_.weights).unit > seen_.unit)) return;
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
  SeenWeights seen_;
};

}  // namespace

double readable_distance(const ArithmeticQuestions& ask, const Arithmetic& a) {
  const DType values = ask.values();
  const double least = std::min(-std::log(format_of(a.score_sums).min_normal),
                                std::log(format_of(values).largest) * (values == DType::f16 ? 0.7 : 1));
  return std::exp2(std::floor(std::log2(least)));
}

SeenWeights ask_weights(ArithmeticQuestions& ask, ProbedArithmetic& probed) {
  return WeightProber(ask, probed).run();
}

}  // namespace attest
