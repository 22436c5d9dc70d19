#include "properties/diagnosis/variants/alibi_misreadings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <optional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/other_sights.h"
#include "properties/diagnosis/pair_product.h"

namespace attest {
namespace {

/// Kernels take so many rows or keys at a time.
constexpr std::int64_t tiles[] = {16, 32, 64, 128};

/// Of an additive mask its entry; of a boolean one, and of none, 0 or -inf.
double entry_of(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Tensor& mask = c.mask();
  if (!mask.present()) return 0;
  const double entry = mask_entry(mask, b, h, i, j);
  if (mask.dtype() != DType::boolean) return entry;
  return entry == 0 ? -infinity : 0.0;
}

Tensor in_f32_or_f64(const Shape& shape, const std::vector<double>& values) {
  const bool fits = std::ranges::all_of(values, [](double x) { return round_to(DType::f32, x) == x; });
  return Tensor(fits ? DType::f32 : DType::f64, shape, values);
}

double distance(const SlopePlace& at) {
  return static_cast<double>(std::abs(at.position - at.place));
}

/// Those that models with ALiBi are trained with (Press, Smith and Lewis 2022, "Train short, test long", section 3),
/// 2^(-8(h+1)/n) of n heads; of a number that is no power of 2 the next lower one's, and then every other one of twice
/// as many.
double usual_slope(std::int64_t h, std::int64_t heads) {
  std::int64_t n = 1;
  while (2 * n <= heads) n *= 2;
  const double step = -8.0 / static_cast<double>(n);
  return std::exp2(h < n ? step * static_cast<double>(h + 1) : step / 2 * static_cast<double>(2 * (h - n) + 1));
}

class SlopeReadings {
 public:
  explicit SlopeReadings(const Case& c)
      : c_(c), slopes_(c[Slot::alibi_slopes]), heads_(heads_of(c)), M_(queries_of(c)), N_(keys_of(c)) {
    Case none = c;
    drop_variant(none, alibi_variant.name);
    add("there were no slopes", R"(Leave "alibi" out of "variants".)", std::move(none));
    other_sizes();
    if (heads_ > 1) other_heads();
    usual();
    other_entries();
    roundings();
    signs();
    other_positions();
    other_distances();
    for (const std::int64_t tile : tiles) of_tiles(tile);
    beside_others();
  }
  [[nodiscard]] std::vector<MisreadSlopes> take() { return std::move(found_); }

 private:
  void add(std::string words, std::string remedy, Case problem, bool is_near = false) {
    found_.push_back(
        {.words = std::move(words), .remedy = std::move(remedy), .is_near = is_near, .problem = std::move(problem)});
  }
  void add_term(std::string words, std::string remedy, const SlopeTerm& term, bool is_near = false) {
    add(std::move(words), std::move(remedy), with_slope_terms(c_, term), is_near);
  }

  /// Other slopes, of the entry's row of them and the head. None where one is not finite.
  using SlopeAt = std::function<double(std::int64_t entry, std::int64_t h)>;
  void add_slopes(std::string words, std::string remedy, const SlopeAt& slope, bool is_near = false) {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(slopes_.elements()));
    for (std::int64_t e = 0; e < slopes_.elements(); ++e) values.push_back(slope(e / heads_, e % heads_));
    if (!std::ranges::all_of(values, [](double x) { return std::isfinite(x); })) return;
    Case other = c_;
    other[Slot::alibi_slopes] = in_f32_or_f64(slopes_.shape(), values);
    add(std::move(words), std::move(remedy), std::move(other), is_near);
  }
  [[nodiscard]] double own(std::int64_t entry, std::int64_t h) const { return slopes_[entry * heads_ + h]; }
  void add_times(std::string words, std::string remedy, double factor) {
    add_slopes(std::move(words), std::move(remedy),
               [&](std::int64_t entry, std::int64_t h) { return factor * own(entry, h); });
  }
  void add_of_head(std::string words, std::string remedy, const std::function<std::int64_t(std::int64_t h)>& head) {
    add_slopes(std::move(words), std::move(remedy),
               [&](std::int64_t entry, std::int64_t h) { return own(entry, head(h)); });
  }

  void other_sizes() {
    add_times("slopes were multiplied by the scale, as where they are added before it",
              "In the adapter: pass alibi_slopes / scale.", c_.scale);
    add_times("slopes were divided by the scale", "In the adapter: pass alibi_slopes · scale.", 1 / c_.scale);
    add_times("slopes were those of scores to base 2", "In the adapter: pass alibi_slopes · log2(e).",
              std::numbers::ln2);
    add_times("slopes were multiplied by log2(e)", "In the adapter: pass alibi_slopes / log2(e).", std::numbers::log2e);
    add_times("slopes counted twice", "In the adapter: pass alibi_slopes / 2.", 2);
    add_times("slopes had the other sign", "In the adapter: pass -alibi_slopes.", -1);
    if (c_.softcap == 0) return;
    add_times("slopes were multiplied by the softcap", "In the adapter: pass alibi_slopes / softcap.", c_.softcap);
    add_times("slopes were divided by the softcap", "In the adapter: pass alibi_slopes · softcap.", 1 / c_.softcap);
  }

