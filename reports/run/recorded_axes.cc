#include "reports/run/recorded_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string_view>

#include "core/support/errors.h"
#include "core/support/json_reader.h"
#include "core/support/names.h"
#include "properties/generators/production.h"

namespace attest {
namespace {

using nlohmann::json;

/// A product of two of them is a number still.
constexpr WholeNumbers axis_range{0, std::numeric_limits<std::int32_t>::max()};

/// By the names that templates and data sets give them.
constexpr std::array<std::string_view, 13> attention_types{
    "gqa_paged",     "gqa_ragged",     "gqa", "mha_paged", "mha_ragged",  "mha",         "mqa",
    "single_decode", "single_prefill", "xqa", "attention", "cudnn_paged", "trtllm_paged"};
constexpr std::array<std::string_view, 4> heads_axes{"num_qo_heads", "num_heads", "num_heads_qo", "num_q_heads"};
constexpr std::array<std::string_view, 2> kv_heads_axes{"num_kv_heads", "num_heads_kv"};
constexpr std::array<std::string_view, 2> dk_axes{"head_dim", "head_dim_qk"};
constexpr std::array<std::string_view, 4> dv_axes{"head_dim_vo", "head_dim_v", "head_dim", "head_dim_qk"};

/// An axis that tells a length: of one sequence or of all of a batch together, in tokens or in pages.
struct LengthAxis {
  std::string_view name;
  bool of_batch = false, in_pages = false;
};
constexpr std::array<LengthAxis, 8> query_axes{{{"total_q", true},
                                                {"total_q_len", true},
                                                {"num_tokens", true},
                                                {"num_qo_tokens", true},
                                                {"qo_len"},
                                                {"seq_len_q"},
                                                {"q_len_per_request"},
                                                {"seq_len"}}};
constexpr std::array<LengthAxis, 8> key_axes{{{"total_kv", true},
                                              {"total_kv_len", true},
                                              {"num_kv_indices", true, true},
                                              {"kv_len"},
                                              {"seq_len_kv"},
                                              {"max_pages_per_seq", false, true},
                                              {"num_pages_per_seq", false, true},
                                              {"seq_len"}}};

/// Of those that are read. What else stands in a file is of no shape.
void for_each_axis(const std::function<void(std::string_view)>& visit) {
  for (const std::string_view name : {"batch_size", "len_indptr", "page_size", "head_dim_vo", "head_dim_v"})
    visit(name);
  for (const auto names : {std::span<const std::string_view>(heads_axes), {kv_heads_axes}, {dk_axes}})
    for (const std::string_view name : names) visit(name);
  for (const auto axes : {std::span<const LengthAxis>(query_axes), {key_axes}})
    for (const LengthAxis& axis : axes) visit(axis.name);
}

bool has(const RecordedDefinition& definition, std::string_view axis) {
  return definition.fixed.contains(axis) || definition.open.contains(axis);
}

std::int64_t value_of(const RecordedDefinition& definition, const AxisValues& values, std::string_view axis) {
  if (const auto fixed = definition.fixed.find(axis); fixed != definition.fixed.end()) return fixed->second;
  if (const auto value = values.find(axis); value != values.end()) return value->second;
  throw UsageError(
      fmt::format("\"axes\" has no \"{}\", which the definition {} leaves open", axis, in_quotes(definition.name)));
}

/// The fixed value of the first of these axes that has one.
std::optional<std::int64_t> fixed_of(const RecordedDefinition& definition, std::span<const std::string_view> axes) {
  for (const std::string_view axis : axes)
    if (const auto fixed = definition.fixed.find(axis); fixed != definition.fixed.end()) return fixed->second;
  return std::nullopt;
}

/// The first of these axes that the definition has.
const LengthAxis* axis_of(const RecordedDefinition& definition, std::span<const LengthAxis> axes) {
  const auto axis = std::ranges::find_if(axes, [&](const LengthAxis& one) { return has(definition, one.name); });
  return axis == axes.end() ? nullptr : &*axis;
}

std::string text_at(const JsonObject& object, std::string_view key) {
  std::string text;
  object.read(key, text);
  if (text.empty()) object.refuse(key, "it must be a text that is not empty");
  return text;
}

RecordedShape none(std::string why) {
  return {.shape = std::nullopt, .why_none = std::move(why)};
}

/// Rounded up, so that a sequence that is there has a token.
std::int64_t part(std::int64_t all, std::int64_t count) {
  return (all + count - 1) / count;
}

}  // namespace

RecordedDefinition read_definition(const json& value) {
  const JsonObject object(value, "");
  RecordedDefinition definition;
  definition.name = text_at(object, "name");
  definition.op_type = text_at(object, "op_type");
  const json* const axes = object.find("axes");
  if (axes == nullptr) object.refuse("axes", "it must be an object of axes");
  const JsonObject all_axes(*axes, object.path("axes"));
  // Of anything else it is enough to know that it is something else.
  if (!is_attention(definition)) return definition;
  for_each_axis([&](std::string_view name) {
    const json* const axis = all_axes.find(name);
    if (axis == nullptr) return;
    const JsonObject one(*axis, all_axes.path(name));
    constexpr std::array<std::string_view, 2> types{"const", "var"};
    const auto type = one.word("type", types);
    if (!type) one.refuse("type", "it must be \"const\" or \"var\"");
    std::optional<std::int64_t> fixed;
    if (*type == 0) one.read("value", {1, axis_range.most}, fixed);
    // What a call did not tell has no value, though it is fixed.
    if (fixed) {
      definition.fixed.emplace(name, *fixed);
    } else {
      definition.open.emplace(name);
    }
  });
  definition.decodes = axis_of(definition, query_axes) == nullptr;
  if (const json* const tags = object.find("tags"); tags != nullptr && tags->is_array())
    definition.decodes |= std::ranges::find(*tags, json("stage:decode")) != tags->end();
  return definition;
}

AxisValues read_axes(const json& workload, const RecordedDefinition& definition) {
  const JsonObject object(workload, "\"workload\"");
  const json* const axes = object.find("axes");
  if (axes == nullptr) object.refuse("axes", "it must be an object with the value of each axis");
  const JsonObject all_axes(*axes, object.path("axes"));
  AxisValues values;
  for_each_axis([&](std::string_view name) {
    std::optional<std::int64_t> value;
    all_axes.read(name, axis_range, value);
    if (!value) return;
    const auto fixed = definition.fixed.find(name);
    if (fixed != definition.fixed.end() && fixed->second != *value)
      all_axes.refuse(name, fmt::format("the definition {} fixes it at {}", in_quotes(definition.name), fixed->second));
    values.emplace(name, *value);
  });
  return values;
}

bool is_attention(const RecordedDefinition& definition) {
  return std::ranges::find(attention_types, definition.op_type) != attention_types.end();
}

RecordedShape heads_of(const RecordedDefinition& definition) {
  const auto heads = fixed_of(definition, heads_axes);
  const auto dk = fixed_of(definition, dk_axes), dv = fixed_of(definition, dv_axes);
  if (!heads) return none("its heads are no fixed axis, as num_qo_heads");
  if (!dk || !dv) return none("its width is no fixed axis, as head_dim");
  const auto kv_heads = fixed_of(definition, kv_heads_axes);
  // Without such an axis k has that of q.
  if (!kv_heads && std::ranges::any_of(kv_heads_axes, [&](std::string_view axis) { return has(definition, axis); }))
    return none("its key-value heads are no fixed axis, as num_kv_heads");
  return {.shape = Extents{.heads = *heads, .kv_heads = kv_heads.value_or(*heads), .dk = *dk, .dv = *dv},
          .why_none = {}};
}

std::vector<Extents> supposed_shapes(const RecordedDefinition& definition, const Extents& heads) {
  std::vector<Extents> shapes = with_production_lengths(heads, definition.decodes);
  const LengthAxis* const queries = axis_of(definition, query_axes);
  if (queries == nullptr || queries->of_batch) return shapes;
  if (const auto fixed = definition.fixed.find(queries->name); fixed != definition.fixed.end())
    for (Extents& e : shapes) e.queries = fixed->second;
  return shapes;
}

RecordedShape shape_of(const RecordedDefinition& definition, const AxisValues& values) {
  RecordedShape recorded = heads_of(definition);
  if (!recorded.shape) return recorded;
  Extents& e = *recorded.shape;
  const auto value = [&](std::string_view axis) { return value_of(definition, values, axis); };
  e.batch = has(definition, "batch_size")   ? value("batch_size")
            : has(definition, "len_indptr") ? value("len_indptr") - 1
                                            : 1;
  if (e.batch < 1) return none("it has no sequence");
  const auto length = [&](const LengthAxis& axis) {
    const std::int64_t page = axis.in_pages && has(definition, "page_size") ? value("page_size") : 1;
    const std::int64_t tokens = value(axis.name) * page;
    recorded.averaged |= page > 1 || (axis.of_batch && e.batch > 1);
    return axis.of_batch ? part(tokens, e.batch) : tokens;
  };
  const LengthAxis* const keys = axis_of(definition, key_axes);
  if (keys == nullptr) return none("none of its axes tells how many keys there are");
  const LengthAxis* const queries = axis_of(definition, query_axes);
  e.queries = queries == nullptr ? 1 : length(*queries);
  e.keys = length(*keys);
  return recorded;
}

}  // namespace attest
