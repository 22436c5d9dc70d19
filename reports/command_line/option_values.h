// The kinds of values that options of several commands take: how each is read from the word behind the option. What is
// none is refused by a UsageError, one line with the option, the text and the rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "core/support/words.h"
#include "core/value/dtype.h"
#include "reports/command_line/command.h"

namespace attest {

/// What the shell offers for files, and for folders alone.
[[nodiscard]] Completions files();
[[nodiscard]] Completions folders();

/// Any text, as it stands.
[[nodiscard]] Value<std::string> any_text(std::string_view word, Offer offer = {});
/// Any text but an empty one. `what` it has to name: "a file".
[[nodiscard]] Value<std::string> text_naming(std::string_view what, std::string_view word, Offer offer);
/// A "FILE" by its name.
[[nodiscard]] Value<std::string> file_name();
/// "N", of at least `least`. For int, std::int64_t and std::uint64_t.
template <class Integer>
[[nodiscard]] Value<Integer> whole_number(Integer least);
/// "500ms", "90s", "10m", "2h"; seconds without a unit.
[[nodiscard]] Value<std::chrono::milliseconds> duration();
/// Bytes: "512MiB", "4GB"; 0 for "none".
[[nodiscard]] Value<std::uint64_t> memory_size();
/// One dtype or several with commas.
[[nodiscard]] Value<std::vector<DType>> dtype_list();
/// "0/4"
[[nodiscard]] Value<Shard> shard_of_run();

/// The place of the text among the words that the option knows. Throws UsageError with the nearest.
[[nodiscard]] std::size_t place_among(std::span<const std::string_view> words, std::string_view option,
                                      const std::string& text);

/// An enumerator by its word.
template <Worded Enum>
[[nodiscard]] Value<Enum> word_of(std::string_view word) {
  constexpr auto& names = Words<Enum>::names;
  return {word,
          [](std::string_view option, const std::string& text) {
            return static_cast<Enum>(place_among(names, option, text));
          },
          [] { return Completions{.words = {names.begin(), names.end()}}; }};
}

}  // namespace attest
