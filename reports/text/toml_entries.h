// Entries of a TOML file, with error lines that name the file, the line and the rule. Only sources include this: it
// brings all of toml++.
#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// The tables [[NAME]] of a file that holds nothing else.
class TomlEntries {
 public:
  /// `source` is the file's name in error lines, `keys` what an entry may have. Throws UsageError where the text is no
  /// TOML, has another key, or an entry is no table or has a key that is not known.
  TomlEntries(const std::string& text, std::string source, std::string_view name,
              std::span<const std::string_view> keys);
  /// In the order of the file.
  [[nodiscard]] const std::vector<const toml::table*>& entries() const { return entries_; }

  /// Throws UsageError "SOURCE, line N: WHY".
  [[noreturn]] void refuse(const toml::node& at, std::string_view why) const;
  [[nodiscard]] static std::size_t line_of(const toml::node& value) { return value.source().begin.line; }

  /// A text that is not empty. Throws where it is missing; `needs` lists what an entry needs.
  [[nodiscard]] std::string text(const toml::table& entry, std::string_view key, std::string_view needs) const;
  /// The same; empty where it is missing.
  [[nodiscard]] std::string text(const toml::table& entry, std::string_view key) const;
  /// An array of such texts; empty where it is missing.
  [[nodiscard]] std::vector<std::string> texts(const toml::table& entry, std::string_view key) const;
  /// Throws where it is missing.
  [[nodiscard]] const toml::node& required(const toml::table& entry, std::string_view key,
                                           std::string_view needs) const;

 private:
  [[nodiscard]] std::string text_in(const toml::node& value, std::string_view key) const;

  std::string source_, name_;
  toml::table file_;
  std::vector<const toml::table*> entries_;
};

}  // namespace attest
