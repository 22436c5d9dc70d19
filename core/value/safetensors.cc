#include "core/value/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/support/errors.h"
#include "core/support/json_writer.h"
#include "core/support/names.h"
#include "core/support/refuse.h"
#include "core/value/safetensors_header.h"

namespace attest {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian and is copied as it is");

constexpr std::uint64_t most_header = 100'000'000;

/// Bytes the shape takes. Throws when it, or any product of its extents, zeros left out, is beyond a signed 64-bit
/// number: strides are such products even where an extent of 0 leaves no element.
std::uint64_t bytes_of(const HeaderEntry& entry) {
  auto product = static_cast<std::int64_t>(size_of(entry.dtype));
  bool empty = false;
  for (const std::int64_t extent : entry.shape) {
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, extent, &product)) {
      refuse("tensor {}: the product of its shape overflows", in_quotes(entry.name));
    }
  }
  return empty ? 0 : static_cast<std::uint64_t>(product);
}

/// Ranges are checked before anything is allocated, so that a small file cannot ask for much memory.
void check_ranges(std::vector<HeaderEntry>& entries, std::uint64_t data_size) {
  // By range; tensors without elements share one and keep the order of the header.
  std::sort(entries.begin(), entries.end(), [](const HeaderEntry& a, const HeaderEntry& b) {
    return std::tie(a.begin, a.end, a.position) < std::tie(b.begin, b.end, b.position);
  });
  std::uint64_t next = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin > entry.end || entry.end > data_size) {
      refuse("tensor {}: bytes {} to {} are not within the {} bytes of data", in_quotes(entry.name), entry.begin,
             entry.end, data_size);
    }
    if (entry.begin != next) {
      refuse("tensor {}: begins at byte {}; it must begin at {}, where the one before it ends", in_quotes(entry.name),
             entry.begin, next);
    }
    if (const std::uint64_t bytes = bytes_of(entry); bytes != entry.end - entry.begin) {
      refuse("tensor {}: shape and dtype make {} bytes; its range has {}", in_quotes(entry.name), bytes,
             entry.end - entry.begin);
    }
    next = entry.end;
  }
  if (next != data_size) refuse("{} bytes follow the last tensor; none may", data_size - next);
}

TensorFile read(std::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) refuse("{} bytes are too few for a safetensors file", bytes.size());
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes.remove_prefix(sizeof(length));
  if (length > most_header) refuse("header length {} is more than {}; is it a safetensors file?", length, most_header);
  if (length > bytes.size()) refuse("header length {} is more than the {} bytes that follow", length, bytes.size());
  SafetensorsHeader header = parse_safetensors_header(bytes.substr(0, static_cast<std::size_t>(length)));
  bytes.remove_prefix(static_cast<std::size_t>(length));
  check_ranges(header.entries, bytes.size());
  TensorFile file;
  file.metadata = std::move(header.metadata);
  for (HeaderEntry& entry : header.entries) {
    Tensor tensor(entry.dtype, Shape(std::span<const std::int64_t>(entry.shape)));
    const std::string_view data = bytes.substr(static_cast<std::size_t>(entry.begin), tensor.bytes().size());
    if (!data.empty()) std::memcpy(tensor.bytes().data(), data.data(), data.size());
    file.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  return file;
}

}  // namespace

std::string safetensors_head(const std::vector<std::pair<std::string, const Tensor*>>& tensors,
                             const std::map<std::string, std::string>& metadata, std::size_t alignment) {
  JsonWriter header;
  header.begin_object();
  if (!metadata.empty()) {
    header.key("__metadata__").begin_object();
    for (const auto& [key, value] : metadata) header.member(key, value);
    header.end_object();
  }
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t end = offset + tensor->bytes().size();
    header.key(name).begin_object().member("dtype", safetensors_name_of(tensor->dtype()));
    header.key("shape").begin_array();
    for (int axis = 0; axis < tensor->shape().rank(); ++axis) header.value(tensor->shape()[axis]);
    header.end_array().key("data_offsets").begin_array().value(offset).value(end).end_array().end_object();
    offset = end;
  }
  const std::string& text = header.end_object().text();
  std::uint64_t length = 0;
  const std::size_t behind = (sizeof(length) + text.size() + alignment - 1) / alignment * alignment;
  length = behind - sizeof(length);
  std::string head(sizeof(length), '\0');
  std::memcpy(head.data(), &length, sizeof(length));
  head += text;
  head.resize(behind, ' ');
  return head;
}

std::string write_safetensors(const TensorFile& file) {
  std::vector<std::pair<std::string, const Tensor*>> tensors;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : file.tensors) {
    tensors.emplace_back(name, &tensor);
    bytes += tensor.bytes().size();
  }
  const std::string head = safetensors_head(tensors, file.metadata);
  std::string all;
  all.reserve(head.size() + bytes);
  all += head;
  for (const auto& [name, tensor] : file.tensors) {
    const auto data = tensor.bytes();
    if (!data.empty()) all.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
  return all;
}

TensorFile read_safetensors(std::string_view bytes, std::string_view source) {
  try {
    return read(bytes);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  } catch (const std::bad_alloc&) {
    throw UsageError(fmt::format("{}: too large for memory", source));
  }
}

}  // namespace attest
