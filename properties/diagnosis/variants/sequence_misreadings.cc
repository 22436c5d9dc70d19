#include "properties/diagnosis/variants/sequence_misreadings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <utility>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/sequences.h"
#include "properties/diagnosis/other_sights.h"
#include "properties/diagnosis/variants/alibi_misreadings.h"
#include "properties/diagnosis/variants/cache_misreadings.h"
#include "properties/diagnosis/variants/descale_misreadings.h"

namespace attest {
namespace {

class Misread {
 public:
  explicit Misread(const Case& c)
      : c_(outside_of_caches(c)), all_(sequences_of(c)), packed_(has_variant(c, packed_variant.name)) {
    keys();
    rows();
    if (packed_)
      starts();
    else
      whole_batch(), left_pad();
    positions();
    if (has_variant(c_, chunk_variant.name)) chunks();
    if (c_[Slot::keep].present()) dropout();
    if (has_slopes()) slopes();
    if (has_variant(c_, descale_variant.name)) factors();
  }
  [[nodiscard]] std::vector<MisreadSequences> take() { return std::move(found_); }

 private:
  [[nodiscard]] bool has_slopes() const { return c_[Slot::alibi_slopes].present(); }
  /// Does a row see keys by its position, or is what is added to scores by it?
  [[nodiscard]] bool has_positions() const { return hides_by_position(c_) || has_slopes(); }
  /// As many keys to sequence s as that, as far as there are some.
  using Keys = std::function<std::int64_t(std::size_t s, const Sequence& own)>;

  /// Every row sees the keys from its sequence's first to as many as that, and no other; no causal form reaches them.
  /// None where these are the sequences' own.
  void add_keys(std::string words, const Keys& count) {
    bool differs = false;
    for (std::size_t s = 0; s < all_.size(); ++s)
      differs = differs || std::min(count(s, all_[s]), keys_of(c_) - all_[s].first_key) != all_[s].keys;
    if (!differs) return;
    if (!only_hides(c_) || has_positions()) return add_lengths(std::move(words), count);
    add_mask(std::move(words), [&](const Sequence& own, std::size_t s, std::int64_t, std::int64_t j) {
      return own.first_key <= j && j < own.first_key + count(s, own);
    });
  }
  /// As lengths, where the batch has some.
  void add_lengths(std::string words, const Keys& count) {
    if (packed_) return found_.push_back({std::move(words), std::nullopt});
    Case other = c_;
    Tensor lengths(DType::i32, {std::ssize(all_)});
    for (std::size_t s = 0; s < all_.size(); ++s)
      lengths.set(static_cast<std::int64_t>(s),
                  static_cast<double>(std::min(all_[s].first_key + count(s, all_[s]), keys_of(c_))));
    other[Slot::kv_lengths] = std::move(lengths);
    found_.push_back({std::move(words), std::move(other)});
  }

  using Shows = std::function<bool(const Sequence& own, std::size_t s, std::int64_t i, std::int64_t j)>;
  /// The case without its sequences, but for the rows that are in none: nobody looks at these.
  [[nodiscard]] Case without_sequences() const {
    Case other = c_;
    drop_variant(other, packed_variant.name);
    drop_variant(other, left_pad_variant.name);
    other[Slot::kv_lengths] = Tensor();
    if (!packed_) return other;
    std::int64_t rows = 0;
    for (const Sequence& own : all_) rows += own.queries;
    Tensor length(DType::i32, {1});
    length.set(0, static_cast<double>(rows));
    if (rows < queries_of(c_)) other[Slot::q_lengths] = std::move(length);
    return other;
  }
  /// One sequence to a batch entry, with a mask that shows what is shown, and has what slopes add.
  void add_mask(std::string words, const Shows& shows) {
    if (!only_hides(c_) && !has_slopes() && c_.dtype() == DType::f8_e4m3)
      return found_.push_back({std::move(words), std::nullopt});
    Case other = without_sequences();
    drop_positions(other);
    if (has_slopes()) {
      other[Slot::mask] = with_slopes_as_mask(c_).mask();
      drop_variant(other, alibi_variant.name);
    }
    const bool boolean = only_hides(c_) && !has_slopes();
    other = boolean ? with_boolean_mask(std::move(other)) : with_additive_mask(std::move(other));
    const Tensor old = other.mask();
    const std::int64_t batch = batch_of(c_), heads = old.shape()[1];
    Tensor mask(old.dtype(), {batch, heads, queries_of(c_), keys_of(c_)});
    const double hides = old.dtype() == DType::boolean ? 0.0 : -infinity;
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const auto [b, h, i, j] = mask.shape().index_of(e);
      const double entry = mask_entry(old, b, h, i, j);
      const auto own = std::ranges::find_if(
          all_, [batch_entry = b, row = i](const Sequence& s) { return s.entry == batch_entry && has_query(s, row); });
      const bool shown = own == all_.end() || shows(*own, static_cast<std::size_t>(own - all_.begin()), i, j);
      mask.set(e, shown ? entry : hides);
    }
    other[Slot::mask] = std::move(mask);
    found_.push_back({std::move(words), std::move(other)});
  }

