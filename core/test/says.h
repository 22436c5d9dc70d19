// What a text holds and what it does not: EXPECT_THAT(text, Says("a", "b")).
#pragma once

#include <gmock/gmock.h>

#include <string>

namespace attest {

/// Every one of the parts stands in the text.
template <class... Parts>
[[nodiscard]] auto Says(const Parts&... parts) {
  return testing::AllOf(testing::HasSubstr(std::string(parts))...);
}
/// None of the parts does.
template <class... Parts>
[[nodiscard]] auto NeverSays(const Parts&... parts) {
  return testing::AllOf(testing::Not(testing::HasSubstr(std::string(parts)))...);
}

}  // namespace attest
