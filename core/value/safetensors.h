// The safetensors container: an unsigned 64-bit little-endian header length, a JSON header, then the tensors' bytes.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/value/tensor.h"

namespace attest {

/// Named tensors in file order and the string-to-string `__metadata__`.
struct TensorFile {
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::map<std::string, std::string> metadata;
};

/// Serialises; the header is padded with spaces to a multiple of 8 bytes, tensors are contiguous from offset 0.
[[nodiscard]] std::string write_safetensors(const TensorFile& file);

/// What stands before the tensors' bytes, which follow in this order without a gap. `alignment`, of at least 8: the
/// head is padded to a multiple of it.
[[nodiscard]] std::string safetensors_head(const std::vector<std::pair<std::string, const Tensor*>>& tensors,
                                           const std::map<std::string, std::string>& metadata,
                                           std::size_t alignment = 8);

/// Parses strictly: header length within the bytes and at most 100 MB, UTF-8, an object, no duplicate name, known
/// dtype, rank at most 4, shape product without overflow and equal to the byte range, ranges contiguous from 0 with no
/// gap or overlap, no trailing bytes, metadata of strings only. Throws UsageError: one line beginning with `source`.
[[nodiscard]] TensorFile read_safetensors(std::string_view bytes, std::string_view source);

}  // namespace attest
