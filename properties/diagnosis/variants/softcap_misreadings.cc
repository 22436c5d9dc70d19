#include "properties/diagnosis/variants/softcap_misreadings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <optional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/pair_product.h"

namespace attest {
namespace {

/// What hides a key from a row.
enum class Hides : std::uint8_t { nothing, mask, position };

/// A row and a key.
struct Pair {
  long double product = 0;  ///< q·k times the scale
  long double added = 0;    ///< what an additive mask adds, without slopes; 0 of a hidden key
  Hides hides = Hides::nothing;
  bool row_sees = false;  ///< any key, or a sink
};
/// The score of a pair; nothing: the key is hidden.
using ScoreOf = std::function<std::optional<long double>(const Pair& pair)>;

/// Every pair of a case, and problems of the same shape with other scores.
class Pairs {
 public:
  explicit Pairs(const Case& c) : c_(c), shape_{batch_of(c), heads_of(c), queries_of(c), keys_of(c)} {
    Case open = c, level = c;
    open[Slot::mask] = Tensor();
    drop_variant(level, alibi_variant.name);
    const std::int64_t N = shape_[3];
    for (std::int64_t e = 0; e < shape_.elements(); ++e) {
      const auto [b, h, i, j] = shape_.index_of(e);
      Pair pair{.product = product_of_pair(c, b, h, i, j) * static_cast<long double>(c.scale)};
      if (hidden(c, b, h, i, j))
        pair.hides = hidden(open, b, h, i, j) ? Hides::position : Hides::mask;
      else
        pair.added = bias_of(level, b, h, i, j);
      pairs_.push_back(pair);
      if (j + 1 < N) continue;
      const auto row = pairs_.end() - N;
      const bool sinks = c[Slot::sink].present() && c[Slot::sink][h] != -infinity;
      const bool sees =
          sinks || std::any_of(row, pairs_.end(), [](const Pair& one) { return one.hides == Hides::nothing; });
      std::for_each(row, pairs_.end(), [sees](Pair& one) { one.row_sees = sees; });
    }
  }

  [[nodiscard]] bool any(const std::function<bool(const Pair&)>& has) const { return std::ranges::any_of(pairs_, has); }

  /// Without a cap, and with a mask that makes the scores what `score_of` says, and what slopes add to them. A row that
  /// sees no key keeps to what the manifest says of it. Nothing where a score is not finite.
  [[nodiscard]] std::optional<Case> with_scores(const ScoreOf& score_of) const {
    Case other = c_;
    drop_variant(other, softcap_variant.name);
    drop_positions(other);
    other.mask_convention = MaskConvention::post_scale;
    Tensor mask(DType::f64, shape_);
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const Pair& pair = pairs_[static_cast<std::size_t>(e)];
      const std::optional<long double> score = pair.row_sees ? score_of(pair) : std::nullopt;
      const double added = score ? static_cast<double>(*score - pair.product) : -infinity;
      if (score && !std::isfinite(added)) return std::nullopt;
      mask.set(e, added);
    }
    other[Slot::mask] = std::move(mask);
    return other;
  }

 private:
  const Case& c_;
  const Shape shape_;
  std::vector<Pair> pairs_;
};

class SoftcapReadings {
 public:
  explicit SoftcapReadings(const Case& c) : c_(c), cap_(c.softcap), pairs_(c) {
    Case none = c;
    drop_variant(none, softcap_variant.name);
    found_.push_back({"there were no softcap", "Leave \"softcap\" out of \"variants\".", std::move(none)});
    other_arguments();
    other_softcaps();
    other_curves();
    masks();
    if (c[Slot::sink].present()) sinks();
  }
  [[nodiscard]] std::vector<MisreadSoftcap> take() { return std::move(found_); }

 private:
  /// c' tanh(s' q·k / c'), of another c' and another scale s'.
  void add(std::string words, std::string remedy, double softcap, double scale) {
    const auto valid = [](double x) { return x > 0 && x < infinity; };
    if (!valid(softcap) || !valid(scale)) return;
    Case other = c_;
    other.softcap = softcap, other.scale = scale;
    found_.push_back({std::move(words), std::move(remedy), std::move(other)});
  }
  void add_scores(std::string words, std::string remedy, const ScoreOf& score_of) {
    if (std::optional<Case> other = pairs_.with_scores(score_of))
      found_.push_back({std::move(words), std::move(remedy), *std::move(other)});
  }
  [[nodiscard]] long double capped(long double t) const { return cap_ * std::tanh(t / cap_); }

