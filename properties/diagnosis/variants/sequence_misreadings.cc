#include "properties/diagnosis/variants/sequence_misreadings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/sequences.h"

namespace attest {
namespace {

class Misread {
 public:
  explicit Misread(const Case& c) : c_(c), all_(sequences_of(c)), packed_(has_variant(c, packed_variant.name)) {
    keys();
    rows();
    if (packed_)
      starts();
    else
      whole_batch();
    positions();
  }
  [[nodiscard]] std::vector<MisreadSequences> take() { return std::move(found_); }

 private:
  /// As many keys to sequence s as that, as far as there are some.
  using Keys = std::function<std::int64_t(std::size_t s, const Sequence& own)>;

  /// Every row sees the keys from its sequence's first to as many as that, and no other; no causal form reaches them.
  void add_keys(std::string words, const Keys& count) {
    if (!only_hides(c_) || c_.causal != Causal::none || has_variant(c_, window_variant.name))
      return add_lengths(std::move(words), count);
    add_mask(std::move(words), [&](const Sequence& own, std::size_t s, std::int64_t, std::int64_t j) {
      return own.first_key <= j && j < own.first_key + count(s, own);
    });
  }
  /// As lengths, where the batch has some.
  void add_lengths(std::string words, const Keys& count) {
    if (packed_) return;
    Case other = c_;
    Tensor lengths(DType::i32, {std::ssize(all_)});
    for (std::size_t s = 0; s < all_.size(); ++s)
      lengths.set(static_cast<std::int64_t>(s),
                  static_cast<double>(std::clamp<std::int64_t>(count(s, all_[s]), 0, keys_of(c_))));
    other[Slot::kv_lengths] = std::move(lengths);
    found_.push_back({std::move(words), std::move(other)});
  }

  using Shows = std::function<bool(const Sequence& own, std::size_t s, std::int64_t i, std::int64_t j)>;
  /// One sequence to a batch entry, with a mask that shows what is shown. Rows of no sequence see what they like.
  void add_mask(std::string words, const Shows& shows) {
    Case other = c_;
    drop_variant(other, lengths_variant.name);
    drop_variant(other, packed_variant.name);
    drop_positions(other);
    if (!only_hides(c_) && c_.dtype() == DType::f8_e4m3) return;
    other = only_hides(c_) ? with_boolean_mask(std::move(other)) : with_additive_mask(std::move(other));
    const Tensor old = other.mask();
    const std::int64_t batch = batch_of(c_), heads = old.shape()[1];
    Tensor mask(old.dtype(), {batch, heads, queries_of(c_), keys_of(c_)});
    const double hides = old.dtype() == DType::boolean ? 0.0 : -infinity;
    for (std::int64_t e = 0; e < mask.elements(); ++e) {
      const auto [b, h, i, j] = mask.shape().index_of(e);
      const double entry = mask_entry(old, b, h, i, j);
      const auto own =
          std::ranges::find_if(all_, [&, b = b, i = i](const Sequence& s) { return s.entry == b && has_query(s, i); });
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
    for (const std::int64_t tile : {8, 16, 32, 64, 128}) {
      const bool any =
          std::ranges::any_of(all_, [&](const Sequence& s) { return s.keys > tile && s.keys % tile != 0; });
      if (any)
        add_keys(fmt::format("the last tile of {} keys of a sequence were seen as a whole", tile),
                 [tile](std::size_t, const Sequence& own) {
                   return own.keys > tile ? (own.keys + tile - 1) / tile * tile : own.keys;
                 });
    }
  }

  void rows() {
    if (all_.size() < 2) return;
    for (const std::size_t by : {std::size_t{1}, all_.size() - 1}) {
      if (!packed_ || c_.causal != Causal::none || has_variant(c_, window_variant.name)) break;
      add_mask(
          by == 1 ? "a sequence saw the keys of the one behind it" : "a sequence saw the keys of the one before it",
          [this, by](const Sequence&, std::size_t s, std::int64_t, std::int64_t j) {
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

  void starts() {
    Case one = c_;
    drop_variant(one, packed_variant.name);
    found_.push_back({"the packed sequences were one", std::move(one)});
    Case other = c_;
    double last = 0;
    const auto most = static_cast<double>(keys_of(c_));
    other[Slot::kv_starts] = mapped(c_[Slot::kv_starts], [&](std::int64_t s, double) {
      return last = std::clamp(c_[Slot::q_starts][s], last, most);
    });
    if (!(other == c_)) found_.push_back({"packed keys began where the queries do", std::move(other)});
  }

  void positions() {
    if (c_.causal == Causal::none || has_variant(c_, window_variant.name)) return;
    const std::int64_t batch_shift = keys_of(c_) - queries_of(c_);
    if (c_.causal == Causal::bottom_right && !packed_)
      add_mask("bottom-right positions counted from the batch's last key, not the sequence's",
               [batch_shift](const Sequence& own, std::size_t, std::int64_t i, std::int64_t j) {
                 return has_key(own, j) && j <= i + batch_shift;
               });
    if (packed_)
      add_mask(
          "the positions of packed tokens were those among all of them",
          [](const Sequence& own, std::size_t, std::int64_t i, std::int64_t j) { return has_key(own, j) && j <= i; });
  }

  const Case& c_;
  std::vector<Sequence> all_;
  bool packed_;
  std::vector<MisreadSequences> found_;
};

}  // namespace

std::vector<MisreadSequences> misread_sequences(const Case& c) {
  if (!has_sequences(c) || c.operation != Operation::attention) return {};
  return Misread(c).take();
}

}  // namespace attest
