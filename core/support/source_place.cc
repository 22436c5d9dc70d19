#include "core/support/source_place.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace attest {

std::optional<SourcePlace> source_place(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  SourcePlace place{.file = std::string(text.substr(0, colon))};
  const std::filesystem::path path = place.file;
  if (path.empty() || path.is_absolute() || std::ranges::find(path, "..") != path.end()) return std::nullopt;
  if (colon == std::string_view::npos) return place;
  const std::string_view digits = text.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), place.line);
  if (read.ptr != digits.data() + digits.size() || read.ec != std::errc{} || place.line < 1) return std::nullopt;
  return place;
}

}  // namespace attest