  void keys() {
    add_keys("a sequence had a key more, the one behind its last",
             [](std::size_t, const Sequence& own) { return own.keys + 1; });
    add_keys("the last key of a sequence were not there",
             [](std::size_t, const Sequence& own) { return std::max<std::int64_t>(own.keys - 1, 1); });
    add_keys("every sequence had as many keys as the first",
             [this](std::size_t, const Sequence&) { return all_[0].keys; });
    add_keys("a sequence had as many keys as queries", [](std::size_t, const Sequence& own) { return own.queries; });
    for (const std::int64_t tile : {8, 16, 32, 64, 128})
      add_keys(fmt::format("the last tile of {} keys of a sequence were seen as a whole", tile),
               [tile](std::size_t, const Sequence& own) {
                 return own.keys > tile ? (own.keys + tile - 1) / tile * tile : own.keys;
               });
  }

  void rows() {
    if (all_.size() < 2 || !packed_) return;
    for (const std::size_t by : {std::size_t{1}, all_.size() - 1}) {
      std::string words =
          by == 1 ? "a sequence saw the keys of the one behind it" : "a sequence saw the keys of the one before it";
      if (has_positions())
        found_.push_back({std::move(words), std::nullopt});
      else
        add_mask(std::move(words), [this, by](const Sequence&, std::size_t s, std::int64_t, std::int64_t j) {
          return has_key(all_[(s + by) % all_.size()], j);
        });
      if (all_.size() == 2) break;
    }
  }

  void whole_batch() {
    Case other = c_;
    other[Slot::kv_lengths] = Tensor();
    if (c_[Slot::kv_lengths].present()) found_.push_back({"the lengths of keys were ignored", std::move(other)});
  }

  /// Of padding before the first keys.
  void left_pad() {
    if (!c_[Slot::left_pad].present() || std::ranges::none_of(all_, &Sequence::first_key)) return;
    const auto from_the_first = [this](const char* words, const Tensor& lengths) {
      Case other = c_;
      drop_variant(other, left_pad_variant.name);
      other[Slot::kv_lengths] = lengths;
      found_.push_back({words, std::move(other)});
    };
    from_the_first("the padding on the left were ignored", c_[Slot::kv_lengths]);
    Tensor shorter(DType::i32, {std::ssize(all_)}), longer = shorter;
    for (std::size_t s = 0; s < all_.size(); ++s) {
      const auto at = static_cast<std::int64_t>(s);
      shorter.set(at, static_cast<double>(all_[s].keys));
      longer.set(at, static_cast<double>(std::min(all_[s].keys + 2 * all_[s].first_key, keys_of(c_))));
    }
    from_the_first("the padding on the left were at the end of the keys", shorter);
    if (!c_[Slot::kv_lengths].present()) return;
    Case other = c_;
    other[Slot::kv_lengths] = std::move(longer);
    found_.push_back({"lengths of keys counted from behind the padding on the left", std::move(other)});
  }

