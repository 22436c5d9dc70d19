#include "core/problem/case_file.h"

#include <fmt/format.h>

#include <algorithm>
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
#include <type_traits>
#include <utility>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/sight.h"
#include "core/support/errors.h"
#include "core/support/files.h"
#include "core/support/names.h"
#include "core/value/safetensors.h"

namespace attest {
namespace {

using Metadata = std::map<std::string, std::string>;
using NamedTensors = std::vector<std::pair<std::string, const Tensor*>>;

constexpr std::string_view found_name = "found", variants_key = "variants";

/// What "op" says of a problem whose gradients are asked for; it is one of attention.
constexpr std::string_view backward_operation = "attention_backward";

/// Their names, a space between them.
std::string variants_text(const Problem& c) {
  std::string text;
  for (const Variant& variant : variants_of(c)) text.append(text.empty() ? "" : " ").append(variant.name);
  return text;
}

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

/// The value that the metadata states under `key`.
template <class Value>
Value read(std::string_view key, std::string_view text, std::string_view example) {
  if constexpr (std::is_enum_v<Value>) {
    if (const auto found = named<Value>(text)) return *found;
    throw UsageError(fmt::format("metadata \"{}\" is {}, which is none{}", key, in_quotes(text),
                                 suggestion(text, Words<Value>::names)));
  } else {
    if (const auto found = number<Value>(text)) return *found;
    throw UsageError(fmt::format("metadata \"{}\" is {}; it must be a {}, as \"{}\"", key, in_quotes(text),
                                 std::is_integral_v<Value> ? "whole number" : "decimal number that a double holds",
                                 example));
  }
}

template <class Value>
std::string written(Value value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(name_of(value));
  } else if constexpr (std::is_integral_v<Value>) {
    return std::to_string(value);
  } else {
    return decimal(value);
  }
}

/// Leading axes of 1 up to `rank` axes: what was captured without a batch or without heads.
Tensor with_rank(Tensor t, int rank) {
  const Shape& shape = t.shape();
  const int missing = rank - shape.rank();
  if (missing <= 0 || shape.rank() < 2) return t;
  std::array<std::int64_t, 4> extents{1, 1, 1, 1};
  for (int axis = 0; axis < shape.rank(); ++axis)
    extents[static_cast<std::size_t>(missing) + static_cast<std::size_t>(axis)] = shape[axis];
  return std::move(t).reshaped(Shape(std::span<const std::int64_t>(extents).first(static_cast<std::size_t>(rank))));
}

void take_tensors(Case& c, std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<std::string_view> known;
  for (const TensorField& field : tensor_fields)
    if (field.axes(c.operation).rank > 0) known.push_back(field.name());
  for (auto& [name, tensor] : tensors) {
    const auto slot = named<Slot>(name);
    if (!slot || std::ranges::find(known, name) == known.end()) {
      throw UsageError(fmt::format("holds a tensor {}, which {} does not take{}", in_quotes(name), name_of(c.operation),
                                   suggestion(name, known, known.size())));
    }
    c[*slot] = std::move(tensor);
  }
  for (const TensorField& field : tensor_fields)
    if (field.content != Content::weight)
      c[field.slot] = with_rank(std::move(c[field.slot]), field.axes(c.operation).rank);
}

/// Moves the answer out of the tensors.
Tensor take_found(std::vector<std::pair<std::string, Tensor>>& tensors) {
  const auto found = std::ranges::find(tensors, found_name, [](const auto& one) -> const auto& { return one.first; });
  if (found == tensors.end()) return {};
  Tensor tensor = std::move(found->second);
  tensors.erase(found);
  return tensor;
}

/// What the metadata says of the variants is what the arguments say, and stands under "2" alone: a reader of "1" would
/// keep an argument that it does not know, and ask for another problem.
void take_variants(const Case& c, std::string_view format, Metadata& metadata) {
  const std::optional<std::string> said = take(metadata, variants_key);
  const std::string there = variants_text(c);
  if (format == "1" && said) throw UsageError(R"(metadata has "variants" and "attest" is "1"; it must be "2")");
  if (format == "1" && !there.empty())
    throw UsageError(fmt::format(R"(metadata has arguments of {} and "attest" is "1"; it must be "2")", there));
  const bool newer = !there.empty() || asks_for_gradients(c);
  if (format == "1" && newer)
    throw UsageError(R"(metadata has "op" "attention_backward" and "attest" is "1"; it must be "2")");
  if (format == "2" && newer && said.value_or("") == there) return;
  if (format == "2")
    throw UsageError(fmt::format(R"(metadata "variants" is {} and "attest" is "2"; by its arguments it must be {})",
                                 said ? in_quotes(*said) : "missing",
                                 there.empty() ? R"(left out, and "attest" "1")" : in_quotes(there)));
}

AnsweredCase case_of(TensorFile file) {
  Case c;
  Tensor found = take_found(file.tensors);
  Metadata& metadata = file.metadata;
  const std::string format = take_required(metadata, "attest", "1");
  if (format != "1" && format != "2") {
    throw UsageError(fmt::format("metadata \"attest\" is {}; this version reads \"1\" and \"2\"", in_quotes(format)));
  }
  const std::string operation = take_required(metadata, "op", "attention");
  const bool backward = operation == backward_operation;
  c.operation = backward ? Operation::attention : read<Operation>("op", operation, "attention");
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    if (!field.example.empty()) {
      c.*field.member = read<Value>(field.name, take_required(metadata, field.name, field.example), field.example);
    } else if (const auto value = take(metadata, field.name)) {
      c.*field.member = read<Value>(field.name, *value, "");
    }
  });
  take_tensors(c, file.tensors);
  if (backward != asks_for_gradients(c))
    throw UsageError(fmt::format("metadata \"op\" is {} {} a tensor d_out; \"{}\" goes with one", in_quotes(operation),
                                 backward ? "without" : "beside", backward_operation));
  take_variants(c, format, metadata);
  c = read_from_cache(std::move(c));
  // A causal form says it as well.
  if (c.alignment == Causal::none && c.causal != Causal::none) settle_alignment(c);
  for (const ProvenanceField& field : provenance_fields) c.provenance.*field.member = take(metadata, field.name);
  c.provenance.others = std::move(metadata);
  validate(c);
  if (found.present() && !is_floating(found.dtype()))
    throw UsageError(
        fmt::format("holds a tensor \"{}\" of {}; an answer has numbers", found_name, name_of(found.dtype())));
  if (found.present() && found.shape() != c.out_shape())
    throw UsageError(fmt::format("holds a tensor \"{}\" of shape {}; what a kernel answered to this case has {}",
                                 found_name, found.shape().to_string(), c.out_shape().to_string()));
  return {std::move(c), std::move(found)};
}

}  // namespace

