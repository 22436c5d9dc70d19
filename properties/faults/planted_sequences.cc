#include "properties/faults/planted_sequences.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/value/tensor.h"
#include "properties/faults/variants/planted_alibi.h"

namespace attest {
namespace {

struct Part {
  std::int64_t entry, first_query, queries, first_key, keys;
};

std::int64_t number(const attest_tensor& t, std::int64_t at) {
  return static_cast<std::int64_t>(load_element(t.data, DType::i32, at * t.stride[0]));
}

std::int64_t rounded_up(std::int64_t n, std::int64_t tile) {
  return (n + tile - 1) / tile * tile;
}

/// `count` entries of an axis from `first` on.
attest_tensor cut(attest_tensor t, int axis, std::int64_t first, std::int64_t count) {
  if (t.data == nullptr) return t;
  if (count > 0)
    t.data = static_cast<std::byte*>(t.data) +
             first * t.stride[axis] * static_cast<std::int64_t>(size_of(static_cast<DType>(t.dtype)));
  t.shape[axis] = count;
  return t;
}

/// The batch as it is understood.
class Sequences {
 public:
  Sequences(const attest_problem& p, attest_result& result, Slip slip)
      : p_(p), result_(result), slip_(slip), packed_((p.variants & ATTEST_PACKED) != 0) {
    if (packed_)
      for (std::int64_t s = 0; s + 1 < p_.q_starts.shape[0]; ++s) parts_.push_back(packed_part(s));
    else
      for (std::int64_t b = 0; b < p_.q.shape[0]; ++b) parts_.push_back(padded_part(b));
    right_ = parts_;
    for (std::size_t s = 0; s < parts_.size(); ++s) slip_in(parts_[s], s);
  }

  void run(const std::function<void(const attest_problem&, attest_result&, const SequencePlace&)>& attend) {
    clear_padding();
    for (std::size_t s = 0; s < parts_.size(); ++s) {
      const Part& part = parts_[s];
      if (is("sequences-end-at-an-empty-one") && right_[s].queries == 0) return;
      if (is("last-sequence-lost") && s > 0 && s + 1 == parts_.size()) continue;
      if (part.queries == 0) continue;
      const attest_problem own = problem_of(part);
      attest_result answer = result_;
      answer.out = cut(cut(result_.out, 0, part.entry, 1), 2, part.first_query, part.queries);
      answer.lse = cut(cut(result_.lse, 0, part.entry, 1), 2, part.first_query, part.queries);
      attend(own, answer, {part.first_query, part.first_key, miscount(part)});
      if (is("sequence-without-keys-nan") && right_[s].keys == 0) fill(answer.out, nan);
      if (is("values-of-padding-multiplied")) add_padding(part, answer);
    }
  }

 private:
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  static constexpr std::int64_t tile = 16;

  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }

  [[nodiscard]] Part packed_part(std::int64_t s) const {
    const std::int64_t query = number(p_.q_starts, s), key = number(p_.kv_starts, s);
    return {0, query, number(p_.q_starts, s + 1) - query, key, number(p_.kv_starts, s + 1) - key};
  }
  [[nodiscard]] Part padded_part(std::int64_t b) const {
    const std::int64_t pad = p_.left_pad.data != nullptr ? number(p_.left_pad, b) : 0;
    return {b, 0, p_.q_lengths.data != nullptr ? number(p_.q_lengths, b) : p_.q.shape[2], pad,
            (p_.kv_lengths.data != nullptr ? number(p_.kv_lengths, b) : p_.k.shape[2]) - pad};
  }

  /// In what is not packed, where keys may begin behind others.
  void slip_in_left_pad(Part& part) const {
    const std::int64_t pad = part.first_key;
    if (is("left-pad-ignored")) part.first_key = 0, part.keys += pad;
    if (is("left-pad-of-the-first-sequence"))
      part.first_key = std::min(right_[0].first_key, pad + part.keys), part.keys += pad - part.first_key;
    if (is("length-behind-the-left-pad")) part.keys = std::min(part.keys + pad, p_.k.shape[2] - pad);
    if (is("left-pad-taken-off-the-end")) part.first_key = 0;
    if (is("left-pad-one-short") && pad > 0) part.first_key = pad - 1, ++part.keys;
    if (is("left-pad-to-the-start-of-the-tile")) part.first_key = pad / tile * tile, part.keys += pad % tile;
  }

