// Words of enumerations: one array per enumeration, from which names, parsers and lists of what is known follow.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace attest {

/// Specialised for an enumeration whose enumerators are 0, 1, …: `names`, an array of one word each in their order.
template <class Enum>
struct Words;

template <class Enum>
concept Worded = requires { Words<Enum>::names.size(); };

/// The word of an enumerator; "?" for a number that is none.
template <Worded Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) noexcept {
  const auto i = static_cast<std::size_t>(value);
  return i < Words<Enum>::names.size() ? Words<Enum>::names[i] : "?";
}

/// The enumerator of a word; nothing for a word that is none.
template <Worded Enum>
[[nodiscard]] constexpr std::optional<Enum> named(std::string_view word) noexcept {
  for (std::size_t i = 0; i < Words<Enum>::names.size(); ++i)
    if (Words<Enum>::names[i] == word) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace attest
