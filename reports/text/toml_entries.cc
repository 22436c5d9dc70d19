#include "reports/text/toml_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/text/text.h"

namespace attest {

TomlEntries::TomlEntries(const std::string& text, std::string source, std::string_view name,
                         std::span<const std::string_view> keys)
    : source_(std::move(source)), name_(name) {
  try {
    file_ = toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw UsageError(fmt::format("{}, line {}: this is not TOML: {}", source_, error.source().begin.line,
                                 one_line(error.description())));
  }
  for (const auto& [key, value] : file_) {
    if (key.str() != name_) {
      refuse(value, fmt::format("unknown key {}{}; every entry begins with [[{}]]", in_quotes(key.str()),
                                suggestion(key.str(), std::array{name}), name_));
    }
    if (!value.is_array()) refuse(value, fmt::format("a {0} begins with [[{0}]], in two pairs of brackets", name_));
    for (const toml::node& entry : *value.as_array()) {
      if (!entry.is_table()) refuse(entry, fmt::format("a {0} must be a table that begins with [[{0}]]", name_));
      for (const auto& [own, said] : *entry.as_table()) {
        if (std::ranges::find(keys, own.str()) == keys.end())
          refuse(said, fmt::format("unknown key {}{}", in_quotes(own.str()), suggestion(own.str(), keys)));
      }
      entries_.push_back(entry.as_table());
    }
  }
}

void TomlEntries::refuse(const toml::node& at, std::string_view why) const {
  throw UsageError(fmt::format("{}, line {}: {}", source_, line_of(at), why));
}

const toml::node& TomlEntries::required(const toml::table& entry, std::string_view key, std::string_view needs) const {
  if (!entry.contains(key)) refuse(entry, fmt::format("the {} has no {}; it needs {}", name_, key, needs));
  return *entry.get(key);
}

std::string TomlEntries::text_in(const toml::node& value, std::string_view key) const {
  if (!value.is_string() || value.as_string()->get().empty())
    refuse(value, fmt::format("{} must be a text that is not empty, in quotes", key));
  return value.as_string()->get();
}

std::string TomlEntries::text(const toml::table& entry, std::string_view key, std::string_view needs) const {
  return text_in(required(entry, key, needs), key);
}

std::string TomlEntries::text(const toml::table& entry, std::string_view key) const {
  return entry.contains(key) ? text_in(*entry.get(key), key) : std::string();
}

std::vector<std::string> TomlEntries::texts(const toml::table& entry, std::string_view key) const {
  std::vector<std::string> all;
  if (!entry.contains(key)) return all;
  const toml::node& value = *entry.get(key);
  if (!value.is_array()) refuse(value, fmt::format("{} must be an array of texts, as [\"…\", \"…\"]", key));
  for (const toml::node& one : *value.as_array()) all.push_back(text_in(one, key));
  return all;
}

}  // namespace attest
