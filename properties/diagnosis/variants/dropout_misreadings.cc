#include "properties/diagnosis/variants/dropout_misreadings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/pair_product.h"

namespace attest {
namespace {

/// Kernels take so many rows or keys at a time.
constexpr std::int64_t tiles[] = {16, 32, 64, 128};

/// Batch entry, head, row and key.
using Place = std::array<std::int64_t, 4>;

class DropoutReadings {
 public:
  explicit DropoutReadings(const Case& c) : c_(c), keep_(c[Slot::keep]), p_(c.dropout_p) {
    other_choices();
    if (p_ > 0) other_factors();
    before_the_weights();
    other_pages();
    other_places();
    for (const std::int64_t tile : tiles) of_tiles(tile);
  }
  [[nodiscard]] std::vector<MisreadDropout> take() { return std::move(found_); }

 private:
  void add(std::string words, std::string remedy, Case problem) {
    found_.push_back({.words = std::move(words), .remedy = std::move(remedy), .problem = std::move(problem)});
  }
  [[nodiscard]] Case without_dropout() const {
    Case other = c_;
    drop_variant(other, dropout_variant.name);
    return other;
  }

  /// keep as a function of its place, of the page of its own that serves the entry and the head.
  using KeptAt = std::function<double(const Place& at)>;
  [[nodiscard]] Case with_keep(const KeptAt& kept) const {
    Case other = c_;
    other[Slot::keep] = mapped(keep_, [&](std::int64_t e, double) { return kept(keep_.shape().index_of(e)); });
    return other;
  }
  [[nodiscard]] double kept_at(const Place& at) const { return keep_.at(at[0], at[1], at[2], at[3]); }
  /// What keep says of another place.
  void add_moved(std::string words, std::string remedy, const std::function<Place(const Place& at)>& from) {
    add(std::move(words), std::move(remedy), with_keep([&](const Place& at) { return kept_at(from(at)); }));
  }

  void other_choices() {
    const std::string leave_out = R"(Leave "dropout" out of "variants".)", invert = "In the adapter: pass 1 - keep";
    add("there were no dropout", leave_out, without_dropout());
    // At a rate of 0 that is the same problem, and said once.
    add("keep were ignored, and every weight divided by 1 - p", leave_out,
        p_ > 0 ? with_keep([](const Place&) { return 1.0; }) : without_dropout());
    Case inverted = with_keep([&](const Place& at) { return 1 - kept_at(at); });
    add("keep were inverted", invert + ".", inverted);
    inverted.dropout_p = 0;
    add("keep were inverted, and kept weights not divided by 1 - p",
        invert + ", and divide the output by 1 - dropout_p.", std::move(inverted));
  }

  /// What is kept divided by `share`, and not by 1 - p. By no more than 1 that is another rate, which leaves the values
  /// in their format, by whose roundoff a kernel that multiplies them may err; else other values at the same rate. In
  /// f64 1 less the rate would be further from the share than answers may be, and values are not.
  void add_share(std::string words, std::string remedy, double share, bool is_near = false) {
    if (!(share > 0)) return;
    Case other = c_;
    if (share == 1 || (share < 1 && share > 0x1p-53 && c_.v().dtype() != DType::f64)) {
      other.dropout_p = 1 - share;
    } else {
      const double factor = (1 - p_) / share;
      if (!std::isfinite(factor)) return;
      other[Slot::v] =
          mapped(Tensor(DType::f64, c_.v().shape()), [&](std::int64_t e, double) { return factor * c_.v()[e]; });
    }
    add(std::move(words), std::move(remedy), std::move(other));
    found_.back().is_near = is_near;
  }