  void other_heads() {
    const std::int64_t group = heads_ / c_.k().shape()[1];
    const std::string of_one = "In the adapter: raise Unsupported where heads have slopes that differ.";
    add_of_head("every head had the slope of the first", of_one, [](std::int64_t) { return std::int64_t{0}; });
    add_of_head("a head had the slope of the next one, and the last that of the first",
                "In the adapter: pass alibi_slopes with the last one first.",
                [&](std::int64_t h) { return (h + 1) % heads_; });
    add_of_head("a head had the slope of the one before, and the first that of the last",
                "In the adapter: pass alibi_slopes with the first one last.",
                [&](std::int64_t h) { return (h + heads_ - 1) % heads_; });
    add_of_head("slopes of heads were in reverse order", "In the adapter: pass alibi_slopes in reverse order.",
                [&](std::int64_t h) { return heads_ - 1 - h; });
    if (group == 1) return;
    add_of_head("a head had the slope at the place of its key-value head", of_one,
                [&](std::int64_t h) { return h / group; });
    add_of_head("the heads of a group had the slope of its first", of_one,
                [&](std::int64_t h) { return h / group * group; });
    add_of_head("heads had the slopes of other heads of the groups in turn", "",
                [&](std::int64_t h) { return h % group * (heads_ / group) + h / group; });
  }

  void usual() {
    const std::string remedy = "In the adapter: raise Unsupported for other slopes than those that the kernel makes.";
    add_slopes("slopes were 2^(-8(h+1)/H) of head h of H, whatever is asked", remedy,
               [&](std::int64_t, std::int64_t h) {
                 return std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(heads_));
               });
    add_slopes("slopes were those that models with ALiBi have of so many heads, whatever is asked", remedy,
               [&](std::int64_t, std::int64_t h) { return usual_slope(h, heads_); });
  }

  /// One row of slopes that all share is theirs whoever reads it.
  void other_entries() {
    const std::int64_t entries = slopes_.shape()[0];
    if (entries == 1) return;
    add_slopes("every batch entry had the slopes of the first", R"(State "per_batch": false of "alibi" in "variants".)",
               [&](std::int64_t, std::int64_t h) { return own(0, h); });
    if (entries == heads_)
      add_slopes("batch entries and heads of slopes were exchanged",
                 "In the adapter: pass alibi_slopes with its axes exchanged, laid out row by row.",
                 [&](std::int64_t entry, std::int64_t h) { return own(h, entry); });
  }

  /// Of slopes, of what they are multiplied by, and of the product.
  void roundings() {
    for (const DType format : {DType::f16, DType::bf16}) {
      const auto rounded = [format](double x) { return round_to(format, x); };
      add_slopes(
          fmt::format("slopes were rounded to {}", name_of(format)),
          fmt::format("In the adapter: raise Unsupported for slopes that {} does not hold.", name_of(format)),
          [&](std::int64_t entry, std::int64_t h) { return rounded(own(entry, h)); }, /*is_near=*/true);
      const auto most = static_cast<double>(std::int64_t{1} << format_of(format).precision);
      const std::string remedy = fmt::format("State \"max_keys\": {:.0f}, and \"max_queries\" likewise.", most);
      add_term(
          fmt::format("distances were rounded to {}", name_of(format)), remedy,
          [&](const SlopePlace& at) { return -at.slope * rounded(distance(at)); }, /*is_near=*/true);
      add_term(
          fmt::format("positions of rows and keys were rounded to {}", name_of(format)), remedy,
          [&](const SlopePlace& at) {
            return -at.slope *
                   std::fabs(rounded(static_cast<double>(at.position)) - rounded(static_cast<double>(at.place)));
          },
          /*is_near=*/true);
      add_term(
          fmt::format("what slopes add were rounded to {}", name_of(format)), "",
          [&](const SlopePlace& at) { return rounded(-at.slope * distance(at)); }, /*is_near=*/true);
    }
    for (const int bits : {8, 16})
      add_term(fmt::format("distances were numbers of {} bits, which begin again at 0", bits),
               fmt::format("State \"max_keys\": {}, and \"max_queries\" likewise.", 1 << bits),
               [&](const SlopePlace& at) { return -at.slope * std::fmod(distance(at), std::ldexp(1.0, bits)); });
  }

