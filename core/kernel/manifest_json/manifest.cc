#include "core/kernel/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/kernel/manifest_json/arithmetic.h"
#include "core/kernel/manifest_json/dtypes.h"
#include "core/kernel/manifest_json/io.h"
#include "core/kernel/manifest_json/keys.h"
#include "core/kernel/manifest_json/variants.h"
#include "core/problem/fields.h"
#include "core/support/errors.h"
#include "core/support/json_reader.h"
#include "core/support/names.h"
#include "core/support/source_place.h"
#include "core/support/visible.h"

namespace attest {
namespace manifest_json {
namespace {

/// Of numbers that extents must be multiples of. Kernels ask for 8 to 256; the least problem grows with them.
constexpr WholeNumbers multiples{1, 65536};

constexpr std::array<std::string_view, 2> scales{"any", "inv-sqrt-dk"}, value_dims{"any", "head_dim"},
    model_dims{"any", "heads*head_dim"}, masks{"additive", "bool"}, lse_of_slopes{"definition", "column"},
    uses_of_backward{"out", "lse"};
constexpr std::array<std::string_view, 3> operations{"attention", "multihead", "attention_backward"};

void tell_arithmetics(auto& io, std::string_view key, auto& m, auto member) {
  io.by(
      key, m, [member](const Manifest& of) { return arithmetics_json(of.*member); },
      [member](const JsonObject& object, std::string_view name, Manifest& of) {
        read_arithmetics(object, name, of, of.*member);
      });
}

void tell_widths(auto& io, auto& m) {
  io("head_dim_multiple", m.head_dim_multiple, multiples);
  io.if_stated(m.max_head_dim.has_value(), "max_head_dim", m.max_head_dim, largest_limits);
  io.if_stated(!m.head_dims.empty(), "head_dims", m.head_dims, extents);
  io.word("value_dim", value_dims, m.value_dim_equals_head_dim);
  io.if_stated(!m.value_dims.empty(), "value_dims", m.value_dims, extents);
  io.by(
      "model_dim", m, [](const auto& of) { return of.model_dim_is_heads ? ordered_json(model_dims[1]) : nullptr; },
      [](const JsonObject& object, std::string_view key, auto& of) {
        Reader(object).word(key, model_dims, of.model_dim_is_heads);
      });
  io.require(!m.max_head_dim || *m.max_head_dim >= m.head_dim_multiple, "max_head_dim",
             fmt::format("no multiple of {} (head_dim_multiple) is so small", m.head_dim_multiple));
  io.require(m.head_dims.empty() || (m.head_dim_multiple == 1 && !m.max_head_dim), "head_dims",
             "it lists all there are; leave \"head_dim_multiple\" and \"max_head_dim\" out");
  io.require(m.value_dims.empty() || !m.value_dim_equals_head_dim, "value_dims",
             "\"value_dim\" ties dv to dk; state one of the two");
  io.require(!m.model_dim_is_heads || m.multihead, "model_dim", "only \"operations\" with \"multihead\" have it");
}

void tell_lengths(auto& io, auto& m) {
  constexpr WholeNumbers from_none{0, extents.most};
  io.if_stated(m.max_queries.has_value(), "max_queries", m.max_queries, largest_limits);
  io.if_stated(m.min_queries > 0, "min_queries", m.min_queries, from_none);
  io.if_stated(m.queries_multiple > 1, "queries_multiple", m.queries_multiple, multiples);
  io.if_stated(m.max_keys.has_value(), "max_keys", m.max_keys, largest_limits);
  io.if_stated(m.min_keys > 0, "min_keys", m.min_keys, from_none);
  io.if_stated(m.keys_multiple > 1, "keys_multiple", m.keys_multiple, multiples);
  const auto require = [&](std::string_view max, std::string_view of, const AllowedExtents& allowed) {
    io.require(allowed.from(1).has_value(), max,
               fmt::format("no multiple of {} ({}_multiple) from {} (min_{}) on is so small", allowed.multiple, of,
                           allowed.least, of));
  };
  require("max_queries", "queries", allowed_queries(m));
  require("max_keys", "keys", allowed_keys(m));
  io.if_stated(m.same_lengths, "same_lengths", m.same_lengths);
  io.require(!m.same_lengths || allowed_tokens(m).from(1).has_value(), "same_lengths",
             "no length is within the limits of queries and within those of keys");
}

void tell_heads(auto& io, auto& m) {
  io.if_stated(m.max_heads.has_value(), "max_heads", m.max_heads, largest_limits);
  io("heads_multiple", m.heads_multiple, multiples);
  io.if_stated(!m.group_sizes.empty(), "group_sizes", m.group_sizes, extents);
  io.require(!m.max_heads || *m.max_heads >= m.heads_multiple, "max_heads",
             fmt::format("no multiple of {} (heads_multiple) is so small", m.heads_multiple));
  const bool grouped = !m.group_sizes.empty() && m.group_sizes.back() > 1;
  io.require(!grouped || m.grouped_query, "group_sizes", "\"grouped_query\" is false, and a group has 1 head");
  const std::int64_t least = m.group_sizes.empty() ? 1 : std::lcm(m.group_sizes.front(), m.heads_multiple);
  io.require(least <= m.max_heads.value_or(least), "group_sizes",
             fmt::format("\"max_heads\" is {}, and the smallest group takes {}", m.max_heads.value_or(0), least));
}

void tell_limits(auto& io, auto& m) {
  tell_widths(io, m);
  tell_lengths(io, m);
  tell_heads(io, m);
  io("self_attention_only", m.self_attention_only);
  io.if_stated(m.alignment > 0, "alignment", m.alignment, largest_limits);
  io.if_stated(!m.zero_strides, "zero_strides", m.zero_strides);
  io.if_stated(!m.far_strides, "far_strides", m.far_strides);
  constexpr std::int64_t page = 4096;
  io.require(m.alignment <= page && (m.alignment & (m.alignment - 1)) == 0, "alignment",
             "it must be a power of two, in bytes, of at most 4096");
  io.require(!m.self_attention_only || m.multihead, "self_attention_only",
             "only \"operations\" with \"multihead\" have it");
  io.require(m.zero_strides || m.strides, "zero_strides", "\"strides\" is false, and none are sent");
  io.require(m.far_strides || m.strides, "far_strides", "\"strides\" is false, and none are sent");
}

void tell_tiles(auto& io, auto& tiles) {
  io.if_stated(!tiles.queries.empty(), "queries", tiles.queries, extents);
  io.if_stated(!tiles.keys.empty(), "keys", tiles.keys, extents);
  io.if_stated(!tiles.splits.empty(), "splits", tiles.splits, extents);
}

ordered_json tiles_json(const Manifest& m) {
  Writer io;
  tell_tiles(io, m.tiles);
  return m.tiles == Tiles() ? ordered_json(nullptr) : io.json();
}

void read_tiles(const JsonObject& object, std::string_view key, Manifest& m) {
  const JsonObject inner(*object.find(key), object.path(key), keys_told_by([&](auto& io) { tell_tiles(io, m.tiles); }));
  Reader io(inner);
  tell_tiles(io, m.tiles);
}

ordered_json excludes_json(const Manifest& m) {
  ordered_json lists = ordered_json::array();
  for (const std::vector<Feature>& together : m.excluded) lists.push_back(json_of(together));
  return lists.empty() ? ordered_json(nullptr) : lists;
}

void read_excludes(const JsonObject& object, std::string_view key, Manifest& m) {
  constexpr std::string_view rule = "it must be an array of lists of words, as [[\"mask\", \"causal\"]]";
  const json& lists = *object.find(key);
  if (!lists.is_array()) object.refuse(key, rule);
  for (const json& list : lists) {
    if (!list.is_array()) object.refuse(key, rule);
    const json one = json::object({{std::string(key), list}});
    const std::vector<std::string_view> known{key};
    std::vector<Feature> together;
    const JsonObject inner(one, "", known);
    Reader io(inner);
    io(key, together);
    if (together.empty()) object.refuse(key, rule);
    m.excluded.push_back(std::move(together));
  }
}

void tell_features(auto& io, auto& m) {
  io.if_stated(!m.required.empty(), "requires", m.required);
  io.by("excludes", m, excludes_json, read_excludes);
  const auto requires_it = [&](Feature feature) { return std::ranges::count(m.required, feature) > 0; };
  for (const Feature feature : m.required) {
    io.require(offers(m, feature), "requires",
               fmt::format("no other key of the manifest offers \"{}\"", name_of(feature)));
  }
  io.require(!(requires_it(Feature::top_left) && requires_it(Feature::bottom_right)) &&
                 !(requires_it(Feature::additive_mask) && requires_it(Feature::bool_mask)),
             "requires", "no problem has two causal forms or two masks");
  for (const std::vector<Feature>& together : m.excluded)
    io.require(!std::ranges::all_of(together, requires_it), "excludes", "\"requires\" lists all of one list");
  // Of the call, and no problem is without it: what forbids it and what requires it cannot both be kept.
  const auto lists_lse = [](const std::vector<Feature>& words) { return std::ranges::count(words, Feature::lse) > 0; };
  for (const auto& [name, terms] : m.variants) {
    io.require(!lists_lse(m.required) || !lists_lse(terms.excluded), "requires",
               fmt::format("\"variants\".\"{}\".\"excludes\" lists \"lse\"", name));
    const auto comes_with_it = [&](Feature feature) {
      return name_of(feature) == name || requires_it(feature) || std::ranges::count(terms.required, feature) > 0;
    };
    for (const std::vector<Feature>& together : m.excluded)
      io.require(!lists_lse(together) || !std::ranges::all_of(together, comes_with_it), "excludes",
                 fmt::format("\"variants\".\"{}\" requires all of one list", name));
  }
}

void tell_lse_convention(auto& io, auto& convention) {
  io.word("alibi", lse_of_slopes, convention.of_columns);
  io("empty", convention.empty);
}

ordered_json lse_convention_json(const Manifest& m) {
  if (m.lse_convention == LseConvention()) return nullptr;
  Writer io;
  tell_lse_convention(io, m.lse_convention);
  return io.json();
}

/// After the variants.
void read_lse_convention(const JsonObject& object, std::string_view key, Manifest& m) {
  if (!m.lse) object.refuse(key, "it says in which form log-sum-exps come, and \"lse\" is false");
  const JsonObject inner(*object.find(key), object.path(key),
                         keys_told_by([&](auto& io) { tell_lse_convention(io, m.lse_convention); }));
  Reader io(inner);
  tell_lse_convention(io, m.lse_convention);
  if (m.lse_convention.of_columns && !m.variants.contains(alibi_variant.name))
    inner.refuse("alibi", "\"variants\" lists no \"alibi\"");
}

void tell_backward(auto& io, auto& terms) {
  io.flags("gradients", Words<Gradient>::names, terms.dq, terms.dk, terms.dv, terms.dmask, terms.dsink);
  io.require(terms.dq || terms.dk || terms.dv, "gradients", R"(it must list "dq", "dk" or "dv")");
  io.flags("uses", uses_of_backward, terms.uses_out, terms.uses_lse);
  io.if_stated(terms.d_lse, "d_lse", terms.d_lse);
  io.if_stated(terms.own_dropout, "own_dropout", terms.own_dropout);
  io.if_stated(terms.own_forward, "own_forward", terms.own_forward);
  io.if_stated(terms.masked_row != MaskedGradient::undeclared, "masked_row", terms.masked_row);
  io("weights", terms.weights);
  io.if_stated(terms.delta != DeltaFrom::unstated, "delta", terms.delta);
  io("claims", terms.claims);
  io.if_stated(!terms.excluded.empty(), "excludes", terms.excluded);
  io.require(std::ranges::count(terms.excluded, Feature::lse) == 0, "excludes",
             R"("lse" is what every backward pass is asked beside)");
  io.require(terms.weights != WeightsFrom::lse || terms.uses_lse || terms.own_forward, "uses",
             R"("weights": "lse" are made of a log-sum-exp; list "lse", or say "own_forward": true)");
  io.require(terms.delta != DeltaFrom::out || terms.uses_out || terms.own_forward, "uses",
             R"("delta": "out" is made of an output; list "out", or say "own_forward": true)");
}

ordered_json backward_json(const Manifest& m) {
  if (!m.backward) return nullptr;
  Writer io;
  tell_backward(io, m.backward_terms);
  return io.json();
}

void read_backward(const JsonObject& object, std::string_view key, Manifest& m) {
  if (!m.backward)
    object.refuse(key, R"(it says what a backward pass does, and "operations" do not list "attention_backward")");
  const JsonObject inner(*object.find(key), object.path(key),
                         keys_told_by([&](auto& io) { tell_backward(io, m.backward_terms); }));
  Reader io(inner);
  tell_backward(io, m.backward_terms);
  if (m.backward_terms.dmask && !m.additive_masks)
    inner.refuse("gradients", R"("dmask" is a gradient by an additive mask, and "masks" do not list "additive")");
  if (m.backward_terms.dsink && !m.variants.contains(sink_variant.name))
    inner.refuse("gradients", R"("dsink" is a gradient by sinks, and "variants" list no "sink")");
  const auto dropout = m.variants.find(dropout_variant.name);
  if (m.backward_terms.own_dropout && (dropout == m.variants.end() || !dropout->second.own))
    inner.refuse("own_dropout", R"(the "mask" of "dropout" in "variants" does not list "own")");
}

void tell_manifest(auto& io, auto& m) {
  constexpr std::string_view one = "it must list at least one";
  io("name", m.name);
  io.require(!m.name.empty(), "name", "it must not be empty");
  io("version", m.version);
  io.if_stated(!m.source.empty(), "source", m.source);
  io.require(m.source.empty() || source_place(m.source), "source", source_rule);
  io.by("abi", m, [](const auto&) { return ATTEST_ABI; }, [](const auto&...) {});
  io.flags("operations", operations, m.attention, m.multihead, m.backward);
  io.require(m.attention || m.multihead, "operations", one);
  io("dtypes", m.dtypes);
  io.require(!m.dtypes.empty(), "dtypes", one);
  io.by("out_dtypes", m, out_dtypes_json, read_out_dtypes);
  tell_arithmetics(io, "arithmetic", m, &Manifest::arithmetic);
  io.by("kv_dtypes", m, kv_dtypes_json, read_kv_dtypes);
  io.require(m.attention || m.kv_dtypes.empty(), "kv_dtypes", "only \"operations\" with \"attention\" have them");
  tell_arithmetics(io, "promises", m, &Manifest::promises);
  io("claims", m.claims);
  io("fully_masked_row", m.fully_masked_row);
  io.word("scale", scales, m.any_scale, /*second=*/false);
  io.flags("masks", masks, m.additive_masks, m.bool_masks);
  io("mask_dtypes", m.mask_dtypes);
  io.require(m.additive_masks || m.mask_dtypes.empty(), "mask_dtypes", "\"masks\" does not list \"additive\"");
  io("mask_conventions", m.mask_conventions);
  io.require(!m.additive_masks || !m.mask_conventions.empty(), "mask_conventions",
             "additive masks need one; without them state \"masks\": [\"bool\"] or []");
  io("causal", m.causal);
  io("grouped_query", m.grouped_query);
  io("strides", m.strides);
  io("lse", m.lse);
  io("thread_safe", m.thread_safe);
  io.if_stated(m.shared_memory, "shared_memory", m.shared_memory);
  io.object("limits", [&](auto& limits) { tell_limits(limits, m); });
  io.by("variants", m, variants_json, read_variants);
  io.require(m.attention || m.variants.empty(), "variants", "only \"operations\" with \"attention\" have them");
  io.by("lse_convention", m, lse_convention_json, read_lse_convention);
  io.by("backward", m, backward_json, read_backward);
  io.require(!m.backward || m.attention, "operations", "a backward pass is that of \"attention\"; list both");
  io.require(!m.backward || m.lse, "operations",
             "gradients are judged beside the log-sum-exp that the forward pass returned; state \"lse\": true");
  tell_features(io, m);
  io.by("tiles", m, tiles_json, read_tiles);
}

Manifest read_manifest(std::string_view text) {
  const json value = parse_strict_json(text);
  // Before all else: another version's manifest may have keys that this one lacks, which are not what is wrong with it.
  if (value.is_object() && value.contains("abi") && value["abi"] != ATTEST_ABI) {
    const json abi = json::object({{"abi", value["abi"]}});
    JsonObject(abi, "", manifest_keys())
        .refuse("abi",
                fmt::format("this version speaks {}; compile the kernel against its <attest/kernel.h>", ATTEST_ABI));
  }
  const JsonObject object(value, "", manifest_keys());
  if (object.find("name") == nullptr) object.refuse("name", "a manifest states it, as \"my kernel\"");
  if (object.find("dtypes") == nullptr) object.refuse("dtypes", "a manifest states them, as [\"f32\"]");
  Manifest m;
  // Unstated, a call at a time is all that kernel-interface.md promises a kernel.
  m.thread_safe = false;
  Reader io(object);
  tell_manifest(io, m);
  std::erase(m.causal, Causal::none);
  for (const DType dtype : m.dtypes) m.arithmetic.usual.try_emplace(dtype, universal_arithmetic(dtype, dtype));
  // Of those that the manifest leaves unstated, too.
  state_terms_in_arithmetic(m);
  refuse_rounded_inputs(object, m);
  refuse_caps_unsaid(object, m);
  return m;
}

}  // namespace
}  // namespace manifest_json

std::vector<std::string_view> manifest_keys() {
  Manifest m;
  return manifest_json::keys_told_by([&](auto& io) { manifest_json::tell_manifest(io, m); });
}
std::vector<std::string_view> limit_keys() {
  Manifest m;
  return manifest_json::keys_told_by([&](auto& io) { manifest_json::tell_limits(io, m); });
}
Manifest parse_manifest(std::string_view json_text, std::string_view source) {
  try {
    return manifest_json::read_manifest(json_text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", source, error.what()));
  }
}

std::string to_json(const Manifest& m) {
  manifest_json::Writer io;
  manifest_json::tell_manifest(io, m);
  return visible_json(io.json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace attest
