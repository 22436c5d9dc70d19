#include "case/case_file.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "attest/errors.h"
#include "attest/files.h"
#include "attest/names.h"
#include "attest/safetensors.h"

namespace attest {
namespace {

constexpr std::array<std::string_view, 6> keys{"attest", "op", "scale", "mask_convention", "causal", "heads"};
constexpr std::array<std::string_view, 2> operations{"attention", "multihead"};

using Metadata = std::map<std::string, std::string>;

/// Shortest decimal that reads back as the same double; no locale.
std::string decimal(double value) {
  std::array<char, 32> text;
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

/// The whole of `text` as a number, or nothing.
template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Moves the value of `key` out of the metadata.
std::optional<std::string> take(Metadata& metadata, std::string_view key) {
  auto node = metadata.extract(std::string(key));
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

/// As take; throws when there is none. `example` is a value it might have.
std::string take_required(Metadata& metadata, std::string_view key, std::string_view example) {
  if (auto value = take(metadata, key)) return *std::move(value);
  throw UsageError(fmt::format("metadata has no \"{}\"; a case states it, as \"{}\": \"{}\"", key, key, example));
}

/// The enumerator that the metadata names.
template <class Enum>
Enum named(std::string_view key, std::string_view value, std::optional<Enum> (*find)(std::string_view) noexcept,
           std::span<const std::string_view> known) {
  if (const auto found = find(value)) return *found;
  throw UsageError(
      fmt::format("metadata \"{}\" is {}, which is none{}", key, in_quotes(value), suggestion(value, known)));
}

/// Leading axes of 1 up to `rank` axes: what was captured without a batch or without heads.
Tensor with_rank(Tensor t, int rank) {
  const Shape& shape = t.shape();
  const int missing = rank - shape.rank();
  if (missing <= 0 || shape.rank() < 2) return t;
  std::array<std::int64_t, 4> extents{1, 1, 1, 1};
  for (int axis = 0; axis < shape.rank(); ++axis) extents[static_cast<std::size_t>(missing + axis)] = shape[axis];
  return std::move(t).reshaped(Shape(std::span<const std::int64_t>(extents).first(static_cast<std::size_t>(rank))));
}

void take_tensors(Case& c, std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<std::string_view> known;
  const int last = c.operation == Operation::attention ? static_cast<int>(Slot::mask) : slot_count - 1;
  for (int i = 0; i <= last; ++i) known.push_back(name_of(static_cast<Slot>(i)));
  for (auto& [name, tensor] : tensors) {
    const auto slot = slot_named(name);
    if (!slot || static_cast<int>(*slot) > last) {
      throw UsageError(fmt::format("holds a tensor {}, which {} does not take{}", in_quotes(name), name_of(c.operation),
                                   suggestion(name, known)));
    }
    c[*slot] = std::move(tensor);
  }
  const int rank = c.operation == Operation::attention ? 4 : 3;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = with_rank(std::move(c[slot]), rank);
  c[Slot::mask] = with_rank(std::move(c[Slot::mask]), 4);
}

Case case_of(TensorFile file) {
  Case c;
  Metadata& metadata = file.metadata;
  const std::string format = take_required(metadata, "attest", "1");
  if (format != "1") {
    throw UsageError(fmt::format("metadata \"attest\" is {}; this version reads \"1\"", in_quotes(format)));
  }
  c.operation = named<Operation>("op", take_required(metadata, "op", "attention"), operation_named, operations);
  const std::string scale = take_required(metadata, "scale", "0.125");
  const auto scale_value = number<double>(scale);
  if (!scale_value) {
    throw UsageError(fmt::format(
        "metadata \"scale\" is {}; it must be a decimal number that a double holds, as \"0.125\"", in_quotes(scale)));
  }
  c.scale = *scale_value;
  if (const auto value = take(metadata, "mask_convention")) {
    static constexpr std::array<std::string_view, 2> known{"post-scale", "pre-scale"};
    c.mask_convention = named<MaskConvention>("mask_convention", *value, mask_convention_named, known);
  }
  if (const auto value = take(metadata, "causal")) {
    static constexpr std::array<std::string_view, 3> known{"none", "top-left", "bottom-right"};
    c.causal = named<Causal>("causal", *value, causal_named, known);
  }
  if (c.operation == Operation::multihead) {
    const std::string heads = take_required(metadata, "heads", "8");
    const auto count = number<std::int32_t>(heads);
    if (!count) {
      throw UsageError(fmt::format("metadata \"heads\" is {}; it must be a whole number, as \"8\"", in_quotes(heads)));
    }
    c.heads = *count;
  }
  c.metadata = std::move(metadata);
  take_tensors(c, file.tensors);
  validate(c);
  return c;
}

}  // namespace

std::span<const std::string_view> case_keys(Operation operation) {
  return std::span(keys).first(operation == Operation::multihead ? 6 : 5);
}

std::string encode_case(const Case& c) {
  TensorFile file;
  for (int i = 0; i < slot_count; ++i) {
    const auto slot = static_cast<Slot>(i);
    if (c[slot].present()) file.tensors.emplace_back(name_of(slot), c[slot]);
  }
  file.metadata = c.metadata;
  file.metadata["attest"] = "1";
  file.metadata["op"] = name_of(c.operation);
  file.metadata["scale"] = decimal(c.scale);
  file.metadata["mask_convention"] = name_of(c.mask_convention);
  file.metadata["causal"] = name_of(c.causal);
  if (c.operation == Operation::multihead) file.metadata["heads"] = std::to_string(c.heads);
  return write_safetensors(file);
}

Case decode_case(std::string_view bytes, std::string_view source) {
  TensorFile file = read_safetensors(bytes, source);
  try {
    return case_of(std::move(file));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
}

Case load_case(const std::filesystem::path& file) {
  return decode_case(read_file(file), file.native());
}

void save_case(const Case& c, const std::filesystem::path& file) {
  write_file_atomically(file, encode_case(c));
}

}  // namespace attest
