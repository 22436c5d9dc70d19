// Counts and utilisations in JSON files that only reports read. All throw nlohmann::json::exception for anything else.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace attest {

/// A whole number of 0 to 2^62, beyond which sums of counts would overflow.
inline std::int64_t count_of(const nlohmann::json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 62U)
    throw nlohmann::json::type_error::create(302, "not a count", &value);
  return value.get<std::int64_t>();
}

/// A number of at least 0, or "inf" as JsonWriter writes it.
inline double utilisation_of(const nlohmann::json& value) {
  if (value == "inf") return std::numeric_limits<double>::infinity();
  const bool right = value.is_number() && value.get<double>() >= 0;
  if (!right) throw nlohmann::json::type_error::create(302, "not a utilisation", &value);
  // -0, which is at least 0, is written in another way.
  return value.get<double>() + 0.0;
}

}  // namespace attest
