#include "properties/faults/variants/planted_chunk.h"

#include <algorithm>

#include "properties/faults/variants/planted_alibi.h"

namespace attest {
namespace {

/// Chunks as they are understood.
class Chunks {
 public:
  Chunks(const attest_problem& p, Slip slip, const Miscount& miscount) : p_(p), slip_(slip), miscount_(miscount) {}

  /// Whether there are none.
  [[nodiscard]] bool are_dropped() const {
    if (!has_chunks(p_)) return true;
    if (is("chunk-ignored-without-mask")) return p_.mask.data == nullptr;
    if (is("chunk-ignored-without-causal")) return !causal_;
    if (is("chunk-ignored-for-one-query")) return queries_ == 1;
    return is("chunk-ignored-beside-a-window") && has_window(p_);
  }

  [[nodiscard]] KeyRange of_row(std::int64_t i) const {
    const std::int64_t own = position(i);
    KeyRange range = of_position(own);
    if (is("chunk-read-as-window")) range = {own - size_ + 1, own + 1};
    if (is("chunk-start-exclusive")) ++range.begin;
    if (is("chunk-end-inclusive") && own >= 0) ++range.end;
    if (is("chunk-without-a-right-end") && own >= 0) range.end = keys_;
    if (is("chunk-made-causal") && !causal_) range.end = std::min(range.end, own + 1);
    return {std::clamp<std::int64_t>(range.begin - miscount_.chunk_keys, 0, keys_),
            std::clamp<std::int64_t>(range.end - miscount_.chunk_keys, 0, keys_)};
  }

 private:
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }

  [[nodiscard]] std::int64_t position(std::int64_t i) const {
    bool from_last_key = counts_from_the_last_key(p_);
    if (is("chunk-top-left-for-bottom-right")) from_last_key = false;
    if (is("chunk-bottom-right-for-top-left")) from_last_key = true;
    const std::int64_t last = is("chunk-from-the-last-page") ? (keys_ + 15) / 16 * 16 : keys_;
    return i + (from_last_key ? last - queries_ : 0) + miscount_.chunk_rows;
  }

  /// The chunk that a position is in; without keys before the first of them.
  [[nodiscard]] KeyRange of_position(std::int64_t position) const {
    if (is("chunk-boundary-one-early")) ++position;
    if (is("chunk-boundary-one-late") && position > 0) --position;
    // A division rounds towards 0, the first chunk.
    if (position < 0 && !is("chunk-of-rows-before-the-keys")) return {0, 0};
    const std::int64_t begin = is("chunk-by-a-mask-of-bits") ? position & ~(size_ - 1) : position / size_ * size_;
    return {begin, begin + size_};
  }

  const attest_problem& p_;
  Slip slip_;
  const Miscount& miscount_;
  std::int64_t queries_ = p_.q.shape[2], keys_ = p_.k.shape[2], size_ = p_.attention_chunk;
  bool causal_ = p_.causal != ATTEST_CAUSAL_NONE;
};

}  // namespace

bool has_chunks(const attest_problem& p) {
  return (p.variants & ATTEST_CHUNK) != 0;
}

KeyRange chunk_of(const attest_problem& p, Slip slip, const Miscount& miscount, std::int64_t i) {
  const Chunks chunks(p, slip, miscount);
  return chunks.are_dropped() ? KeyRange{0, p.k.shape[2]} : chunks.of_row(i);
}

bool chunks_drop_causal(const attest_problem& p, Slip slip) {
  return has_chunks(p) && slip == Slip("chunk-drops-the-causal-form");
}

}  // namespace attest
