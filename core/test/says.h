// What a text holds and what it does not: EXPECT_THAT(text, Says("a", "b")).
#pragma once

#include <gmock/gmock.h>

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attest {

/// Every one of the parts stands in the text, or none of them does. One type for any number of parts: matchers of
/// matchers are compiled anew for each.
class TextMatcher {
 public:
  using is_gtest_matcher = void;
  TextMatcher(std::vector<std::string> parts, bool there) : parts_(std::move(parts)), there_(there) {}
  bool MatchAndExplain(std::string_view text, std::ostream* explanation) const {
    bool matches = true;
    for (const std::string& part : parts_) {
      if ((text.find(part) != std::string_view::npos) == there_) continue;
      matches = false;
      if (explanation != nullptr) *explanation << (there_ ? "it lacks \"" : "it has \"") << part << "\"; ";
    }
    return matches;
  }
  void DescribeTo(std::ostream* stream) const { describe(stream, there_ ? "has" : "has none of"); }
  void DescribeNegationTo(std::ostream* stream) const { describe(stream, there_ ? "lacks one of" : "has one of"); }

 private:
  void describe(std::ostream* stream, std::string_view words) const {
    *stream << words;
    for (const std::string& part : parts_) *stream << " \"" << part << '"';
  }
  std::vector<std::string> parts_;
  bool there_;
};

/// Every one of the parts stands in the text.
template <class... Parts>
[[nodiscard]] TextMatcher Says(const Parts&... parts) {
  return {{std::string(parts)...}, true};
}
/// None of the parts does.
template <class... Parts>
[[nodiscard]] TextMatcher NeverSays(const Parts&... parts) {
  return {{std::string(parts)...}, false};
}

}  // namespace attest