  void starts() {
    const bool from_the_end = c_.causal == Causal::bottom_right || has_variant(c_, window_variant.name) ||
                              c_.alignment == Causal::bottom_right;
    std::optional<Case> one = without_sequences();
    // Positions from the last key are those of all rows, and not of the rows that are in a sequence.
    if (from_the_end && (*one)[Slot::q_lengths].present()) one.reset();
    found_.push_back({"the packed sequences were one", std::move(one)});
    Case other = c_;
    double last = 0;
    const auto most = static_cast<double>(keys_of(c_));
    other[Slot::kv_starts] = mapped(c_[Slot::kv_starts], [&](std::int64_t s, double) {
      return last = std::clamp(c_[Slot::q_starts][s], last, most);
    });
    if (other == c_) return;
    found_.push_back({"the starts of packed keys were those of the queries", std::move(other)});
    std::string words = "packed keys began where the queries do";
    if (has_positions()) return found_.push_back({std::move(words), std::nullopt});
    add_mask(std::move(words), [this](const Sequence& own, std::size_t, std::int64_t, std::int64_t j) {
      const std::int64_t first = std::min(own.first_query, keys_of(c_) - own.keys);
      return first <= j && j < first + own.keys;
    });
  }

  /// What a row of position p of so many keys sees by the rule.
  static Sight sight_from(SightRule rule, std::int64_t p, std::int64_t keys) {
    if (rule.causal != Causal::none) rule.causal = Causal::top_left;
    rule.alignment = Causal::top_left;
    return sight(rule, p, /*rows=*/0, keys);
  }

  void positions() {
    if (!hides_by_position(c_)) return;
    const SightRule rule = sight_rule(c_);
    // Of chunks alone their own readings tell as much.
    const bool chunks_alone = c_.causal == Causal::none && !has_variant(c_, window_variant.name);
    const auto add_positions = [&](const char* words, const Shows& shows) {
      if (chunks_alone) return found_.push_back({words, std::nullopt});
      add_mask(words, shows);
    };
    const Causal counted = c_.causal != Causal::none ? c_.causal : c_.alignment;
    const std::int64_t keys = keys_of(c_), batch_shift = keys - queries_of(c_);
    if (counted == Causal::bottom_right && !packed_)
      add_positions("bottom-right positions counted from the batch's last key, not the sequence's",
                    [=](const Sequence& own, std::size_t, std::int64_t i, std::int64_t j) {
                      return has_key(own, j) && sight_from(rule, i + batch_shift, own.keys).sees(j - own.first_key);
                    });
    const auto among_all = [=](const Sequence& own, std::size_t, std::int64_t i, std::int64_t j) {
      return has_key(own, j) && sight_from(rule, i, keys).sees(j);
    };
    if (counted == Causal::top_left && c_[Slot::left_pad].present())
      add_positions("positions counted from the first key of the padding on the left", among_all);
    if (packed_) add_positions("the positions of packed tokens were those among all of them", among_all);
  }

  /// Of chunks that count from elsewhere; all else hides by a sequence's own positions.
  void chunks() {
    SightRule rest = sight_rule(c_);
    const SightRule chunks{.alignment = Causal::top_left, .chunk = std::exchange(rest.chunk, 0)};
    // With rows and keys of a sequence so many keys further on.
    using Moved = std::function<std::int64_t(const Sequence& own)>;
    const auto add_chunks = [&](const char* words, const Moved& rows, const Moved& keys) {
      add_mask(words, [=, all = keys_of(c_)](const Sequence& own, std::size_t, std::int64_t i, std::int64_t j) {
        const std::int64_t row = i - own.first_query, p = position(rest, row, own.queries, own.keys);
        return has_key(own, j) && sight(rest, row, own.queries, own.keys).sees(j - own.first_key) &&
               sight_from(chunks, p + rows(own), all).sees(j - own.first_key + keys(own));
      });
    };
    const Moved none = [](const Sequence&) { return std::int64_t{0}; },
                first = [](const Sequence& own) { return own.first_key; };
    const std::int64_t batch_shift = keys_of(c_) - queries_of(c_);
    if (!packed_ && c_.alignment == Causal::bottom_right)
      add_chunks(
          "chunks counted bottom-right positions from the batch's last key, not the sequence's",
          [=](const Sequence& own) { return batch_shift - (own.keys - own.queries); }, none);
    if (packed_) add_chunks("chunks counted from the first of all packed keys", first, first);
    if (!c_[Slot::left_pad].present()) return;
    add_chunks("chunks counted from the first key of the padding on the left", first, first);
    add_chunks("chunks counted keys from the first of the padding on the left, and rows from behind it", none, first);
  }

