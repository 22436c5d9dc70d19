#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/kernel/words.h"
#include "core/problem/fields.h"
#include "core/support/errors.h"
#include "core/support/json_reader.h"
#include "core/support/names.h"

namespace attest {
namespace {

using nlohmann::json;

/// As long as an axis may be (case.h): no sum has more terms.
constexpr WholeNumbers extents{1, (std::int64_t{1} << 31U) - 1};
/// Of largest extents, which may be stated where there is none: they allocate nothing.
constexpr WholeNumbers largest_limits{1, most_whole_number};
/// Of numbers that extents must be multiples of. Kernels ask for 8 to 256; the least problem grows with them.
constexpr WholeNumbers multiples{1, 65536};
/// An approximate division takes a few; the bound grows with each.
constexpr WholeNumbers roundings{1, 64};

/// words::dtypes are those of DType in its order, bool left out.
DType floating_dtype(std::size_t position) {
  return static_cast<DType>(position);
}

std::vector<DType> floating_dtypes(const std::vector<std::size_t>& positions) {
  std::vector<DType> dtypes;
  dtypes.reserve(positions.size());
  for (const std::size_t position : positions) dtypes.push_back(floating_dtype(position));
  return dtypes;
}

bool has(const std::vector<DType>& dtypes, DType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

void read_dtype(const JsonObject& object, std::string_view key, DType& value) {
  if (const auto position = object.word(key, words::dtypes)) value = floating_dtype(*position);
}

/// null says that the thing is not done, which a dtype cannot.
void read_dtype(const JsonObject& object, std::string_view key, std::optional<DType>& value) {
  const json* found = object.find(key);
  if (found == nullptr) return;
  if (found->is_null()) {
    value = std::nullopt;
  } else {
    value = floating_dtype(*object.word(key, words::dtypes));
  }
}

/// Every value of `part` is one of `whole`: rounding from whole to part and back loses nothing the other way round.
bool contains(DType whole, DType part) {
  const Format& w = format_of(whole);
  const Format& p = format_of(part);
  return w.precision >= p.precision && w.min_subnormal <= p.min_subnormal && w.largest >= p.largest;
}

void read_summation_depth(const JsonObject& object, Arithmetic& a) {
  constexpr std::string_view key = "summation_depth";
  const json* found = object.find(key);
  if (found == nullptr) return;
  a.summation_depth = std::nullopt;
  a.blocked_sums = std::nullopt;
  if (found->is_object()) {
    const JsonObject blocks(*found, object.path(key), words::blocked_sums);
    BlockedSums sums;
    if (blocks.find("block") == nullptr) blocks.refuse("block", "blocked sums state how many keys a block has");
    blocks.read("block", extents, sums.block);
    sums.depth = sums.block;
    blocks.read("depth", extents, sums.depth);
    sums.pairwise = blocks.word("merges", words::merges).value_or(0) == 1;
    a.blocked_sums = sums;
  } else if (found->is_number()) {
    object.read(key, extents, a.summation_depth);
  } else if (*found != "n") {
    object.refuse(key, "it must be \"n\", a whole number of at least 1, or an object with \"block\"");
  }
}

void read_stored(const JsonObject& object, Arithmetic& a) {
  const json* found = object.find("stored");
  if (found != nullptr) {
    const JsonObject stored(*found, object.path("stored"), words::stored);
    read_dtype(stored, "raw", a.stored_raw);
    read_dtype(stored, "scaled", a.stored_scaled);
    read_dtype(stored, "biased", a.stored_biased);
  }
  const auto scores = object.word("scores", words::dtypes);
  if (!scores) return;
  if (found != nullptr && found->contains("biased")) {
    object.refuse("scores", "\"stored\".\"biased\" says the same; state one of the two");
  }
  // A format that holds every value of the sums rounds nothing.
  const DType format = floating_dtype(*scores);
  a.stored_biased = contains(format, a.score_sums) ? std::nullopt : std::optional(format);
}

/// The arithmetic for `dtype` as `value` declares it over the universal one.
Arithmetic read_arithmetic(const json& value, const std::string& where, DType dtype) {
  const JsonObject object(value, where, words::arithmetic);
  Arithmetic a = universal_arithmetic(dtype, dtype);
  read_dtype(object, "score_sums", a.score_sums);
  read_dtype(object, "weights", a.weights);
  read_dtype(object, "accumulate", a.accumulate);
  read_dtype(object, "prescaled_q", a.prescaled_q);
  read_dtype(object, "mask_format", a.mask_format);
  read_stored(object, a);
  object.read("weights_in_denominator", a.weights_in_denominator);
  if (const auto word = object.word("rounding", words::roundings)) a.rounding = static_cast<Rounding>(*word);
  // u is half an ulp of 1: more ulp than 1/(2u), and exp is wrong by more than itself. A bound of that allows anything.
  object.read_positive("exp_ulp", 0.5 / format_of(a.score_sums).unit,
                       fmt::format("where exp in {} is wrong by as much as it is", name_of(a.score_sums)), a.exp_ulp);
  if (const auto word = object.word("max", words::max_policies)) a.max = static_cast<MaxPolicy>(*word);
  object.read_positive("lazy_nats", std::log(format_of(a.score_sums).largest),
                       fmt::format("whose exp is the largest number of {}", name_of(a.score_sums)), a.lazy_nats);
  if (a.max == MaxPolicy::lazy && object.find("lazy_nats") == nullptr) {
    object.refuse("max", "a lazy maximum states by how much it may lag, as \"lazy_nats\": 8");
  }
  if (a.max != MaxPolicy::lazy && object.find("lazy_nats") != nullptr) {
    object.refuse("lazy_nats", "only \"max\": \"lazy\" has it");
  }
  object.read("base2", a.base2);
  object.read("folded_exp2", a.folded_exp2);
  if (!a.base2 && object.find("folded_exp2") == nullptr) a.folded_exp2 = false;
  if (!a.base2 && a.folded_exp2) object.refuse("folded_exp2", "with \"base2\": false there is no exp2 to fold into");
  object.read("split_merge", a.split_merge);
  object.read("normalise_first", a.normalise_first);
  object.read("flushes_subnormals", a.flushes_subnormals);
  object.read("flushes_inputs", a.flushes_inputs);
  read_summation_depth(object, a);
  object.read("block", {0, extents.most}, a.block);
  object.read("bias_in_sum", a.bias_in_sum);
  object.read("division_roundings", roundings, a.division_roundings);
  return a;
}

/// One object for all dtypes, or one per dtype.
void read_arithmetics(const JsonObject& object, Manifest& m) {
  static const json nothing = json::object();
  const json* found = object.find("arithmetic");
  const std::string where = object.path("arithmetic");
  const bool per_dtype = found != nullptr && found->is_object() && !found->empty() &&
                         std::any_of(words::dtypes.begin(), words::dtypes.end(),
                                     [&](std::string_view name) { return found->contains(name); });
  if (per_dtype) {
    const JsonObject dtypes(*found, where, words::dtypes);
    for (const auto& item : found->items()) {
      if (has(m.dtypes, *named<DType>(item.key()))) continue;
      throw UsageError(fmt::format("{} is stated; \"dtypes\" does not list it", dtypes.path(item.key())));
    }
  }
  for (const DType dtype : m.dtypes) {
    const std::string name(name_of(dtype));
    const json* value = found;
    if (per_dtype) value = found->contains(name) ? &(*found)[name] : nullptr;
    m.arithmetic[dtype] = read_arithmetic(value != nullptr ? *value : nothing,
                                          per_dtype ? fmt::format("{}.\"{}\"", where, name) : where, dtype);
  }
}

/// An array for all dtypes, or an object with one per dtype. The input's own dtype goes without saying.
void read_out_dtypes(const JsonObject& object, Manifest& m) {
  constexpr std::string_view key = "out_dtypes";
  const json* found = object.find(key);
  if (found == nullptr) return;
  const auto add = [&](DType input, std::vector<DType> outputs) {
    outputs.erase(std::remove(outputs.begin(), outputs.end(), input), outputs.end());
    if (!outputs.empty()) m.out_dtypes[input] = std::move(outputs);
  };
  if (!found->is_object()) {
    const std::vector<DType> outputs = floating_dtypes(*object.words(key, words::dtypes));
    for (const DType input : m.dtypes) add(input, outputs);
    return;
  }
  const JsonObject inputs(*found, object.path(key), words::dtypes);
  for (const auto& item : found->items()) {
    const DType input = *named<DType>(item.key());
    if (!has(m.dtypes, input)) {
      throw UsageError(fmt::format("{} is stated; \"dtypes\" does not list it", inputs.path(item.key())));
    }
    add(input, floating_dtypes(*inputs.words(item.key(), words::dtypes)));
  }
}

void read_masks(const JsonObject& object, Manifest& m) {
  if (const auto kinds = object.words("masks", words::masks)) {
    m.additive_masks = std::find(kinds->begin(), kinds->end(), 0) != kinds->end();
    m.bool_masks = std::find(kinds->begin(), kinds->end(), 1) != kinds->end();
  }
  if (const auto dtypes = object.words("mask_dtypes", words::dtypes)) {
    m.mask_dtypes = floating_dtypes(*dtypes);
    if (!m.additive_masks && !dtypes->empty()) object.refuse("mask_dtypes", "\"masks\" does not list \"additive\"");
  }
  if (const auto conventions = object.words("mask_conventions", Words<MaskConvention>::names)) {
    m.mask_conventions.clear();
    for (const std::size_t each : *conventions) m.mask_conventions.push_back(static_cast<MaskConvention>(each));
    if (m.additive_masks && conventions->empty()) {
      object.refuse("mask_conventions", "additive masks need one; without them state \"masks\": [\"bool\"] or []");
    }
  }
  if (const auto alignments = object.words("causal", Words<Causal>::names)) {
    for (const std::size_t each : *alignments) {
      if (each != 0) m.causal.push_back(static_cast<Causal>(each));
    }
  }
}

void read_limits(const JsonObject& object, Manifest& m) {
  const json* found = object.find("limits");
  if (found == nullptr) return;
  const JsonObject limits(*found, object.path("limits"), words::limits);
  limits.read("head_dim_multiple", multiples, m.head_dim_multiple);
  limits.read("max_head_dim", largest_limits, m.max_head_dim);
  limits.read("max_queries", largest_limits, m.max_queries);
  limits.read("max_keys", largest_limits, m.max_keys);
  limits.read("max_heads", largest_limits, m.max_heads);
  limits.read("heads_multiple", multiples, m.heads_multiple);
  limits.read("self_attention_only", m.self_attention_only);
  limits.read("alignment", largest_limits, m.alignment);
  m.value_dim_equals_head_dim = limits.word("value_dim", words::value_dims).value_or(0) == 1;
  if (m.max_head_dim && *m.max_head_dim < m.head_dim_multiple) {
    limits.refuse("max_head_dim",
                  fmt::format("no multiple of {} (head_dim_multiple) is so small", m.head_dim_multiple));
  }
  if (m.max_heads && *m.max_heads < m.heads_multiple) {
    limits.refuse("max_heads", fmt::format("no multiple of {} (heads_multiple) is so small", m.heads_multiple));
  }
  constexpr std::int64_t page = 4096;
  if (limits.find("alignment") != nullptr && (m.alignment > page || (m.alignment & (m.alignment - 1)) != 0)) {
    limits.refuse("alignment", "it must be a power of two, in bytes, of at most 4096");
  }
  if (m.self_attention_only && !m.multihead) {
    limits.refuse("self_attention_only", "only \"operations\" with \"multihead\" have it");
  }
}

Manifest read_manifest(std::string_view text) {
  const json value = parse_strict_json(text);
  // Before all else: another version's manifest may have keys that this one lacks, which are not what is wrong with it.
  if (value.is_object() && value.contains("abi") && value["abi"] != ATTEST_ABI) {
    const json abi = json::object({{"abi", value["abi"]}});
    JsonObject(abi, "", words::keys)
        .refuse("abi",
                fmt::format("this version speaks {}; compile the kernel against its <attest/kernel.h>", ATTEST_ABI));
  }
  const JsonObject object(value, "", words::keys);
  Manifest m;
  // Unstated, a call at a time is all that kernel-interface.md promises a kernel.
  m.thread_safe = false;
  if (object.find("name") == nullptr) object.refuse("name", "a manifest states it, as \"my kernel\"");
  object.read("name", m.name);
  if (m.name.empty()) object.refuse("name", "it must not be empty");
  object.read("version", m.version);
  const auto dtypes = object.words("dtypes", words::dtypes);
  if (!dtypes) object.refuse("dtypes", "a manifest states them, as [\"f32\"]");
  if (dtypes->empty()) object.refuse("dtypes", "it must list at least one");
  m.dtypes = floating_dtypes(*dtypes);
  if (const auto operations = object.words("operations", Words<Operation>::names)) {
    if (operations->empty()) object.refuse("operations", "it must list at least one");
    m.attention = std::find(operations->begin(), operations->end(), 0) != operations->end();
    m.multihead = std::find(operations->begin(), operations->end(), 1) != operations->end();
  }
  read_out_dtypes(object, m);
  read_arithmetics(object, m);
  if (const auto claims = object.words("claims", Words<Claim>::names)) {
    for (const std::size_t claim : *claims) m.claims.push_back(static_cast<Claim>(claim));
  }
  if (const auto policy = object.word("fully_masked_row", Words<FullyMaskedRow>::names)) {
    m.fully_masked_row = static_cast<FullyMaskedRow>(*policy);
  }
  m.any_scale = object.word("scale", words::scales).value_or(0) == 0;
  read_masks(object, m);
  const std::vector<std::string_view> known_arguments = later_arguments();
  if (const auto arguments = object.words("arguments", known_arguments)) {
    for (const std::size_t argument : *arguments) m.arguments.emplace_back(known_arguments[argument]);
  }
  object.read("grouped_query", m.grouped_query);
  object.read("strides", m.strides);
  object.read("lse", m.lse);
  object.read("thread_safe", m.thread_safe);
  read_limits(object, m);
  return m;
}

}  // namespace

Manifest parse_manifest(std::string_view json_text, std::string_view source) {
  try {
    return read_manifest(json_text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
}

}  // namespace attest
