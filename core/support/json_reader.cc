#include "core/support/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <utility>

#include "core/support/errors.h"
#include "core/support/names.h"

namespace attest {
namespace {

using nlohmann::json;

/// Deeper than any text of ours; writing a value for an error line takes a call a level.
constexpr int most_levels = 16;

/// A value for an error line, not too long.
std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 80) text = text.substr(0, 80) + "…";
  return text;
}

std::size_t position_of(std::string_view word, std::span<const std::string_view> known) {
  return static_cast<std::size_t>(std::find(known.begin(), known.end(), word) - known.begin());
}

/// Whether two keys have one of their words, parted by underscores, in common, and one that says something.
bool share_a_word(std::string_view a, std::string_view b) {
  constexpr std::size_t least = 4;
  const auto words = [](std::string_view key) { return std::views::split(key, '_'); };
  return std::ranges::any_of(words(a), [&](const auto& one) {
    return std::ranges::size(one) >= least &&
           std::ranges::any_of(words(b), [&](const auto& other) { return std::ranges::equal(one, other); });
  });
}

/// The end of an error line about an unknown key that is no slip of a known one, where they are too many to list:
/// `; did you mean "grouped_query"?`, of "grouped_heads".
std::string suggestion_by_word(std::string_view key, std::span<const std::string_view> known) {
  std::vector<std::string> alike;
  for (const std::string_view name : known)
    if (share_a_word(key, name)) alike.push_back(fmt::format("\"{}\"", name));
  return alike.empty() ? "" : fmt::format("; did you mean {}?", fmt::join(alike, " or "));
}

}  // namespace

json parse_strict_json(std::string_view text) {
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    throw UsageError(fmt::format("is not JSON: a NUL at byte {}", nul + 1));
  }
  std::vector<std::set<std::string>> names;  // of each object that is open
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > most_levels) throw UsageError(fmt::format("nests more than {} levels", most_levels));
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second) {
      throw UsageError(fmt::format("has {} twice in one object", in_quotes(value.get<std::string>())));
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), watch);
  } catch (const json::parse_error& error) {
    throw UsageError(fmt::format("is not JSON: wrong at byte {}; it begins with {}", error.byte, in_quotes(text, 40)));
  } catch (const json::out_of_range&) {
    throw UsageError("is not JSON that can be read: a number beyond what a double holds");
  }
}

JsonObject::JsonObject(const json& value, std::string where) : value_(value), where_(std::move(where)) {
  if (!value.is_object()) {
    throw UsageError(fmt::format("{} {}; it must be an object", where_.empty() ? "is" : where_ + " is", shown(value)));
  }
}

JsonObject::JsonObject(const json& value, std::string where, std::span<const std::string_view> known)
    : JsonObject(value, std::move(where)) {
  for (const auto& item : value.items()) {
    if (position_of(item.key(), known) < known.size()) continue;
    std::string remedy = suggestion(item.key(), known);
    if (remedy.empty()) remedy = suggestion_by_word(item.key(), known);
    throw UsageError(
        fmt::format("{}unknown key {}{}", where_.empty() ? "" : where_ + ": ", in_quotes(item.key()), remedy));
  }
}

const json* JsonObject::find(std::string_view key) const {
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

std::string JsonObject::path(std::string_view key) const {
  return fmt::format("{}{}\"{}\"", where_, where_.empty() ? "" : ".", key);
}

void JsonObject::refuse(std::string_view key, std::string_view rule) const {
  const json* value = find(key);
  throw UsageError(fmt::format("{} is {}; {}", path(key), value != nullptr ? shown(*value) : "missing", rule));
}

void JsonObject::read(std::string_view key, bool& value) const {
  const json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_boolean()) refuse(key, "it must be true or false");
  value = found->get<bool>();
}

void JsonObject::read(std::string_view key, std::string& value) const {
  const json* found = find(key);
  if (found == nullptr) return;
  if (!found->is_string()) refuse(key, "it must be a string");
  value = found->get<std::string>();
}

void JsonObject::read(std::string_view key, WholeNumbers range, std::optional<std::int64_t>& value) const {
  const json* found = find(key);
  if (found == nullptr) return;
  const bool small =
      found->is_number_unsigned() && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(range.most);
  if (!small || found->get<std::int64_t>() < range.least) {
    const bool large = found->is_number_unsigned() && found->get<std::uint64_t>() > 1;
    refuse(key, range.most == most_whole_number && !large
                    ? fmt::format("it must be a whole number of at least {}", range.least)
                    : fmt::format("it must be a whole number from {} to {}", range.least, range.most));
  }
  value = found->get<std::int64_t>();
}

void JsonObject::read(std::string_view key, WholeNumbers range, std::int64_t& value) const {
  std::optional<std::int64_t> read_value;
  read(key, range, read_value);
  if (read_value) value = *read_value;
}

void JsonObject::read(std::string_view key, WholeNumbers range, std::vector<std::int64_t>& values) const {
  const json* found = find(key);
  if (found == nullptr) return;
  const auto fits = [&](const json& number) {
    return number.is_number_unsigned() && number.get<std::uint64_t>() <= static_cast<std::uint64_t>(range.most) &&
           number.get<std::int64_t>() >= range.least;
  };
  if (!found->is_array() || found->empty() || !std::ranges::all_of(*found, fits)) {
    refuse(key,
           fmt::format("it must be an array of whole numbers from {} to {}, at least one", range.least, range.most));
  }
  values = found->get<std::vector<std::int64_t>>();
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

void JsonObject::read_positive(std::string_view key, double most, std::string_view why, double& value) const {
  const json* found = find(key);
  if (found == nullptr) return;
  const bool positive = found->is_number() && std::isfinite(found->get<double>()) && found->get<double>() > 0;
  if (!positive) refuse(key, "it must be a finite number greater than 0");
  if (found->get<double>() > most) refuse(key, fmt::format("it must be at most {:.10g}, {}", most, why));
  value = found->get<double>();
}

std::optional<std::size_t> JsonObject::word(std::string_view key, std::span<const std::string_view> known) const {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) refuse(key, "it must be a string");
  const auto text = found->get<std::string>();
  const std::size_t position = position_of(text, known);
  if (position == known.size()) refuse(key, "that word is unknown" + suggestion(text, known));
  return position;
}

std::optional<std::vector<std::size_t>> JsonObject::words(std::string_view key,
                                                          std::span<const std::string_view> known) const {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) refuse(key, "it must be an array of strings");
  std::vector<std::size_t> positions;
  for (const json& element : *found) {
    if (!element.is_string()) refuse(key, "it must be an array of strings");
    const auto text = element.get<std::string>();
    const std::size_t position = position_of(text, known);
    if (position == known.size()) {
      throw UsageError(
          fmt::format("{} holds {}, which is unknown{}", path(key), in_quotes(text), suggestion(text, known)));
    }
    if (std::find(positions.begin(), positions.end(), position) == positions.end()) positions.push_back(position);
  }
  return positions;
}

}  // namespace attest
