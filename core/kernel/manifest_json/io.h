// What a manifest's JSON is written and read with: what it holds is told once, to a Writer, a Reader or Keys.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/support/json_reader.h"
#include "core/support/names.h"
#include "core/value/dtype.h"

namespace attest::manifest_json {

using nlohmann::json, nlohmann::ordered_json;
using Names = std::span<const std::string_view>;

/// As long as an axis may be (case.h): no sum has more terms.
inline constexpr WholeNumbers extents{1, (std::int64_t{1} << 31U) - 1};
/// Of largest extents, which may be stated where there is none: they allocate nothing.
inline constexpr WholeNumbers largest_limits{1, most_whole_number};

/// All but bool, the last one.
inline constexpr Names dtypes = std::span(Words<DType>::names).first<6>();

template <Worded Enum>
inline constexpr Names words_of = Words<Enum>::names;
template <>
inline constexpr Names words_of<DType> = dtypes;

// What a manifest holds is told once, in the order in which it is written, to a Writer, a Reader or Keys:
//
//   io("key", value)                   of its type; whole numbers with their range. Read, any key may be absent
//   io.if_stated(is, "key", value)     written only where it is, behind what is always written
//   io.positive(is, "key", value, most, why)
//   io.word("key", words, flag)        the second of two words where the flag is true, or as the last argument says
//   io.flags("key", words, one, ...)   the words of the flags that are set
//   io.object("key", tell)             an object of which `tell` tells an io the members
//   io.by("key", record, write, read)  written by a function of the record where it gives no null, read by another
//   io.require(holds, "key", rule)     of what was read; io.states("key"): it was there

ordered_json json_of(const auto& value) {
  using Value = std::remove_cvref_t<decltype(value)>;
  if constexpr (Worded<Value>) {
    return name_of(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value) : ordered_json(nullptr);
  } else if constexpr (requires { requires Worded<typename Value::value_type>; }) {
    ordered_json array = ordered_json::array();
    for (const auto one : value) array.push_back(name_of(one));
    return array;
  } else {
    return value;
  }
}

class Writer {
 public:
  void operator()(std::string_view key, const auto& value, const WholeNumbers& /*range*/ = {}) {
    always_[std::string(key)] = json_of(value);
  }
  void if_stated(bool is, std::string_view key, const auto& value, const WholeNumbers& /*range*/ = {}) {
    if (is) behind_[std::string(key)] = json_of(value);
  }
  void positive(bool is, std::string_view key, double value, double /*most*/, std::string_view /*why*/) {
    if_stated(is, key, value);
  }
  void word(std::string_view key, Names words, bool flag, bool second = true) {
    (*this)(key, words[flag == second ? 1 : 0]);
  }
  void flags(std::string_view key, Names words, std::same_as<bool> auto... flags) {
    ordered_json& set = always_[std::string(key)] = ordered_json::array();
    std::size_t at = 0;
    for (const bool flag : {flags...}) {
      if (flag) set.push_back(words[at]);
      ++at;
    }
  }
  void object(std::string_view key, auto tell) {
    Writer io;
    tell(io);
    (*this)(key, io.json());
  }
  void by(std::string_view key, const auto& record, auto write, auto /*read*/) {
    if (const ordered_json value = write(record); !value.is_null()) (*this)(key, value);
  }
  [[nodiscard]] static bool states(std::string_view /*key*/) { return true; }
  void require(bool /*holds*/, std::string_view /*key*/, std::string_view /*rule*/) {}

  [[nodiscard]] ordered_json json() const {
    ordered_json all = always_;
    all.update(behind_);
    return all;
  }

 private:
  ordered_json always_ = ordered_json::object(), behind_ = ordered_json::object();
};

class Keys {
 public:
  void operator()(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void if_stated(bool /*is*/, std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void positive(bool /*is*/, std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void word(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void flags(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void object(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  void by(std::string_view key, const auto&... /*rest*/) { keys.push_back(key); }
  [[nodiscard]] static bool states(std::string_view /*key*/) { return true; }
  void require(bool /*holds*/, std::string_view /*key*/, std::string_view /*rule*/) {}
  std::vector<std::string_view> keys{};
};
std::vector<std::string_view> keys_told_by(auto tell) {
  Keys io;
  tell(io);
  return io.keys;
}

class Reader {
 public:
  explicit Reader(const JsonObject& object) : object_(object) {}

  void operator()(std::string_view key, bool& value) { object_.read(key, value); }
  void operator()(std::string_view key, std::string& value) { object_.read(key, value); }
  void operator()(std::string_view key, auto& value, const WholeNumbers& range) { object_.read(key, range, value); }
  template <Worded Enum>
  void operator()(std::string_view key, Enum& value) {
    if (const auto position = object_.word(key, words_of<Enum>)) value = static_cast<Enum>(*position);
  }
  /// null says that the thing is not done, which a word cannot.
  template <Worded Enum>
  void operator()(std::string_view key, std::optional<Enum>& value) {
    const json* found = object_.find(key);
    if (found == nullptr) return;
    value.reset();
    if (!found->is_null()) (*this)(key, value.emplace());
  }
  template <Worded Enum>
  void operator()(std::string_view key, std::vector<Enum>& values) {
    const auto positions = object_.words(key, words_of<Enum>);
    if (!positions) return;
    values.clear();
    for (const std::size_t position : *positions) values.push_back(static_cast<Enum>(position));
  }
  void if_stated(bool /*is*/, std::string_view key, auto& value, const auto&... range) {
    (*this)(key, value, range...);
  }
  void positive(bool /*is*/, std::string_view key, double& value, double most, std::string_view why) {
    object_.read_positive(key, most, why, value);
  }
  void word(std::string_view key, Names words, bool& flag, bool second = true) {
    if (const auto position = object_.word(key, words)) flag = (*position == 1) == second;
  }
  void flags(std::string_view key, Names words, std::same_as<bool> auto&... flags) {
    const auto positions = object_.words(key, words);
    if (!positions) return;
    std::size_t at = 0;
    ((flags = std::ranges::count(*positions, at++) > 0), ...);
  }
  void object(std::string_view key, auto tell) {
    const json* found = object_.find(key);
    if (found == nullptr) return;
    const JsonObject inner(*found, object_.path(key), keys_told_by(tell));
    Reader io(inner);
    tell(io);
  }
  void by(std::string_view key, auto& record, auto /*write*/, auto read) {
    if (states(key)) read(object_, key, record);
  }
  [[nodiscard]] bool states(std::string_view key) const { return object_.find(key) != nullptr; }
  void require(bool holds, std::string_view key, std::string_view rule) {
    if (!holds) object_.refuse(key, rule);
  }

 private:
  const JsonObject& object_;
};

}  // namespace attest::manifest_json
