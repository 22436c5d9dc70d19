// Names a user types: globs, and the nearest known name for one that is not known.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>

namespace attest {

/// Whether the whole of `text` matches the shell pattern: `*` any run of characters (dots and slashes too), `?` one,
/// `[a-z]` a set, `\` takes the next character as it is. As fnmatch(3) without flags.
[[nodiscard]] bool glob_match(std::string_view pattern, std::string_view text);

/// Edits that turn `a` into `b`, in bytes: insert, delete, replace, or swap two neighbours, each counted 1 (optimal
/// string alignment). Upper and lower case count as equal.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// How many edits still look like a slip of `word`: a third of its length, at least 1.
[[nodiscard]] std::size_t plausible_edits(std::string_view word);

/// A range whose elements convert to std::string_view.
template <class Range>
concept NameRange = std::ranges::input_range<const Range> &&
                    std::convertible_to<std::ranges::range_reference_t<const Range>, std::string_view>;

/// The known name that is the fewest edits from `word`, the first of equals; nothing when none is within
/// plausible_edits(word), so that a wild guess is never offered.
template <NameRange Range>
[[nodiscard]] std::optional<std::string> nearest_name(std::string_view word, const Range& known) {
  std::optional<std::string> nearest;
  std::size_t fewest = plausible_edits(word) + 1;
  for (const std::string_view name : known) {
    const std::size_t edits = edit_distance(word, name);
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = name;
  }
  return nearest;
}

/// The end of an error line about an unknown name: `; did you mean "flash"?`, or `; known: "a", "b"` when nothing is
/// near and at most `list_up_to` names are known, else nothing.
template <NameRange Range>
[[nodiscard]] std::string suggestion(std::string_view word, const Range& known, std::size_t list_up_to = 16) {
  if (const auto nearest = nearest_name(word, known)) return "; did you mean \"" + *nearest + "\"?";
  std::string list;
  std::size_t count = 0;
  for (const std::string_view name : known) {
    list += (list.empty() ? "; known: \"" : ", \"") + std::string(name) + "\"";
    ++count;
  }
  return count <= list_up_to ? list : std::string();
}

/// `text` for one line of an error message, in double quotes: control characters and bytes outside ASCII's printable
/// range as \xNN, and at most `most` bytes of it, then "…".
[[nodiscard]] std::string in_quotes(std::string_view text, std::size_t most = 80);

}  // namespace attest
