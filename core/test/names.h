// Names of tests made from other names.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

namespace attest::test {

/// With _ for what is neither a letter nor a digit.
[[nodiscard]] inline std::string name_of_test(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return text;
}

}  // namespace attest::test
