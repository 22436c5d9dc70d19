// Where a kernel's source stands in its repository.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace attest {

struct SourcePlace {
  std::string file;       ///< from the root of the repository
  std::int64_t line = 1;  ///< from 1
};
/// "FILE" or "FILE:LINE"; nothing where the file is no relative path, leads out of the repository, or the line is none.
[[nodiscard]] std::optional<SourcePlace> source_place(std::string_view text);

/// What source_place takes, as a message says it.
inline constexpr std::string_view source_rule =
    "it must name the kernel's source as from the root of its repository, \"src/flash.cu\" or with a line "
    "\"src/flash.cu:42\"";

}  // namespace attest
