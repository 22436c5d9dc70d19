// Of what rows see by their positions: windows and chunks.
#include <string>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/catalogue/hypotheses.h"

namespace attest {
namespace {

/// Is there a row of which it is true, by what the rule shows it?
template <class Is>
bool any_row(const Case& c, const SightRule& rule, Is is) {
  for (std::int64_t i = 0; i < queries_of(c); ++i)
    if (is(sight(rule, i, queries_of(c), keys_of(c)))) return true;
  return false;
}
template <class Is>
bool any_row(const Case& c, Is is) {
  return any_row(c, sight_rule(c), is);
}

bool sees_no_key(const Sight& seen) {
  return seen.first == seen.last;
}
/// Is there a block of 16 keys or more before what it sees?
bool is_behind_a_block(const Sight& seen) {
  return seen.first >= 16 && !sees_no_key(seen);
}

bool has_window(const Case& c) {
  return has_variant(c, window_variant.name);
}

std::string misses_window(const Case& c) {
  return has_window(c) ? "" : "has no window; the theorem is about one";
}

bool has_chunks(const Case& c) {
  return has_variant(c, chunk_variant.name);
}

/// What chunks alone show.
SightRule rule_of_chunks(const Case& c) {
  return {.alignment = c.alignment, .chunk = c.attention_chunk};
}

std::string misses_chunk(const Case& c) {
  return has_chunks(c) ? "" : "has no chunks of keys; the theorem is about them";
}

}  // namespace

namespace hypotheses {

constexpr Hypothesis window{"window", "a window", misses_window};
constexpr Hypothesis no_window{
    "no-window", "no window", [](const Case& c) -> std::string {
      return has_window(c) ? "has a window; the theorem is about attention with and without one of its own" : "";
    }};
constexpr Hypothesis window_and_more{
    "window-and-more", "a window beside a mask or a causal form", [](const Case& c) -> std::string {
      if (!has_window(c)) return misses_window(c);
      if (c.mask().present() || c.causal != Causal::none) return {};
      return "has a window alone; the theorem is about one beside a mask or a causal form";
    }};
constexpr Hypothesis keys_before_windows{
    "keys-before-windows", "bottom-right, a key before every row's window", [](const Case& c) -> std::string {
      if (c.window_left >= 0 && c.alignment == Causal::bottom_right && queries_of(c) > 0 && keys_of(c) > 1 &&
          !any_row(c, [](const Sight& seen) { return seen.first == 0 && seen.last > 0; }))
        return {};
      return "has no key before every row's window, counted from the bottom right; the theorem deletes one";
    }};
constexpr Hypothesis keys_behind_windows{
    "keys-behind-windows", "top-left, a key behind every row's window", [](const Case& c) -> std::string {
      if (c.window_right >= 0 && c.alignment == Causal::top_left && queries_of(c) > 0 && keys_of(c) > 1 &&
          !any_row(c, [&](const Sight& seen) { return seen.last == keys_of(c) && seen.first < seen.last; }))
        return {};
      return "has no key behind every row's window, counted from the top left; the theorem deletes one";
    }};
constexpr Hypothesis row_outside_the_keys{
    "row-outside-the-keys", "a row whose window holds no key", [](const Case& c) -> std::string {
      if (!has_window(c)) return misses_window(c);
      if (keys_of(c) > 0 && any_row(c, sees_no_key)) return {};
      return "has a key in every row's window; the theorem is about a row without one";
    }};
constexpr Hypothesis row_behind_a_block{
    "row-behind-a-block", "a row whose window begins at key 16 or later", [](const Case& c) -> std::string {
      if (c.window_left >= 0 && any_row(c, is_behind_a_block)) return {};
      return "has no row whose window begins at key 16 or later; the theorem is about one";
    }};
constexpr Hypothesis window_of_one_key{
    "window-of-one-key", "a window of one key, M = N and no mask", [](const Case& c) -> std::string {
      const bool ends = c.window_right == 0 || c.causal != Causal::none;
      if (c.window_left == 0 && ends && !c.mask().present() && queries_of(c) == keys_of(c)) return {};
      return "is not a window of one key with as many queries as keys and without a mask; the theorem is about that";
    }};
constexpr Hypothesis chunk{"chunk", "chunks of keys", misses_chunk};
constexpr Hypothesis no_chunk{
    "no-chunk", "no chunks of keys", [](const Case& c) -> std::string {
      return has_chunks(c) ? "has chunks of keys; the theorem is about attention with and without some of its own" : "";
    }};
constexpr Hypothesis chunk_and_more{
    "chunk-and-more", "chunks beside a mask, a causal form or a window", [](const Case& c) -> std::string {
      if (!has_chunks(c)) return misses_chunk(c);
      if (c.mask().present() || c.causal != Causal::none || has_window(c)) return {};
      return "has chunks alone; the theorem is about those beside a mask, a causal form or a window";
    }};
constexpr Hypothesis chunks_before_rows{
    "chunks-before-rows", "bottom-right, a chunk before every row's own", [](const Case& c) -> std::string {
      if (!has_chunks(c)) return misses_chunk(c);
      // The first row that stands at a key is at key N - M, or at key 0.
      if (c.alignment == Causal::bottom_right && queries_of(c) > 0 && keys_of(c) - queries_of(c) >= c.attention_chunk)
        return {};
      return "has no chunk before every row's own, counted from the bottom right; the theorem deletes one";
    }};
constexpr Hypothesis keys_behind_chunks{
    "keys-behind-chunks", "top-left, a key behind every row's chunk", [](const Case& c) -> std::string {
      if (!has_chunks(c)) return misses_chunk(c);
      const std::int64_t last = queries_of(c) - 1;
      if (c.alignment == Causal::top_left && last >= 0 &&
          last / c.attention_chunk * c.attention_chunk + c.attention_chunk < keys_of(c))
        return {};
      return "has no key behind every row's chunk, counted from the top left; the theorem deletes one";
    }};
constexpr Hypothesis row_without_a_chunk{
    "row-without-a-chunk", "a row whose chunk holds no key", [](const Case& c) -> std::string {
      if (!has_chunks(c)) return misses_chunk(c);
      if (keys_of(c) > 0 && any_row(c, rule_of_chunks(c), sees_no_key)) return {};
      return "has a key in every row's chunk; the theorem is about a row without one";
    }};
constexpr Hypothesis chunk_behind_a_block{
    "chunk-behind-a-block", "a row whose chunk begins at key 16 or later", [](const Case& c) -> std::string {
      if (!has_chunks(c)) return misses_chunk(c);
      if (any_row(c, rule_of_chunks(c), is_behind_a_block)) return {};
      return "has no row whose chunk begins at key 16 or later; the theorem is about one";
    }};
constexpr Hypothesis chunk_of_one_key{
    "chunk-of-one-key", "chunks of one key, M = N and no mask", [](const Case& c) -> std::string {
      if (c.attention_chunk == 1 && !c.mask().present() && queries_of(c) == keys_of(c)) return {};
      return "has no chunks of one key with as many queries as keys and without a mask; the theorem is about those";
    }};

}  // namespace hypotheses
}  // namespace attest
