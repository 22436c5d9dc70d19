#include "properties/diagnosis/variants/window_misreadings.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sight.h"

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
        open_(without_sight_of(window_variant, c, c.causal)),
        bare_(causal_ ? without_sight_of(window_variant, c, Causal::none) : open_) {
    ends();
    positions();
    beside_others();
  }
  [[nodiscard]] std::vector<MisreadSight> take() { return std::move(found_); }

 private:
  using SightOf = std::function<Sight(std::int64_t i)>;

  void add(std::string words, const Case& open, const SightOf& sight) {
    found_.push_back({std::move(words), narrowed(open, sight)});
  }

  [[nodiscard]] std::int64_t shift() const { return from_last_ ? keys_ - rows_ : 0; }
  /// Of a window of these ends, -1 for none, whose first row has that position.
  [[nodiscard]] Sight window(std::int64_t i, std::int64_t left, std::int64_t right, std::int64_t first) const {
    return {left < 0 ? 0 : i + first - left, right < 0 ? keys_ : i + first + right + 1};
  }
  [[nodiscard]] Sight own(std::int64_t i) const { return window(i, left_, right_, shift()); }
  void add_ends(std::string words, std::int64_t left, std::int64_t right) {
    add(std::move(words), open_, [=, this](std::int64_t i) { return window(i, left, right, shift()); });
  }
  /// With the ends moved by so many keys, an end of 0 too.
  void add_moved(std::string words, std::int64_t first, std::int64_t end) {
    add(std::move(words), open_, [=, this](std::int64_t i) {
      const Sight seen = own(i);
      return Sight{seen.first + first, seen.last + end};
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
        [this](std::int64_t i) { return Sight{own(0).first, own(i).last}; });
    add("only as many of the last keys were there as the window of one row holds", open_,
        [this](std::int64_t i) { return Sight{std::max(own(i).first, keys_ - 1 - left_), own(i).last}; });
  }

  void beside_others() {
    if (!causal_) return;
    add("there were neither a window nor a causal form", bare_, [this](std::int64_t) { return Sight{0, keys_}; });
    add("the window held, and the causal form did not", bare_, [this](std::int64_t i) { return own(i); });
    if (left_ >= 0)
      add("the window showed as many keys behind the causal diagonal as before it", bare_,
          [this](std::int64_t i) { return window(i, left_, right_ < 0 ? left_ : right_, shift()); });
  }

  std::int64_t left_, right_, rows_, keys_;
  bool causal_, from_last_;
  Case open_, bare_;  ///< without the window; without the causal form, too
  std::vector<MisreadSight> found_;
};

}  // namespace

std::vector<MisreadSight> misread_windows(const Case& c) {
  if (!has_variant(c, window_variant.name)) return {};
  if (!can_hide_by_mask(c)) return {};
  return MisreadWindows(c).take();
}

}  // namespace attest