  void slip_in(Part& part, std::size_t s) const {
    if (!packed_) slip_in_left_pad(part);
    const std::int64_t room = p_.k.shape[2] - part.first_key;
    if (is("key-lengths-ignored") && !packed_) part.keys = room;
    if (is("lengths-ignored-with-a-mask") && p_.mask.data != nullptr && !packed_) part.keys = room;
    if (is("key-length-of-the-first-sequence")) part.keys = std::min(right_[0].keys, room);
    if (is("key-length-of-the-queries") && part.queries > 0) part.keys = std::min(part.queries, room);
    if (is("a-key-too-many-in-sequences")) part.keys = std::min(part.keys + 1, room);
    if (is("last-key-of-sequences-lost") && part.keys > 1) --part.keys;
    if (is("keys-to-the-end-of-the-tile") && part.keys > tile) part.keys = std::min(rounded_up(part.keys, tile), room);
    if (is("rows-to-the-start-of-the-tile") && part.queries > tile) part.queries = part.queries / tile * tile;
    if (is("keys-by-the-starts-of-queries") && packed_)
      part.first_key = std::min(part.first_query, p_.k.shape[2] - part.keys);
    if (is("keys-of-the-sequence-before") && s > 0 && right_[s - 1].keys >= part.keys) {
      part.first_key = right_[s - 1].first_key, part.entry = packed_ ? part.entry : right_[s].entry;
    }
    if (is("rows-beyond-the-first-length-lost")) part.queries = std::min(part.queries, right_[0].queries);
  }

  /// Of what has a number for each query and key: the part's, as if its first ones were these.
  static attest_tensor cut_mask(const attest_tensor& t, const Part& part, std::int64_t query, std::int64_t key) {
    const std::int64_t entry = t.data == nullptr || t.shape[0] == 1 ? 0 : part.entry;
    return cut(cut(cut(t, 0, entry, 1), 2, query, part.queries), 3, key, part.keys);
  }

  [[nodiscard]] attest_problem problem_of(const Part& part) const {
    attest_problem one = p_;
    one.variants &= ~static_cast<std::uint32_t>(ATTEST_LENGTHS | ATTEST_PACKED | ATTEST_LEFT_PAD);
    one.q = cut(cut(p_.q, 0, part.entry, 1), 2, part.first_query, part.queries);
    one.k = cut(cut(p_.k, 0, part.entry, 1), 2, part.first_key, part.keys);
    one.v = cut(cut(p_.v, 0, part.entry, 1), 2, part.first_key, part.keys);
    const bool from_first = is("mask-of-sequences-from-its-first-row");
    const bool from_key = from_first || is("mask-before-the-left-pad");
    one.mask = cut_mask(p_.mask, part, from_first ? 0 : part.first_query, from_key ? 0 : part.first_key);
    const bool keeps_as_first = is("dropout-mask-of-the-first-sequence");
    one.keep = cut_mask(p_.keep, part, keeps_as_first ? 0 : part.first_query, keeps_as_first ? 0 : part.first_key);
    one.alibi_slopes = cut(p_.alibi_slopes, 0, has_slopes(p_) && p_.alibi_slopes.shape[0] > 1 ? part.entry : 0, 1);
    for (attest_tensor attest_problem::* const t :
         {&attest_problem::q_descale, &attest_problem::k_descale, &attest_problem::v_descale}) {
      const bool shared = (p_.*t).shape[0] == 1 || is("descale-of-first-batch");
      one.*t = cut(p_.*t, 0, shared ? 0 : part.entry, 1);
    }
    if (is("positions-from-the-padded-end") && p_.causal == ATTEST_CAUSAL_BOTTOM_RIGHT && !packed_)
      show_up_to(one, p_.k.shape[2] - p_.q.shape[2]);
    if (is("positions-of-tokens-among-all") && p_.causal != ATTEST_CAUSAL_NONE && packed_)
      show_up_to(one, part.first_query - part.first_key);
    return one;
  }

