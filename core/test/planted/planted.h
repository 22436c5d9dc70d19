// The switch of the planted faults: each is off unless its name is set.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace attest::test {

/// The fault that is on; empty: none.
inline std::string& planted_fault() {
  static std::string name;
  return name;
}
/// Faults whose place in the core has been reached.
inline std::set<std::string, std::less<>>& reached_faults() {
  static std::set<std::string, std::less<>> names;
  return names;
}
/// Asked by the planted copies of the core's headers.
inline bool planted(std::string_view name) {
  if (!reached_faults().contains(name)) reached_faults().emplace(name);
  return planted_fault() == name;
}

}  // namespace attest::test
