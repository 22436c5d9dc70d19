// The members of a journal's line.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "core/support/names.h"

namespace attest {

/// What is wrong with a line; the reader adds where it is.
class BadLine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline std::int64_t integer_of(const simdjson::dom::element& value, std::string_view name, std::int64_t least = 0) {
  std::int64_t number = 0;
  if (value.get(number) != simdjson::SUCCESS || number < least)
    throw BadLine(fmt::format("\"{}\" must be a whole number of at least {}", name, least));
  return number;
}

inline double number_of(const simdjson::dom::element& value, std::string_view name) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  std::string_view word;
  if (value.get(word) != simdjson::SUCCESS) word = {};
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw BadLine(fmt::format("\"{}\" must be a number, \"inf\", \"-inf\" or \"nan\"", name));
}

/// A line's members, taken by name and type; what is not taken is an error, so that a journal of a later version is
/// refused and not half understood.
class Members {
 public:
  explicit Members(const simdjson::dom::object& object) {
    for (const auto& [name, value] : object) members_.push_back({name, value});
  }

  [[nodiscard]] bool has(std::string_view name) { return find(name) != nullptr; }

  simdjson::dom::element take(std::string_view name) {
    Member* const member = find(name);
    if (member == nullptr) throw BadLine(fmt::format("has no \"{}\"", name));
    member->taken = true;
    return member->value;
  }
  std::string_view text(std::string_view name) {
    std::string_view text;
    if (take(name).get(text) != simdjson::SUCCESS) throw BadLine(fmt::format("\"{}\" must be a string", name));
    return text;
  }
  std::int64_t integer(std::string_view name, std::int64_t least = 0) { return integer_of(take(name), name, least); }
  std::uint64_t natural(std::string_view name) {
    std::uint64_t number = 0;
    if (take(name).get(number) != simdjson::SUCCESS) throw BadLine(fmt::format("\"{}\" must be a whole number", name));
    return number;
  }
  double number(std::string_view name) { return number_of(take(name), name); }
  simdjson::dom::array array(std::string_view name) {
    simdjson::dom::array array;
    if (take(name).get(array) != simdjson::SUCCESS) throw BadLine(fmt::format("\"{}\" must be an array", name));
    return array;
  }
  simdjson::dom::object object(std::string_view name) {
    simdjson::dom::object object;
    if (take(name).get(object) != simdjson::SUCCESS) throw BadLine(fmt::format("\"{}\" must be an object", name));
    return object;
  }
  void finish() const {
    for (const Member& member : members_) {
      if (member.taken) continue;
      const bool twice =
          std::ranges::any_of(members_, [&](const Member& other) { return other.taken && other.name == member.name; });
      throw BadLine(twice ? fmt::format("has {} twice", in_quotes(member.name))
                          : fmt::format("has an unknown member {}", in_quotes(member.name)));
    }
  }
  template <class Use>
  void for_each_of_the_rest(Use use) const {
    for (const Member& member : members_) {
      if (!member.taken) use(member.name, member.value);
    }
  }

 private:
  struct Member {
    std::string_view name;
    simdjson::dom::element value;
    bool taken = false;
  };

  /// Members are asked for in the order in which they are written, mostly.
  Member* find(std::string_view name) {
    for (std::size_t tried = 0; tried < members_.size(); ++tried, next_ = (next_ + 1) % members_.size()) {
      if (members_[next_].name == name && !members_[next_].taken) return &members_[next_];
    }
    return nullptr;
  }

  boost::container::small_vector<Member, 24> members_;
  std::size_t next_ = 0;
};

}  // namespace attest