std::vector<std::string_view> case_keys(Operation operation) {
  std::vector<std::string_view> keys{"attest", "op", variants_key};
  for_each_scalar(operation, [&](const auto& field) { keys.push_back(field.name); });
  return keys;
}

std::uint64_t CasePieces::size() const {
  std::uint64_t bytes = head.size();
  for (const std::span<const std::byte> tensor : tensors) bytes += tensor.size();
  return bytes;
}

std::string CasePieces::joined() const {
  std::string all;
  all.reserve(size());
  all += head;
  for (const std::span<const std::byte> tensor : tensors)
    if (!tensor.empty()) all.append(reinterpret_cast<const char*>(tensor.data()), tensor.size());
  return all;
}

namespace {

/// `more` is what there is behind the problem's own tensors; of it what is not present is left out.
CasePieces pieces_with(const Problem& problem, const Provenance& said, const MoreTensors& more, std::size_t alignment) {
  NamedTensors tensors;
  CasePieces pieces;
  for (const TensorField& field : tensor_fields) {
    const Tensor& tensor = problem[field.slot];
    if (!tensor.present()) continue;
    tensors.emplace_back(field.name(), &tensor);
    pieces.tensors.push_back(tensor.bytes());
  }
  for (const auto& [name, tensor] : more) {
    if (!tensor->present()) continue;
    tensors.emplace_back(name, tensor);
    pieces.tensors.push_back(tensor->bytes());
  }
  Metadata metadata = said.others;
  for (const ProvenanceField& field : provenance_fields)
    if (const Provenance::Word& word = said.*field.member) metadata[std::string(field.name)] = *word;
  const std::string variants = variants_text(problem);
  metadata["attest"] = variants.empty() && !asks_for_gradients(problem) ? "1" : "2";
  if (!variants.empty()) metadata[std::string(variants_key)] = variants;
  metadata["op"] = asks_for_gradients(problem) ? backward_operation : name_of(problem.operation);
  for_each_scalar(problem.operation, [&](const auto& field) {
    if (field.is_original() || problem.*field.member != field.neutral)
      metadata[std::string(field.name)] = written(problem.*field.member);
  });
  pieces.head = safetensors_head(tensors, metadata, alignment);
  return pieces;
}

}  // namespace

CasePieces pieces_of(const Problem& problem, const Provenance& said, std::size_t alignment) {
  return pieces_with(problem, said, {}, alignment);
}
CasePieces pieces_of(const Problem& problem, const Provenance& said, const MoreTensors& more) {
  return pieces_with(problem, said, more, 8);
}

std::string encode_case(const Case& c) {
  return encode_case(AnsweredCase{c});
}

std::string encode_case(const AnsweredCase& c) {
  const MoreTensors found{{std::string(found_name), &c.found}};
  if (is_in_cache(c.value)) return pieces_with(laid_out_in_cache(c.value), c.value.provenance, found, 8).joined();
  return pieces_with(c.value, c.value.provenance, found, 8).joined();
}

Case decode_case(std::string_view bytes, std::string_view source) {
  return decode_answered_case(bytes, source).value;
}

AnsweredCase decode_answered_case(std::string_view bytes, std::string_view source) {
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
