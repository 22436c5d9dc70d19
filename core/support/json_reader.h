// Reading a JSON object key by key, with error lines that name the key, the value and the rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Parses strict JSON. A name that stands twice in one object is an error (a document tree keeps one silently), and so
/// is a NUL, which the parser takes for the end, and nesting beyond 16 levels. Throws UsageError.
[[nodiscard]] nlohmann::json parse_strict_json(std::string_view text);

/// No whole number of a manifest is larger; sums of two of them are numbers still.
inline constexpr std::int64_t most_whole_number = std::int64_t{1} << 62;

/// From `least` to `most`, both of them.
struct WholeNumbers {
  std::int64_t least;
  std::int64_t most;
};

/// An object. The JSON value must outlive it. Each reader does nothing when the key is absent, throws UsageError when
/// its value is not of the kind or against the rule.
class JsonObject {
 public:
  /// `where` is the path of the object in error lines, "" for the whole text. Throws when `value` is no object or has a
  /// key that is not known.
  JsonObject(const nlohmann::json& value, std::string where, std::span<const std::string_view> known);
  /// The same for a format of others, which may have keys that nobody here knows.
  JsonObject(const nlohmann::json& value, std::string where);

  /// The value of a key; nullptr when absent.
  [[nodiscard]] const nlohmann::json* find(std::string_view key) const;
  /// `"limits"."max_keys"`.
  [[nodiscard]] std::string path(std::string_view key) const;
  /// Throws `"key" is VALUE; RULE`.
  [[noreturn]] void refuse(std::string_view key, std::string_view rule) const;

  void read(std::string_view key, bool& value) const;
  void read(std::string_view key, std::string& value) const;
  /// A whole number, of those in the range.
  void read(std::string_view key, WholeNumbers range, std::int64_t& value) const;
  void read(std::string_view key, WholeNumbers range, std::optional<std::int64_t>& value) const;
  /// Whole numbers of the range, at least one; what comes back ascends, each once.
  void read(std::string_view key, WholeNumbers range, std::vector<std::int64_t>& values) const;
  /// A number greater than 0 and at most `most`, of which `why` says what is more.
  void read_positive(std::string_view key, double most, std::string_view why, double& value) const;
  /// The position of a word among the known ones; nothing when the key is absent.
  [[nodiscard]] std::optional<std::size_t> word(std::string_view key, std::span<const std::string_view> known) const;
  /// The positions of the words of an array, each once, in the order of the text.
  [[nodiscard]] std::optional<std::vector<std::size_t>> words(std::string_view key,
                                                              std::span<const std::string_view> known) const;

 private:
  const nlohmann::json& value_;
  std::string where_;
};

}  // namespace attest