  [[nodiscard]] Miscount miscount(const Part& part) const {
    Miscount by;
    if (!packed_ && counts_from_the_last_key(p_)) {
      // The last row of all that there is room for, at the last key of all.
      const std::int64_t of_the_room = (p_.k.shape[2] - p_.q.shape[2]) - (part.keys - part.queries);
      if (is("alibi-positions-from-the-padded-end")) by.slopes = of_the_room;
      if (is("chunk-from-the-capacity")) by.chunk_rows = of_the_room;
    }
    if (packed_ ? is("alibi-keys-from-the-start-of-the-pack") : is("alibi-left-pad-counted"))
      by.slopes = -part.first_key;
    if (packed_ ? is("chunk-of-the-packed-keys") : is("chunk-of-cache-slots"))
      by.chunk_rows = by.chunk_keys = part.first_key;
    return by;
  }

  /// Row i sees the keys up to i + shift in the place of what its causal form says; not where there is a window, or
  /// where chunks ask how that form counts.
  static void show_up_to(attest_problem& one, std::int64_t shift) {
    if (shift < 0 || (one.variants & (ATTEST_WINDOW | ATTEST_CHUNK)) != 0) return;
    one.causal = ATTEST_CAUSAL_NONE;
    one.variants |= static_cast<std::uint32_t>(ATTEST_WINDOW);
    one.alignment = ATTEST_CAUSAL_TOP_LEFT;
    one.window_left = -1, one.window_right = shift;
  }

  static void fill(const attest_tensor& t, double value) {
    for (std::int64_t h = 0; h < t.shape[1]; ++h)
      for (std::int64_t i = 0; i < t.shape[2]; ++i)
        for (std::int64_t c = 0; c < t.shape[3]; ++c)
          store_element(t.data, static_cast<DType>(t.dtype), offset_in(t, 0, h, i, c), value);
  }

  void clear_padding() const {
    if (is("padding-unwritten")) return;
    const attest_tensor& out = result_.out;
    for (std::int64_t b = 0; b < out.shape[0]; ++b) {
      for (std::int64_t i = 0; i < out.shape[2]; ++i) {
        const bool own = std::ranges::any_of(right_, [&](const Part& part) {
          return part.entry == b && part.first_query <= i && i < part.first_query + part.queries;
        });
        attest_tensor row = cut(cut(out, 0, b, 1), 2, i, 1);
        fill(row, is("padding-is-nan") && !own ? nan : 0.0);
        for (std::int64_t h = 0; result_.lse.data != nullptr && h < out.shape[1]; ++h)
          store_element(result_.lse.data, DType::f64, offset_in(result_.lse, b, h, i), 0.0);
      }
    }
  }

  /// The values behind the part's, times a weight of 0.
  void add_padding(const Part& part, const attest_result& answer) const {
    const std::int64_t group = p_.q.shape[1] / p_.k.shape[1];
    const auto dtype = static_cast<DType>(answer.out.dtype);
    for (std::int64_t h = 0; h < p_.q.shape[1]; ++h) {
      for (std::int64_t c = 0; c < p_.v.shape[3]; ++c) {
        double added = 0;
        const std::int64_t first = part.first_key + part.keys, end = std::min(p_.k.shape[2], first + tile);
        for (std::int64_t j = first; j < end; ++j)
          added += 0.0 * load_element(p_.v.data, static_cast<DType>(p_.v.dtype),
                                      offset_in(p_.v, part.entry, h / group, j, c));
        for (std::int64_t i = 0; added != 0 && i < part.queries; ++i) {
          const std::int64_t at = offset_in(answer.out, 0, h, i, c);
          store_element(answer.out.data, dtype, at, load_element(answer.out.data, dtype, at) + added);
        }
      }
    }
  }

  const attest_problem& p_;
  attest_result& result_;
  Slip slip_;
  bool packed_;
  std::vector<Part> parts_, right_;
};

}  // namespace

bool has_sequences(const attest_problem& p) {
  return (p.variants & (ATTEST_LENGTHS | ATTEST_PACKED | ATTEST_LEFT_PAD)) != 0;
}

void for_each_sequence(const attest_problem& p, attest_result& result, Slip slip,
                       const std::function<void(const attest_problem&, attest_result&, const SequencePlace&)>& attend) {
  Sequences(p, result, slip).run(attend);
}

}  // namespace attest
