#include "core/kernel/manifest_json/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/manifest_json/io.h"
#include "core/problem/fields.h"

namespace attest::manifest_json {
namespace {

constexpr std::array<std::string_view, 2> table_tails{"valid", "any"}, lse_of_sinks{"with", "without"},
    masks_of_dropout{"given", "own"}, blocks_of_descale{"listed", "any"};
constexpr std::array<std::string_view, 3> tensors_of_descale{"q", "k", "v"};

void tell_variant(auto& io, std::string_view name, auto& terms) {
  if (name == window_variant.name) {
    io("left", terms.left);
    io("right", terms.right);
    io.require(terms.left || terms.right, "right", "a window has a left end, a right end or both");
  }
  if (is_positional(name)) {
    io("alignment", terms.alignment);
    io.require(!terms.alignment.empty() && std::ranges::count(terms.alignment, Causal::none) == 0, "alignment",
               "it must list \"top-left\", \"bottom-right\" or both");
  }
  if (name == alibi_variant.name) {
    io("form", terms.form);
    io.if_stated(terms.per_batch, "per_batch", terms.per_batch);
  }
  if (name == descale_variant.name) {
    io.flags("tensors", tensors_of_descale, terms.of_q, terms.of_k, terms.of_v);
    io.require(terms.of_q || terms.of_k || terms.of_v, "tensors", R"(it must list "q", "k" or "v")");
    io("per_head", terms.per_head);
    io.if_stated(terms.per_batch, "per_batch", terms.per_batch);
    io.if_stated(!terms.q_blocks.empty(), "q_blocks", terms.q_blocks, extents);
    io.if_stated(!terms.kv_blocks.empty(), "kv_blocks", terms.kv_blocks, extents);
    io.word("blocks", blocks_of_descale, terms.any_blocks);
    io.require(terms.of_q || terms.q_blocks.empty(), "q_blocks", R"("tensors" does not list "q")");
    io.require(terms.of_k || terms.of_v || terms.kv_blocks.empty(), "kv_blocks",
               R"("tensors" lists neither "k" nor "v")");
    io.if_stated(terms.dequantised != DescalePlace::unstated, "applied", terms.dequantised);
  }
  if (name == lengths_variant.name) {
    io("queries", terms.queries);
    io("keys", terms.keys);
    io.require(terms.queries || terms.keys, "keys", "there are lengths of queries, of keys or of both");
    io.if_stated(terms.padding != Padding::undeclared, "padding", terms.padding);
  }
  if (name == packed_variant.name) io.if_stated(terms.padding != Padding::undeclared, "slack", terms.padding);
  if (name == paged_variant.name) {
    io.if_stated(!terms.page_sizes.empty(), "page_sizes", terms.page_sizes, extents);
    io.word("table_tail", table_tails, terms.any_table_tail);
    io.if_stated(terms.two_tables, "two_tables", terms.two_tables);
  }
  if (name == sink_variant.name) {
    io("dtypes", terms.dtypes);
    io.require(!terms.dtypes.empty(), "dtypes", "it must list at least one");
    io.if_stated(!terms.in_max, "in_max", terms.in_max);
    io.word("lse", lse_of_sinks, terms.lse_has_sink, /*second=*/false);
  }
  if (name == dropout_variant.name) {
    io.flags("mask", masks_of_dropout, terms.given, terms.own);
    io.require(terms.given || terms.own, "mask", R"(it must list "given", "own" or both)");
    io.if_stated(terms.keep_levels > 0, "keep_levels", terms.keep_levels, extents);
    io.require(terms.own || terms.keep_levels == 0, "keep_levels", R"("mask" does not list "own")");
    io.if_stated(terms.applied != DropoutPlace::unstated, "applied", terms.applied);
  }
  if (name == append_variant.name)
    io.if_stated(terms.max_tokens.has_value(), "max_tokens", terms.max_tokens, largest_limits);
  io.if_stated(!terms.required.empty(), "requires", terms.required);
  io.if_stated(!terms.excluded.empty(), "excludes", terms.excluded);
}

}  // namespace

bool offers(const Manifest& m, Feature feature) {
  const auto has_form = [&](Causal form) { return std::ranges::count(m.causal, form) > 0; };
  switch (feature) {
    case Feature::mask:
      return m.additive_masks || m.bool_masks;
    case Feature::additive_mask:
      return m.additive_masks;
    case Feature::bool_mask:
      return m.bool_masks;
    case Feature::causal:
      return has_form(Causal::top_left) || has_form(Causal::bottom_right);
    case Feature::top_left:
      return has_form(Causal::top_left);
    case Feature::bottom_right:
      return has_form(Causal::bottom_right);
    case Feature::grouped_query:
      return m.grouped_query && (m.group_sizes.empty() || m.group_sizes.back() > 1);
    case Feature::unequal_lengths:
    case Feature::fewer_keys:
      return !m.same_lengths;
    case Feature::output_projection:
    case Feature::bias_kv:
      return m.multihead;
    case Feature::window:
    case Feature::lengths:
    case Feature::packed:
    case Feature::left_pad:
    case Feature::paged:
    case Feature::append:
    case Feature::cache_index:
    case Feature::sink:
    case Feature::softcap:
    case Feature::dropout:
    case Feature::alibi:
    case Feature::chunk:
    case Feature::descale:
      return m.variants.contains(name_of(feature));
    case Feature::lse:
      return m.lse;
  }
  return false;
}

ordered_json variants_json(const Manifest& m) {
  if (m.variants.empty()) return nullptr;
  ordered_json all = ordered_json::object();
  for (const auto& [name, terms] : m.variants) {
    Writer io;
    tell_variant(io, name, terms);
    all[name] = io.json();
  }
  return all;
}

void read_variants(const JsonObject& object, std::string_view key, Manifest& m) {
  std::vector<std::string_view> known;
  for (const Variant& variant : variants()) known.push_back(variant.name);
  const JsonObject all(*object.find(key), object.path(key), known);
  for (const std::string_view name : known) {
    const json* const found = all.find(name);
    if (found == nullptr) continue;
    VariantTerms& terms = m.variants[std::string(name)];
    std::vector<Causal> forms = m.causal;
    std::erase(forms, Causal::none);
    if (!forms.empty()) terms.alignment = std::move(forms);
    const JsonObject inner(*found, all.path(name), keys_told_by([&](auto& io) { tell_variant(io, name, terms); }));
    Reader io(inner);
    tell_variant(io, name, terms);
    for (const Feature feature : terms.required) {
      if (!offers(m, feature))
        inner.refuse("requires", fmt::format("no other key of the manifest offers \"{}\"", name_of(feature)));
      if (std::ranges::count(terms.excluded, feature) > 0)
        inner.refuse("excludes", fmt::format("\"requires\" lists \"{}\"", name_of(feature)));
    }
    if (terms.form != SlopeForm::distance && !offers(m, Feature::causal))
      inner.refuse("form", "the others are those of a causal form, and \"causal\" lists none");
  }
  const auto lengths = m.variants.find(lengths_variant.name);
  for (const Variant& cache : {paged_variant, append_variant})
    if (m.variants.contains(cache.name) && (lengths == m.variants.end() || !lengths->second.keys))
      object.refuse(key,
                    fmt::format("\"{}\" goes with \"lengths\" of keys, which say how many of a cache's keys there are",
                                cache.name));
}

}  // namespace attest::manifest_json