  void signs() {
    const std::string causal = R"(State "requires": ["causal"] of "alibi" in "variants".)";
    const auto ahead = [](const SlopePlace& at) { return static_cast<double>(at.place - at.position); };
    add_slopes("slopes below 0 had no sign", "In the adapter: raise Unsupported for slopes below 0.",
               [&](std::int64_t entry, std::int64_t h) { return std::fabs(own(entry, h)); });
    add_slopes("slopes below 0 were 0", "In the adapter: raise Unsupported for slopes below 0.",
               [&](std::int64_t entry, std::int64_t h) { return std::max(own(entry, h), 0.0); });
    add_term("slopes multiplied j - p with its sign, as where no key lies behind a row's position", causal,
             [&](const SlopePlace& at) { return at.slope * ahead(at); });
    add_term("slopes multiplied p - j with its sign", "", [&](const SlopePlace& at) { return -at.slope * ahead(at); });
    add_term("slopes added nothing to keys behind a row's position", causal,
             [&](const SlopePlace& at) { return at.slope * std::min(ahead(at), 0.0); });
    add_term("slopes added nothing to keys before a row's position", "",
             [&](const SlopePlace& at) { return -at.slope * std::max(ahead(at), 0.0); });
  }

  /// -slope |p' - j| of another position p'.
  void add_position(std::string words, std::string remedy,
                    const std::function<std::int64_t(const SlopePlace& at)>& position) {
    add_term(std::move(words), std::move(remedy),
             [&](const SlopePlace& at) { return -at.slope * static_cast<double>(std::abs(position(at) - at.place)); });
  }
  void other_positions() {
    const Causal counted = c_.causal != Causal::none ? c_.causal : c_.alignment;
    const bool from_last = counted == Causal::bottom_right;
    // What windows and chunks hide stays where it is.
    const bool alone = !hides_by_position(c_);
    std::string words = from_last ? "positions of slopes counted from the first keys, without N - M"
                                  : "positions of slopes counted from the last keys, as i + N - M";
    if (alone) {
      Case other = c_;
      other.alignment = from_last ? Causal::top_left : Causal::bottom_right;
      std::string remedy =
          fmt::format(R"(State "alignment": ["{}"] of "alibi" in "variants".)", name_of(other.alignment));
      add(std::move(words), std::move(remedy), std::move(other));
    } else {
      const std::int64_t more = from_last ? M_ - N_ : N_ - M_;
      add_position(std::move(words), "", [=](const SlopePlace& at) { return at.position + more; });
    }
    if (from_last)
      add_position("positions of slopes were i + M - N", "",
                   [this](const SlopePlace& at) { return at.position + 2 * (M_ - N_); });
    add_position("positions of slopes were one more", "", [](const SlopePlace& at) { return at.position + 1; });
    add_position("positions of slopes were one less", "", [](const SlopePlace& at) { return at.position - 1; });
    const std::int64_t first = from_last ? N_ - M_ : 0;
    add_position("every row had the position of the first", "", [=](const SlopePlace&) { return first; });
  }

  void other_distances() {
    add_term("slopes multiplied the square of the distance", "",
             [](const SlopePlace& at) { return -at.slope * distance(at) * distance(at); });
    // All scores of a row are larger by the same then, which is nothing but to a sink.
    if (c_[Slot::sink].present())
      add_term("slopes added slope·j, and the sink were not moved by slope·p as the row's scores are",
               R"(State "excludes": ["sink"] of "alibi" in "variants".)",
               [](const SlopePlace& at) { return at.slope * static_cast<double>(at.place); });
  }

  void of_tiles(std::int64_t tile) {
    const auto add_sized = [&](std::string words, const std::function<std::int64_t(const SlopePlace& at)>& away) {
      add_term(std::move(words), "",
               [&](const SlopePlace& at) { return -at.slope * static_cast<double>(std::abs(away(at))); });
      found_.back().size = tile;
    };
    if (M_ > tile)
      add_sized("positions of rows counted from the first of their tile of #",
                [&](const SlopePlace& at) { return at.position - at.row / tile * tile - at.place; });
    if (N_ <= tile) return;
    add_sized("places of keys counted from the first of their tile of #",
              [&](const SlopePlace& at) { return at.position - at.place % tile; });
    add_sized("all keys of a tile of # were as far as the first of it",
              [&](const SlopePlace& at) { return at.position - at.place / tile * tile; });
  }

