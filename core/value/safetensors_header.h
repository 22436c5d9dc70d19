// The JSON header of a safetensors file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/dtype.h"

namespace attest {

/// One entry of the header, as it stands there: begin and end count bytes from the end of the header.
struct HeaderEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t position = 0;  ///< in the header
};

struct SafetensorsHeader {
  std::vector<HeaderEntry> entries;  ///< in the order of the header
  std::map<std::string, std::string> metadata;
};

/// Parses the JSON text: exactly the keys the format has, each once, with values of its type and a rank of at most 4.
/// Nothing is said about the ranges. Throws UsageError without a source.
[[nodiscard]] SafetensorsHeader parse_safetensors_header(std::string_view text);

}  // namespace attest