  void other_arguments() {
    const double c = c_.softcap, scale = c_.scale;
    add("q·k were capped before it is scaled", "In the adapter: pass softcap / scale.", scale * c, scale);
    add("the scale were applied before the cap and again after it", "", scale * c, scale * scale);
    add("t became tanh(t/c), and not c·tanh(t/c)", "", 1, scale / c);
    add("t became c·tanh(t), and not c·tanh(t/c)", "In the adapter: pass scale / softcap.", c, scale * c);
    add("t became c·tanh(c·t), and not c·tanh(t/c)", "", c, scale * c * c);
    add("the softcap were 1/c", "In the adapter: pass 1 / softcap.", 1 / c, scale);
    add("the softcap were that of scores to base 2", "In the adapter: pass softcap · log2(e).", c * std::numbers::ln2,
        scale);
    add("the softcap were multiplied by log2(e)", "In the adapter: pass softcap / log2(e).", c * std::numbers::log2e,
        scale);
  }

  void other_softcaps() {
    // Of models that have one: Grok-1 and Gemma 2.
    for (const int fixed : {20, 30, 50})
      add(fmt::format("the softcap were {}, whatever is asked", fixed),
          fmt::format("In the adapter: raise Unsupported for any other softcap than {}.", fixed), fixed, c_.scale);
    add("the softcap were cut to a whole number",
        "In the adapter: raise Unsupported for a softcap that is no whole number.", std::trunc(c_.softcap), c_.scale);
  }

  void other_curves() {
    const auto of_visible = [&](std::string words, long double (*made)(long double t, long double cap)) {
      add_scores(std::move(words), "", [&, made](const Pair& pair) -> std::optional<long double> {
        if (pair.hides != Hides::nothing) return std::nullopt;
        return made(pair.product, cap_) + pair.added;
      });
    };
    of_visible("t were cut off at -c and c, without a tanh",
               [](long double t, long double cap) { return std::clamp(t, -cap, cap); });
    of_visible("t were capped only above 0",
               [](long double t, long double cap) { return t > 0 ? cap * std::tanh(t / cap) : t; });
    of_visible("t were capped only beyond c",
               [](long double t, long double cap) { return std::fabs(t) > cap ? cap * std::tanh(t / cap) : t; });
    of_visible("t became t·tanh(t/c), and not c·tanh(t/c)",
               [](long double t, long double cap) { return t * std::tanh(t / cap); });
    of_visible("t became t·tanh(t), and not c·tanh(t/c)", [](long double t, long double) { return t * std::tanh(t); });
  }

  /// The cap after the mask: of -inf tanh makes -1.
  void masks() {
    const bool masked = c_.mask().present(), adds = masked && c_.mask().dtype() != DType::boolean;
    const std::string remedy = R"(State "excludes": ["mask"] of "softcap" in "variants".)";
    const auto after_the_mask = [&](std::string words, std::string remedy_here, Hides most) {
      add_scores(std::move(words), std::move(remedy_here), [&, most](const Pair& pair) -> std::optional<long double> {
        if (pair.hides == Hides::nothing) return capped(pair.product + pair.added);
        return pair.hides <= most ? std::optional(-cap_) : std::nullopt;
      });
    };
    if (adds) {
      const auto scale = static_cast<long double>(c_.scale);
      const auto of_visible = [&](std::string words, const std::function<long double(const Pair&)>& score) {
        add_scores(std::move(words), remedy, [&](const Pair& pair) {
          return pair.hides == Hides::nothing ? std::optional(score(pair)) : std::nullopt;
        });
      };
      of_visible("the mask were multiplied by the scale",
                 [&](const Pair& pair) { return capped(pair.product) + scale * pair.added; });
      of_visible("the mask were added before scale and cap",
                 [&](const Pair& pair) { return capped(pair.product + scale * pair.added); });
      after_the_mask("the cap were taken after the mask", remedy, Hides::nothing);
    }
    if (masked)
      after_the_mask("the cap were taken after the mask, and a key that it hides had the score -c", remedy,
                     Hides::mask);
    const bool by_position = pairs_.any([](const Pair& pair) { return pair.hides == Hides::position; });
    if (!masked && !by_position) return;
    add_scores("hidden keys had the score -c", remedy, [&](const Pair& pair) -> std::optional<long double> {
      return pair.hides == Hides::nothing ? capped(pair.product) + pair.added : -cap_;
    });
    after_the_mask("the cap were taken after mask and causal form, and a hidden key had the score -c", remedy,
                   Hides::position);
  }

  void sinks() {
    const Tensor& sinks = c_[Slot::sink];
    Case other = c_;
    // In f64, which holds what becomes of every other format.
    other[Slot::sink] = mapped(Tensor(DType::f64, sinks.shape()), [&](std::int64_t h, double) {
      return static_cast<double>(capped(static_cast<long double>(sinks[h])));
    });
    found_.push_back(
        {"the sink were capped, too", R"(State "excludes": ["sink"] of "softcap" in "variants".)", std::move(other)});
  }

  const Case& c_;
  const long double cap_;
  const Pairs pairs_;
  std::vector<MisreadSoftcap> found_;
};

}  // namespace

std::vector<MisreadSoftcap> misread_softcaps(const Case& c) {
  return c.softcap > 0 ? SoftcapReadings(c).take() : std::vector<MisreadSoftcap>();
}

}  // namespace attest
