#include "properties/diagnosis/variants/window_misreadings.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"

namespace attest {
namespace {

class MisreadWindows {
 public:
  explicit MisreadWindows(const Case& c)
      : left_(c.window_left),
        right_(c.window_right),
        rows_(queries_of(c)),
        keys_(keys_of(c)),
        causal_(c.causal != Causal::none),
        from_last_(c.alignment == Causal::bottom_right),
        open_(written_out(c, c.causal)),
        bare_(causal_ ? written_out(c, Causal::none) : open_) {
    ends();
    positions();
    beside_others();
  }
  [[nodiscard]] std::vector<MisreadWindow> take() { return std::move(found_); }

 private:
  /// The first key that row i sees, and the one behind the last.
  using Range = std::pair<std::int64_t, std::int64_t>;
  using RangeOf = std::function<Range(std::int64_t i)>;

  /// Without the window, with that causal form, and with a mask.
  static Case written_out(Case c, Causal causal) {
    drop_variant(c, window_variant.name);
    c.causal = causal;
    return only_hides(c) ? with_boolean_mask(std::move(c)) : with_additive_mask(std::move(c));
  }
  void add(std::string words, const Case& open, const RangeOf& range) {
    Case other = open;
    const double hides = open.mask().dtype() == DType::boolean ? 0.0 : -infinity;
    other[Slot::mask] = mapped(open.mask(), [&](std::int64_t e, double old) {
      const auto [first, end] = range(e / keys_ % rows_);
      return first <= e % keys_ && e % keys_ < end ? old : hides;
    });
    found_.push_back({std::move(words), std::move(other)});
  }

  [[nodiscard]] std::int64_t shift() const { return from_last_ ? keys_ - rows_ : 0; }
  /// Of a window of these ends, -1 for none, whose first row has that position.
  [[nodiscard]] Range window(std::int64_t i, std::int64_t left, std::int64_t right, std::int64_t first) const {
    return {left < 0 ? 0 : i + first - left, right < 0 ? keys_ : i + first + right + 1};
  }
  [[nodiscard]] Range own(std::int64_t i) const { return window(i, left_, right_, shift()); }
  void add_ends(std::string words, std::int64_t left, std::int64_t right) {
    add(std::move(words), open_, [=, this](std::int64_t i) { return window(i, left, right, shift()); });
  }
  /// With the ends moved by so many keys, an end of 0 too.
  void add_moved(std::string words, std::int64_t first, std::int64_t end) {
    add(std::move(words), open_, [=, this](std::int64_t i) {
      const Range range = own(i);
      return Range{range.first + first, range.second + end};
    });
  }
  void add_shift(std::string words, std::int64_t first) {
    if (first == shift()) return;
    add(std::move(words), open_, [=, this](std::int64_t i) { return window(i, left_, right_, first); });
  }

  void ends() {
    add_ends("there were no window", -1, -1);
    if (left_ >= 0) {
      add_moved("the window's left end were exclusive, as where a window of W keys counts the query's own", 1, 0);
      add_moved("the window reached one key further to the left", -1, 0);
      add_ends("the window had no left end", -1, right_);
    }
    if (right_ >= 0) {
      add_moved("the window's right end were exclusive", 0, -1);
      add_moved("the window reached one key further to the right", 0, 1);
      add_ends("the window had no right end", left_, -1);
    }
    if (left_ != right_) add_ends("the ends of the window were exchanged", right_, left_);
    if (left_ == 0 || right_ == 0)
      add_ends("an end of 0 keys were no end", left_ == 0 ? -1 : left_, right_ == 0 ? -1 : right_);
    if (left_ < 0 || right_ < 0) {
      add_ends("an end that is not there were one of 0 keys", std::max<std::int64_t>(left_, 0),
               std::max<std::int64_t>(right_, 0));
      add_ends("a window of one end had the same on the other side", left_ < 0 ? right_ : left_,
               right_ < 0 ? left_ : right_);
    }
    const auto within = [&](std::int64_t end) { return end >= keys_ ? std::int64_t{-1} : end; };
    const auto bounded = [&](std::int64_t end, std::int64_t other) {
      return within(end) < 0 && within(other) >= 0 ? keys_ : within(end);
    };
    add_ends("an end of the window that is not there were one of N keys, and one of N or more not there",
             bounded(left_, right_), bounded(right_, left_));
    if (left_ >= 0 && !causal_) add_ends("the window ended at the row's own position", left_, 0);
  }

  void positions() {
    add_shift(from_last_ ? "the window were aligned to the first keys" : "the window were aligned to the last keys",
              from_last_ ? 0 : keys_ - rows_);
    if (from_last_) add_shift("the window of row i stood at i + M - N", rows_ - keys_);
    if (left_ < 0) return;
    add("the windows of all rows began where that of the first does", open_,
        [this](std::int64_t i) { return Range{own(0).first, own(i).second}; });
    add("only as many of the last keys were there as the window of one row holds", open_,
        [this](std::int64_t i) { return Range{std::max(own(i).first, keys_ - 1 - left_), own(i).second}; });
  }

  void beside_others() {
    if (!causal_) return;
    add("there were neither a window nor a causal form", bare_, [this](std::int64_t) { return Range{0, keys_}; });
    add("the window held, and the causal form did not", bare_, [this](std::int64_t i) { return own(i); });
    if (left_ >= 0)
      add("the window showed as many keys behind the causal diagonal as before it", bare_,
          [this](std::int64_t i) { return window(i, left_, right_ < 0 ? left_ : right_, shift()); });
  }

  std::int64_t left_, right_, rows_, keys_;
  bool causal_, from_last_;
  Case open_, bare_;  ///< without the window; without the causal form, too
  std::vector<MisreadWindow> found_;
};

}  // namespace

std::vector<MisreadWindow> misread_windows(const Case& c) {
  if (!has_variant(c, window_variant.name)) return {};
  if (!only_hides(c) && c.dtype() == DType::f8_e4m3) return {};
  return MisreadWindows(c).take();
}

}  // namespace attest