  void other_factors() {
    const double share = 1 - p_;
    add_share("kept weights were not divided by 1 - p", "In the adapter: divide the output by 1 - dropout_p.", 1);
    add_share("kept weights were divided by 1 - p twice", "In the adapter: multiply the output by 1 - dropout_p.",
              share * share);
    add_share("kept weights were multiplied by 1 - p, and not divided",
              "In the adapter: divide the output by (1 - dropout_p)².", 1 / share);
    add_share("kept weights were multiplied by p", "In the adapter: divide the output by dropout_p·(1 - dropout_p).",
              1 / p_);
    add_share("kept weights were divided by p, and not by 1 - p", "In the adapter: pass 1 - dropout_p for the rate.",
              p_);
    // A weight is kept where a random byte is no larger than the one that 1 - p is rounded down to.
    add_share("kept weights were divided by (floor(255·(1 - p)) + 1)/256, the probability that a byte keeps",
              "In the adapter: raise Unsupported for a dropout_p that is no multiple of 1/256.",
              (std::floor(255 * share) + 1) / 256, /*is_near=*/true);
    add_share("p were rounded to a multiple of 1/16",
              "In the adapter: raise Unsupported for a dropout_p that is no multiple of 1/16.",
              1 - std::min(std::round(16 * p_), 15.0) / 16);
    add_share("p were rounded to f16", "", 1 - round_to(DType::f16, p_), /*is_near=*/true);
    add_share("1/(1 - p) were rounded to bf16", "", 1 / round_to(DType::bf16, 1 / share), /*is_near=*/true);
  }

  /// Dropped before there is a sum of weights, or before there are weights. A sink is not dropped, and shares in that
  /// sum with what it is to weights that have been divided by 1 - p already.
  void before_the_weights() {
    const Tensor& sinks = c_[Slot::sink];
    // In f64, which holds what becomes of every other format.
    const auto moved_sinks = [&](double by) {
      return mapped(Tensor(DType::f64, sinks.shape()), [&](std::int64_t h, double) { return sinks[h] + by; });
    };
    const Case hiding = with_dropped_keys_hidden(c_);
    Case normalised = hiding;
    if (sinks.present() && p_ > 0) normalised[Slot::sink] = moved_sinks(std::log1p(-p_));
    add("weights were normalised again after dropping", "", std::move(normalised));
    Case hidden_keys = hiding;
    if (p_ > 0) hidden_keys[Slot::keep] = keep_, hidden_keys.dropout_p = p_;
    add("dropped keys were hidden, and what is left divided by 1 - p", "", std::move(hidden_keys));
    if (std::optional<Case> scores = with_dropped_scores())
      add("scores were dropped to 0 or divided by 1 - p, and weights were not", "", *std::move(scores));
    if (!sinks.present() || p_ == 0) return;
    Case outweighed = c_;
    outweighed[Slot::sink] = moved_sinks(-std::log1p(-p_));
    add("the sum of the keys' weights were multiplied by 1 - p before the sink joins it", "", std::move(outweighed));
  }

  /// Scores that take the place of weights, as a mask of f64; nothing where one is not finite.
  [[nodiscard]] std::optional<Case> with_dropped_scores() const {
    Case other = without_dropout();
    drop_positions(other);
    drop_variant(other, alibi_variant.name);
    other.mask_convention = MaskConvention::post_scale;
    Tensor mask(DType::f64, {batch_of(c_), heads_of(c_), queries_of(c_), keys_of(c_)});
    const auto scale = static_cast<long double>(c_.scale), cap = static_cast<long double>(c_.softcap),
               share = 1 - static_cast<long double>(p_);
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const auto [b, h, i, j] = mask.shape().index_of(e);
      if (hidden(c_, b, h, i, j)) {
        mask.set(e, -infinity);
        continue;
      }
      long double t = scale * product_of_pair(c_, b, h, i, j);
      if (cap > 0) t = cap * std::tanh(t / cap);
      const auto added = static_cast<long double>(bias_of(c_, b, h, i, j));
      const long double score = t + mask_term(added, scale, convention_of(c_));
      const auto makes = static_cast<double>((keeps(c_, b, h, i, j) ? score / share : 0) - t);
      if (!std::isfinite(makes)) return std::nullopt;
      mask.set(e, makes);
    }
    other[Slot::mask] = std::move(mask);
    return other;
  }

  /// Of other heads and batch entries. One that all share is theirs whoever reads it: no reading has more pages than
  /// keep itself.
  void other_pages() {
    const std::int64_t batch = keep_.shape()[0], heads = keep_.shape()[1];
    const std::string of_heads = "In the adapter: raise Unsupported where heads have a keep of their own.",
                      of_entries = "In the adapter: raise Unsupported where batch entries have a keep of their own.";
    if (heads > 1) {
      add_moved("every head had the keep of the first", of_heads,
                [](const Place& at) { return Place{at[0], 0, at[2], at[3]}; });
      add_moved("a head had the keep at the place of its key-value head", of_heads,
                [&](const Place& at) { return Place{at[0], kv_head_of(c_, at[1]), at[2], at[3]}; });
    }
    if (batch > 1)
      add_moved("every batch entry had the keep of the first", of_entries,
                [](const Place& at) { return Place{0, at[1], at[2], at[3]}; });
    if (batch > 1 && batch == heads)
      add_moved("batch entries and heads of keep were exchanged", "",
                [](const Place& at) { return Place{at[1], at[0], at[2], at[3]}; });
  }