  /// Without a cap, and with a mask that makes scores what `score` says of the scaled product, what the slope adds and
  /// the mask's entry. Keys that are hidden stay so.
  using ScoreOf = std::function<long double(long double t, long double sloped, long double entry)>;
  void add_scores(std::string words, std::string remedy, const ScoreOf& score) {
    bool finite = true;
    Case other = with_slope_terms(c_, [&](const SlopePlace& at) {
      const double entry = entry_of(c_, at.batch, at.head, at.row, at.key);
      if (entry == -infinity) return 0.0;
      const long double t = product(at);
      const long double made = score(t, -static_cast<long double>(at.slope) * distance(at), entry) - t - entry;
      finite = finite && std::isfinite(static_cast<double>(made));
      return static_cast<double>(made);
    });
    drop_variant(other, softcap_variant.name);
    if (finite) add(std::move(words), std::move(remedy), std::move(other));
  }
  [[nodiscard]] long double product(const SlopePlace& at) const {
    return product_of_pair(c_, at.batch, at.head, at.row, at.key) * static_cast<long double>(c_.scale);
  }

  void beside_others() {
    const bool adds = c_.mask().present() && c_.mask().dtype() != DType::boolean;
    if (c_.softcap > 0) {
      const std::string remedy = R"(State "excludes": ["softcap"] of "alibi" in "variants".)";
      const auto cap = static_cast<long double>(c_.softcap), scale = static_cast<long double>(c_.scale);
      const auto capped_at = [cap](long double t) { return cap * std::tanh(t / cap); };
      add_scores("the cap were taken after slopes, as with FlashInfer", remedy,
                 [&](long double t, long double sloped, long double entry) { return capped_at(t + sloped) + entry; });
      add_scores(
          "slopes were added before scale and cap", remedy,
          [&](long double t, long double sloped, long double entry) { return capped_at(t + scale * sloped) + entry; });
      if (adds)
        add_scores("the cap were taken after mask and slopes", remedy,
                   [&](long double t, long double sloped, long double entry) { return capped_at(t + sloped + entry); });
    }
    if (!adds) return;
    const std::string remedy = R"(State "excludes": ["additive-mask"] of "alibi" in "variants".)";
    const auto entry_at = [&](const SlopePlace& at) {
      const double entry = entry_of(c_, at.batch, at.head, at.row, at.key);
      return entry == -infinity ? 0.0 : entry;
    };
    // Beside the entry itself, which stays.
    add_term("slopes multiplied the mask and nothing else, as with ggml", remedy,
             [&](const SlopePlace& at) { return (at.slope - 1) * entry_at(at); });
    add_term("slopes multiplied the mask, too", remedy,
             [&](const SlopePlace& at) { return (at.slope - 1) * entry_at(at) - at.slope * distance(at); });
    add_term("the mask were not there beside slopes, but for what it hides", remedy,
             [&](const SlopePlace& at) { return -entry_at(at) - at.slope * distance(at); });
  }

  const Case& c_;
  const Tensor& slopes_;
  const std::int64_t heads_, M_, N_;
  std::vector<MisreadSlopes> found_;
};

}  // namespace

std::vector<MisreadSlopes> misread_slopes(const Case& c) {
  return c[Slot::alibi_slopes].present() ? SlopeReadings(c).take() : std::vector<MisreadSlopes>();
}

Case with_slope_terms(const Case& c, const SlopeTerm& term) {
  Case other = c;
  drop_variant(other, alibi_variant.name);
  other.mask_convention = MaskConvention::post_scale;
  const std::int64_t N = keys_of(c);
  Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), N});
  std::optional<Sequence> own;
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    if (j == 0) own = sequence_at(c, b, i);
    const double entry = entry_of(c, b, h, i, j);
    if (!own || !has_key(*own, j) || entry == -infinity) {
      mask.set(e, entry);
      continue;
    }
    const SlopePlace at{.batch = b,
                        .head = h,
                        .row = i,
                        .key = j,
                        .position = position(sight_rule(c), i - own->first_query, own->queries, own->keys),
                        .place = j - own->first_key,
                        .slope = slope_of(c, b, h)};
    mask.set(e, entry + term(at));
  }
  other[Slot::mask] = std::move(mask);
  return other;
}

Case with_slopes_as_mask(const Case& c) {
  if (!c[Slot::alibi_slopes].present()) return c;
  return with_slope_terms(c, [](const SlopePlace& at) { return -at.slope * distance(at); });
}

Case with_slopes_times(const Case& c, double factor) {
  const Tensor& slopes = c[Slot::alibi_slopes];
  if (!slopes.present()) return c;
  std::vector<double> values = slopes.to_doubles();
  for (double& slope : values) slope *= factor;
  Case other = c;
  other[Slot::alibi_slopes] = in_f32_or_f64(slopes.shape(), values);
  return other;
}

}  // namespace attest
