#include "properties/faults/variants/planted_window.h"

#include <algorithm>

#include "properties/faults/variants/planted_chunk.h"

namespace attest {
namespace {

/// One window as it is understood.
class Window {
 public:
  Window(const attest_problem& p, Slip slip) : p_(p), slip_(slip), left_(p.window_left), right_(p.window_right) {
    if (is("window-side-becomes-length")) {
      if (left_ >= keys_) left_ = -1;
      if (right_ >= keys_) right_ = -1;
      if (left_ < 0 && right_ >= 0) left_ = keys_;
      if (left_ >= 0 && right_ < 0) right_ = keys_;
    }
    if (is("window-of-zero-is-none")) {
      if (left_ == 0) left_ = -1;
      if (right_ == 0) right_ = -1;
    }
    if (is("window-without-an-end-is-zero")) {
      left_ = std::max<std::int64_t>(left_, 0);
      right_ = std::max<std::int64_t>(right_, 0);
    }
    if (is("window-right-end-ignored")) right_ = -1;
    if (is("window-left-end-ignored-beside-causal") && causal_) left_ = -1;
    if (is("window-made-causal") && !causal_ && left_ >= 0) right_ = 0;
    if (is("window-of-one-end-made-symmetric") && !causal_) {
      if (left_ < 0) left_ = right_;
      if (right_ < 0) right_ = left_;
    }
    if (is("window-opens-the-causal-form") && causal_ && right_ < 0) right_ = left_;
  }

  /// Whether no window is applied.
  [[nodiscard]] bool is_dropped() const {
    if (!has_window(p_)) return true;
    if (is("window-ignored-without-mask")) return p_.mask.data == nullptr;
    if (is("window-ignored-without-causal")) return !causal_;
    if (is("window-ignored-for-one-query")) return queries_ == 1;
    if (is("window-dropped-by-the-sum-of-its-ends")) return left_ + right_ < 0;
    if (is("window-and-causal-form-dropped")) return causal_;
    if (is("wide-window-drops-the-causal-form")) return left_ >= keys_;
    if (is("chunk-replaces-the-window") && has_chunks(p_)) return true;
    return left_ < 0 && right_ < 0;
  }

  [[nodiscard]] KeyRange of_row(std::int64_t h, std::int64_t i) const {
    std::int64_t row = i;
    // Rows of a group's heads are taken together, and their number is not divided again.
    if (is("window-of-packed-rows")) row = i * (p_.q.shape[1] / p_.k.shape[1]) + h % (p_.q.shape[1] / p_.k.shape[1]);
    const std::int64_t position = row + shift();
    KeyRange range{left_ < 0 ? 0 : position - left_, right_ < 0 ? keys_ : position + right_ + 1};
    if (is("window-left-exclusive") && left_ >= 0) ++range.begin;
    if (is("window-left-one-too-many") && left_ >= 0) --range.begin;
    if (is("window-right-exclusive") && right_ >= 0) --range.end;
    if (is("window-left-end-of-first-row") && left_ >= 0) range.begin = shift() - left_;
    if (is("window-keeps-the-last-keys") && left_ >= 0) range.begin = std::max(range.begin, keys_ - 1 - left_);
    range.begin = std::clamp<std::int64_t>(range.begin, 0, keys_);
    range.end = std::clamp<std::int64_t>(range.end, 0, keys_);
    if (is("empty-window-sees-all") && range.begin >= range.end) return {0, keys_};
    return range;
  }

 private:
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }

  /// The position of the first row.
  [[nodiscard]] std::int64_t shift() const {
    bool from_last_key = p_.alignment == ATTEST_CAUSAL_BOTTOM_RIGHT;
    if (is("window-top-left-for-bottom-right")) from_last_key = false;
    if (is("window-bottom-right-for-top-left")) from_last_key = true;
    if (!from_last_key) return 0;
    if (is("window-shift-has-the-other-sign")) return queries_ - keys_;
    // Of a cache of whole pages of 16 keys.
    if (is("window-from-the-capacity")) return (keys_ + 15) / 16 * 16 - queries_;
    return keys_ - queries_;
  }

  const attest_problem& p_;
  Slip slip_;
  std::int64_t queries_ = p_.q.shape[2], keys_ = p_.k.shape[2];
  bool causal_ = p_.causal != ATTEST_CAUSAL_NONE;
  std::int64_t left_, right_;  ///< -1: without an end
};

}  // namespace

bool has_window(const attest_problem& p) {
  return (p.variants & ATTEST_WINDOW) != 0;
}

KeyRange window_of(const attest_problem& p, Slip slip, std::int64_t h, std::int64_t i) {
  const Window window(p, slip);
  return window.is_dropped() ? KeyRange{0, p.k.shape[2]} : window.of_row(h, i);
}

bool window_drops_causal(const attest_problem& p, Slip slip) {
  if (!has_window(p)) return false;
  if (slip == Slip("window-and-causal-form-dropped")) return true;
  if (slip == Slip("window-opens-the-causal-form")) return p.window_left >= 0;
  return slip == Slip("wide-window-drops-the-causal-form") && p.window_left >= p.k.shape[2];
}

}  // namespace attest