  void other_places() {
    const std::int64_t M = queries_of(c_), N = keys_of(c_);
    if (M == 0 || N == 0) return;
    add_moved("every row had the keep of the first", "", [](const Place& at) { return Place{at[0], at[1], 0, at[3]}; });
    // Of as many rows as keys; else as memory that holds a column behind another.
    add_moved("rows and columns of keep were exchanged",
              "In the adapter: pass keep with its last two axes exchanged, laid out row by row.", [&](const Place& at) {
                const std::int64_t place = at[3] * M + at[2];
                return Place{at[0], at[1], place / N, place % N};
              });
    add_moved("a key had the keep of the next one, and the last that of the first", "",
              [&](const Place& at) { return Place{at[0], at[1], at[2], (at[3] + 1) % N}; });
    add_moved("a key had the keep of the one before, and the first that of the last", "",
              [&](const Place& at) { return Place{at[0], at[1], at[2], (at[3] + N - 1) % N}; });
    const auto read_beside = [&](std::string words, std::int64_t by) {
      add_moved(std::move(words), "", [&, by](const Place& at) {
        const std::int64_t e = keep_.shape().flat(at[0], at[1], at[2], at[3]) + by;
        return keep_.shape().index_of(std::clamp<std::int64_t>(e, 0, keep_.elements() - 1));
      });
    };
    read_beside("keep were read one element further on in memory", 1);
    read_beside("keep were read one element further back in memory", -1);
  }

  void of_tiles(std::int64_t tile) {
    const std::int64_t M = queries_of(c_), N = keys_of(c_), whole = N - N % tile;
    const auto add_sized = [&](std::string words, Case problem) {
      found_.push_back({.words = std::move(words), .size = tile, .problem = std::move(problem)});
    };
    if (M > tile)
      add_sized("keep were read by a row's place in its tile of #",
                with_keep([&](const Place& at) { return kept_at({at[0], at[1], at[2] % tile, at[3]}); }));
    if (N <= tile) return;
    add_sized("keep were read by a key's place in its tile of #",
              with_keep([&](const Place& at) { return kept_at({at[0], at[1], at[2], at[3] % tile}); }));
    if (whole < N)
      add_sized("no weight of a key behind the last whole # were dropped",
                with_keep([&](const Place& at) { return at[3] < whole ? kept_at(at) : 1.0; }));
  }

  const Case& c_;
  const Tensor& keep_;
  const double p_;
  std::vector<MisreadDropout> found_;
};

}  // namespace

std::vector<MisreadDropout> misread_dropout(const Case& c) {
  return c[Slot::keep].present() ? DropoutReadings(c).take() : std::vector<MisreadDropout>();
}

Case with_dropped_keys_hidden(const Case& c) {
  Case hiding = c;
  drop_variant(hiding, dropout_variant.name);
  const Tensor &keep = c[Slot::keep], &mask = c.mask();
  if (!keep.present()) return hiding;
  // e4m3 has no infinity.
  const DType format = !mask.present() ? DType::boolean : mask.dtype() == DType::f8_e4m3 ? DType::f32 : mask.dtype();
  const bool boolean = format == DType::boolean;
  const auto extent = [&](int axis) {
    return std::max(keep.shape()[axis], mask.present() ? mask.shape()[axis] : std::int64_t{1});
  };
  Tensor both(format, keep.shape().with(0, extent(0)).with(1, extent(1)));
  for (std::int64_t e = 0; e < both.elements(); ++e) {
    const auto [b, h, i, j] = both.shape().index_of(e);
    const double shown = mask.present() ? mask_entry(mask, b, h, i, j) : 1.0;
    both.set(e, keeps(c, b, h, i, j) ? shown : boolean ? 0.0 : -infinity);
  }
  hiding[Slot::mask] = std::move(both);
  return hiding;
}

}  // namespace attest