  /// What is dropped, by the places of a sequence's rows and keys in it, and not in its batch entry.
  void dropout() {
    if (std::ranges::all_of(all_, [](const Sequence& s) { return s.first_query == 0 && s.first_key == 0; })) return;
    const Tensor& keep = c_[Slot::keep];
    Tensor moved(DType::boolean, keep.shape().with(0, batch_of(c_)));
    for (std::int64_t e = 0; e < moved.elements(); ++e) {
      const auto [b, h, i, j] = moved.shape().index_of(e);
      const auto own = std::ranges::find_if(
          all_, [batch_entry = b, row = i](const Sequence& s) { return s.entry == batch_entry && has_query(s, row); });
      const bool inside = own != all_.end() && has_key(*own, j);
      moved.set(e, mask_entry(keep, b, h, inside ? i - own->first_query : i, inside ? j - own->first_key : j));
    }
    Case other = c_;
    other[Slot::keep] = std::move(moved);
    found_.push_back(
        {"a sequence's keep were that of as many first rows and keys of its batch entry", std::move(other)});
  }

  /// What slopes add by other places than those of a sequence's own rows and keys.
  void slopes() {
    const auto add_distance = [&](std::string words, const std::function<std::int64_t(const SlopePlace& at)>& ahead) {
      Case other = with_slope_terms(
          c_, [&](const SlopePlace& at) { return -at.slope * static_cast<double>(std::abs(ahead(at))); });
      found_.push_back({std::move(words), std::move(other)});
    };
    const Causal counted = c_.causal != Causal::none ? c_.causal : c_.alignment;
    const std::int64_t more = counted == Causal::bottom_right ? keys_of(c_) - queries_of(c_) : 0;
    if (packed_)
      add_distance("the positions of slopes were those among all packed tokens",
                   [more](const SlopePlace& at) { return at.row + more - at.key; });
    else if (counted == Causal::bottom_right)
      add_distance("positions of slopes counted from the batch's last key, not the sequence's",
                   [more](const SlopePlace& at) { return at.row + more - at.key; });
    if (c_[Slot::left_pad].present())
      add_distance("slopes counted keys from the first of the padding on the left, and rows from behind it",
                   [](const SlopePlace& at) { return at.position - at.key; });
    const Tensor& slopes = c_[Slot::alibi_slopes];
    if (slopes.shape()[0] == 1) return;
    Case other = c_;
    other[Slot::alibi_slopes] = mapped(slopes, [&](std::int64_t e, double) { return slopes[e % slopes.shape()[1]]; });
    found_.push_back({"every batch entry had the slopes of the first", std::move(other)});
  }

  /// Of a batch's first entry, or by places in a sequence.
  void factors() {
    const auto add_factors = [&](std::string words, const FactorAt& factor) {
      Case other = with_factors(c_, factor);
      if (!have_the_same_factors(c_, other)) found_.push_back({std::move(words), std::move(other)});
    };
    add_factors("every batch entry had the factors of the first",
                [&](const FactorPlace& at) { return factor_of(c_, at.tensor, 0, at.head, at.row); });
    add_factors("blocks of factors began anew with each sequence", [&](const FactorPlace& at) {
      const bool of_q = at.tensor == Slot::q;
      const auto own = std::ranges::find_if(all_, [&](const Sequence& s) {
        return s.entry == at.batch && (of_q ? has_query(s, at.row) : has_key(s, at.row));
      });
      const std::int64_t first = own == all_.end() ? 0 : of_q ? own->first_query : own->first_key;
      return factor_of(c_, at.tensor, at.batch, at.head, at.row - first);
    });
  }

  const Case c_;
  std::vector<Sequence> all_;
  bool packed_;
  std::vector<MisreadSequences> found_;
};

}  // namespace

std::vector<MisreadSequences> misread_sequences(const Case& c) {
  if (c.operation != Operation::attention) return {};
  std::vector<MisreadSequences> all = misread_cache(c);
  if (has_sequences(c)) std::ranges::move(Misread(c).take(), std::back_inserter(all));
  return all;
}

}  // namespace attest
