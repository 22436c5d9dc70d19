// Words of others, made safe to show: what a kernel, a manifest or a journal says is seen as it is, or not at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace attest {

/// Whether a character moves what is around it instead of being seen itself:
///   controls      C0, DEL and C1: U+0000 to U+001F, U+007F to U+009F
///   line breaks   U+2028, U+2029
///   directions    U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069
///   not seen      the other default ignorable characters of Unicode (zero-width spaces and joiners, soft hyphens,
///                 fillers, variation selectors, tags), interlinear annotations and noncharacters
[[nodiscard]] bool is_hidden(char32_t character);
/// Whether it is one of the controls and line breaks.
[[nodiscard]] bool is_control(char32_t character);

/// `text` as UTF-8, in which each hidden character stands as `instead` says, and U+FFFD for what is no UTF-8.
[[nodiscard]] std::string with_hidden(std::string_view text, const std::function<std::string(char32_t)>& instead);

/// `text` as UTF-8 in which every character is seen: controls and line breaks as `control`, but those of `kept` (ASCII)
/// as they are; other hidden characters, and what is no UTF-8, as U+FFFD.
[[nodiscard]] std::string visible(std::string_view text, std::string_view control = " ", std::string_view kept = "");

/// A text of JSON with its hidden characters as \uXXXX: whoever reads it has the same text, and whoever looks at it
/// sees them.
[[nodiscard]] std::string visible_json(std::string_view json);

}  // namespace attest
