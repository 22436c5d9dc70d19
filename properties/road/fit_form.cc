#include "properties/road/fit_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/kernel/limits.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/sequences.h"
#include "properties/catalogue/property.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

enum class MaskForm { as_it_is, other_kind, none, all_visible };

Case without_the_mask(Case c) {
  c[Slot::mask] = Tensor();
  drop_kinds(c, "mask:");
  drop_kinds(c, "mask-strides:");
  add_kind(c, "mask:", name_of(MaskKind::none));
  if (c.provenance.strides) {
    Layouts layouts = layouts_of(c);
    layouts[Slot::mask] = MemoryLayout::row_major;
    set_layouts(c, layouts);
  }
  return c;
}

/// The same as a boolean mask, or as one of 0 and -inf; nothing where that cannot be.
std::optional<Case> with_other_kind(const Case& c) {
  const bool boolean = c.mask().dtype() == DType::boolean;
  if (boolean && c.dtype() == DType::f8_e4m3) return std::nullopt;  // which has no infinity
  if (boolean) return with_additive_mask(c);
  if (!only_hides(c)) return std::nullopt;
  Case other = c;
  other[Slot::mask] = mapped(Tensor(DType::boolean, c.mask().shape()),
                             [&](std::int64_t e, double) { return c.mask()[e] == 0 ? 1.0 : 0.0; });
  return other;
}

/// Of a case without a mask.
Case with_all_visible(Case c, bool boolean) {
  const Shape shape{1, 1, queries_of(c), keys_of(c)};
  c[Slot::mask] = boolean ? mapped(Tensor(DType::boolean, shape), [](std::int64_t, double) { return 1.0; })
                          : Tensor(c.dtype(), shape);
  return c;
}

std::optional<Case> with_mask_form(const Case& c, MaskForm form, const Manifest& m) {
  const bool there = c.mask().present();
  switch (form) {
    case MaskForm::as_it_is:
      return c;
    case MaskForm::other_kind:
      return there ? with_other_kind(c) : std::nullopt;
    case MaskForm::none:
      return there ? std::optional(without_the_mask(c)) : std::nullopt;
    case MaskForm::all_visible:
      return there ? std::nullopt : std::optional(with_all_visible(c, !m.additive_masks));
  }
  return std::nullopt;
}

Tensor rounded(const Tensor& tensor, DType to) {
  const double largest = format_of(to).largest;
  return mapped(Tensor(to, tensor.shape()), [&](std::int64_t e, double) {
    const double x = tensor[e], within = round_to(to, x);
    return std::isfinite(x) && !std::isfinite(within) ? std::copysign(largest, x) : within;
  });
}

/// As it is, the others that the manifest lists, in an order of the case's own, and none.
std::vector<Causal> causal_forms(const Case& c, const Manifest& m) {
  std::vector<Causal> forms{c.causal};
  std::vector<Causal> others = m.causal;
  if (others.size() > 1) {
    const std::int64_t first = argument(c, "causal-form", std::ssize(others));
    std::ranges::rotate(others, others.begin() + first);
  }
  others.push_back(Causal::none);
  for (const Causal form : others)
    if (form != c.causal) forms.push_back(form);
  return forms;
}

}  // namespace

std::string kind_of(const KvDtypes& formats) {
  return fmt::format("{}-and-{}", name_of(formats.k), name_of(formats.v));
}

namespace {

/// k or v in another format; of whole numbers with factors by which the largest of those that have one is 127.
void store_in(Case& c, Slot tensor, DType dtype) {
  Tensor& factors = c[descale_of(tensor)];
  if (dtype != DType::i8 || !factors.present()) {
    c[tensor] = rounded(c[tensor], dtype);
    return;
  }
  const Tensor values = dequantised(c, tensor);
  const Shape &shape = values.shape(), &of = factors.shape();
  const std::int64_t block = of[2] == 1 ? std::max<std::int64_t>(shape[2], 1) : c.kv_descale_block;
  const auto place = [&](std::int64_t e) {
    const std::int64_t row = e / shape[3], head = row / shape[2] % shape[1], entry = row / shape[2] / shape[1];
    return ((of[0] == 1 ? 0 : entry) * of[1] + (of[1] == 1 ? 0 : head)) * of[2] + row % shape[2] / block;
  };
  std::vector<double> most(static_cast<std::size_t>(factors.elements()), 0);
  for (std::int64_t e = 0; e < values.elements(); ++e) {
    double& one = most[static_cast<std::size_t>(place(e))];
    one = std::max(one, std::fabs(values[e]));
  }
  // A factor is a number of f32 even where a block has no number but 0.
  for (std::int64_t e = 0; e < factors.elements(); ++e)
    if (most[static_cast<std::size_t>(e)] > 0x1p-100) factors.set(e, most[static_cast<std::size_t>(e)] / 127);
  c[tensor] = mapped(Tensor(dtype, shape), [&](std::int64_t e, double) { return values[e] / factors[place(e)]; });
}

}  // namespace

void fit_kv_dtypes(Case& c, const Manifest& m) {
  if (c.operation != Operation::attention || !m.kv_dtypes.contains(c.dtype())) return;
  std::vector<KvDtypes> offered = m.kv_dtypes_for(c.dtype());
  // Whole numbers are keys and values beside factors alone.
  const auto holds = [&](Slot tensor, DType dtype) { return dtype != DType::i8 || c[descale_of(tensor)].present(); };
  const auto held = [&](const KvDtypes& pair) { return holds(Slot::k, pair.k) && holds(Slot::v, pair.v); };
  if (std::ranges::any_of(offered, held)) std::erase_if(offered, [&](const KvDtypes& pair) { return !held(pair); });
  const KvDtypes chosen = offered[static_cast<std::size_t>(argument(c, "kv-dtypes", std::ssize(offered)))];
  if (c.k().dtype() != chosen.k) store_in(c, Slot::k, chosen.k);
  if (c.v().dtype() != chosen.v) store_in(c, Slot::v, chosen.v);
  if (!c.provenance.kinds) return;
  drop_kinds(c, "kv-dtypes:");
  add_kind(c, "kv-dtypes:", kind_of(chosen));
}

Case in_kv_dtypes(Case c, const Manifest& m) {
  fit_kv_dtypes(c, m);
  return c;
}

namespace {

bool requires_it(const Manifest& m, Feature feature) {
  return std::ranges::count(m.required, feature) > 0;
}

/// The property that a case was drawn for; null where there is none.
const Property* drawn_for(const Case& c) {
  static const std::unordered_map<std::string_view, const Property*> by_name = [] {
    std::unordered_map<std::string_view, const Property*> all;
    for (const Property* const property : catalogue()) all.emplace(property->name, property);
    return all;
  }();
  if (!c.provenance.property) return nullptr;
  const auto found = by_name.find(*c.provenance.property);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace

void fit_sequences(Case& c, const Manifest& m) {
  if (!has_variant(c, lengths_variant.name)) return;
  const bool offers_packed = m.variants.contains(packed_variant.name),
             offers_lengths = m.variants.contains(lengths_variant.name);
  if (!offers_packed) return;
  bool pack = !offers_lengths || argument(c, "packed", 2) == 1;
  const Property* const property = drawn_for(c);
  // What is packed is in no cache.
  const bool cached =
      is_in_cache(c) || std::ranges::any_of(std::array{Feature::paged, Feature::append, Feature::cache_index},
                                            [&](Feature feature) { return requires_it(m, feature); });
  const auto speaks_of = [](std::string_view names) { return names.find(packed_variant.name) != names.npos; };
  const bool spoken_of =
      property == nullptr || property->under == "any" || speaks_of(property->under) || speaks_of(property->variant);
  if (cached || !spoken_of) pack = false;
  if (!pack) return;
  const std::int64_t slack = argument(c, "slack", 3);
  c = packed(c, slack == 1 ? 1 : 0, slack == 2 ? 3 : slack);
  restate_variants(c);
}

namespace {

/// Pages as the terms want them.
Case in_offered_pages(const Case& c, const VariantTerms& terms) {
  std::vector<std::int64_t> sizes = terms.page_sizes;
  if (sizes.empty()) sizes = {1, 2, 3, 4, 8, 16, 32};
  // Pages in use hold a tile, or several, which shows where there are keys for a page of theirs.
  if (terms.page_sizes.empty())
    for (const std::int64_t size : {64, 96, 128, 192, 256})
      if (size <= keys_of(c)) sizes.push_back(size);
  const std::int64_t size = sizes[static_cast<std::size_t>(argument(c, "page-size", std::ssize(sizes)))];
  Case paged = in_pages(outside_of_caches(c), size, argument(c, "unused-pages", 4), seed_argument(c, "page-table"),
                        terms.two_tables && argument(c, "tables", 4) == 0);
  paged.append = c.append;
  restate_variants(paged);
  return paged;
}

}  // namespace

namespace {

/// In another form, unless the kernel takes the case as it is and not so: what it takes beside a cache is its
/// manifest's to say.
void take(Case& c, Case&& formed, const Manifest& m) {
  if (!why_unsupported(m, c).empty() || why_unsupported(m, formed).empty()) c = std::move(formed);
}

void fit_pages_or_rows(Case& c, const Manifest& m) {
  if (has_variant(c, packed_variant.name)) return;
  const auto pages = m.variants.find(paged_variant.name);
  const bool has_pages = pages != m.variants.end(), has_rows = m.variants.contains(cache_index_variant.name);
  const Property* const property = drawn_for(c);
  const bool any = property != nullptr && property->under == "any";
  const bool of_pages = property != nullptr && property->variant == paged_variant.name;
  if (has_pages && c[Slot::page_table].present()) {
    const bool fits =
        pages->second.page_sizes.empty() || std::ranges::binary_search(pages->second.page_sizes, page_size_of(c));
    if (!pages->second.two_tables) c[Slot::page_table_v] = Tensor();
    if (!fits) c = in_offered_pages(c, pages->second);
    return;
  }
  if (c[Slot::cache_index].present()) return;
  // Of what has lengths of keys one in three lies in pages, and one in three in rows that an index names.
  const std::int64_t turn = any && c[Slot::kv_lengths].present() ? argument(c, "cache", 3) : 2;
  const bool in_any_pages = of_pages || turn == 0 || (any && requires_it(m, Feature::paged));
  if (has_pages && in_any_pages) return take(c, in_offered_pages(c, pages->second), m);
  if (!has_rows || !(turn == 1 || (any && requires_it(m, Feature::cache_index)))) return;
  Case indexed = in_cache_rows(c, argument(c, "unused-rows", 3), seed_argument(c, "cache-index"));
  restate_variants(indexed);
  take(c, std::move(indexed), m);
}

/// Of what has lengths of keys one in three brings some with the call: as many as there are queries, one, all that the
/// shortest entry has, or any number.
void fit_new_keys(Case& c, const Manifest& m) {
  settle_append(c);
  const auto terms = m.variants.find(append_variant.name);
  if (terms == m.variants.end()) {
    drop_variant(c, append_variant.name);
    return;
  }
  const std::int64_t most = std::min(most_append(c), terms->second.max_tokens.value_or(keys_of(c)));
  if (c.append > 0 || most <= 0) {
    c.append = std::min(c.append, std::max<std::int64_t>(most, 0));
    return;
  }
  const Property* const property = drawn_for(c);
  const bool any = property != nullptr && property->under == "any",
             must = (any && requires_it(m, Feature::append)) ||
                    (property != nullptr && property->variant == append_variant.name);
  if (!must && !(any && argument(c, "append", 3) == 0)) return;
  const std::array wanted{queries_of(c), std::int64_t{1}, most, 1 + argument(c, "tokens", most)};
  Case appending = c;
  appending.append = std::clamp<std::int64_t>(wanted[static_cast<std::size_t>(argument(c, "new-keys", 4))], 1, most);
  restate_variants(appending);
  take(c, std::move(appending), m);
}

}  // namespace

namespace {

/// Caches come with lengths of keys. One case in three that has another variant is given them, so that a kernel that
/// serves meets its windows, caps and sinks there, too.
void fit_lengths_of_keys(Case& c, const Manifest& m) {
  constexpr std::array caches{Feature::paged, Feature::append, Feature::cache_index};
  const Property* const property = drawn_for(c);
  const auto offered = [&](Feature feature) { return m.variants.contains(name_of(feature)); };
  const bool another = variant_bits(c) != 0;
  if (std::ranges::none_of(caches, offered) || property == nullptr || property->under != "any" || !another) return;
  if (c[Slot::kv_lengths].present() || has_variant(c, packed_variant.name) || is_in_cache(c)) return;
  const std::int64_t keys = keys_of(c);
  if (keys == 0 || has_variant(c, dropout_variant.name) || argument(c, "lengths-of-caches", 3) != 0) return;
  Case with = c;
  Stream stream(seed_argument(c, "lengths-of-caches"));
  with[Slot::kv_lengths] = Tensor(DType::i32, {batch_of(c)});
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    const bool all = c[Slot::left_pad].present() || stream.one_in(2);
    with[Slot::kv_lengths].set(b,
                               static_cast<double>(all ? keys : keys - stream.below(std::min<std::int64_t>(keys, 4))));
  }
  restate_variants(with);
  take(c, std::move(with), m);
}

}  // namespace

void fit_caches(Case& c, const Manifest& m) {
  if (c.operation != Operation::attention) return;
  fit_lengths_of_keys(c, m);
  // Nothing is dropped beside a cache.
  if (has_variant(c, dropout_variant.name)) {
    const bool must = std::ranges::any_of(std::array{Feature::paged, Feature::append, Feature::cache_index},
                                          [&](Feature feature) { return requires_it(m, feature); });
    if (!must) return;
    leave_out(c, dropout_variant.name);
  }
  fit_pages_or_rows(c, m);
  fit_new_keys(c, m);
}

namespace {

/// A multi-head case without the appended key where that is ruled out, and with an output projection where there must
/// be one: the identity, which changes nothing but roundings. Nothing where that is the case already.
std::optional<Case> with_fitting_projections(const Case& c, const Manifest& m) {
  if (c.operation != Operation::multihead) return std::nullopt;
  const bool appended = c[Slot::bias_k].present() || c[Slot::bias_v].present();
  const bool drops = appended && std::ranges::any_of(m.excluded, [](const std::vector<Feature>& together) {
                       return std::ranges::count(together, Feature::bias_kv) > 0;
                     });
  const bool adds = !c[Slot::w_o].present() && std::ranges::count(m.required, Feature::output_projection) > 0;
  if (!drops && !adds) return std::nullopt;
  Case fitting = c;
  if (drops) fitting[Slot::bias_k] = fitting[Slot::bias_v] = Tensor();
  if (adds) {
    const std::int64_t width = c[Slot::w_v].shape()[1];
    fitting[Slot::w_o] = mapped(Tensor(c.dtype(), {width, width}),
                                [&](std::int64_t e, double) { return e / width == e % width ? 1.0 : 0.0; });
  }
  return fitting;
}

}  // namespace

bool try_forms(const Case& c, const Manifest& m, const std::function<bool(Case)>& take) {
  for (const MaskForm mask : {MaskForm::as_it_is, MaskForm::other_kind, MaskForm::none, MaskForm::all_visible}) {
    const std::optional<Case> masked = with_mask_form(c, mask, m);
    if (!masked) continue;
    for (const Causal causal : causal_forms(c, m)) {
      Case formed = *masked;
      if (causal != c.causal) {
        formed.causal = causal;
        settle_alignment(formed);
        drop_kinds(formed, "causal:");
        add_kind(formed, "causal:", name_of(causal));
      }
      std::optional<Case> fitting = with_fitting_projections(formed, m);
      if (take(std::move(formed)) || (fitting && take(std::move(*fitting)))) return true;
    }
  }
  return false;
}

namespace {

/// The words of what was drawn say which arguments of the variant the case has now.
void restate_kinds(Case& c, std::string_view variant) {
  restate_variants(c);
  for_each_scalar(c.operation, [&](const auto& field) {
    if (field.variant.name != variant || field.is_detail) return;
    const std::string group = std::string(field.name) + ":";
    drop_kinds(c, group);
    if (c.*field.member != field.neutral) add_kind(c, group, "given");
  });
}

}  // namespace

void leave_out(Case& c, std::string_view variant) {
  drop_variant(c, variant);
  if (c.provenance.strides) {
    Layouts layouts = layouts_of(c);
    for (const TensorField& field : tensor_fields)
      if (field.variant.name == variant) layouts[field.slot] = MemoryLayout::row_major;
    set_layouts(c, layouts);
  }
  if (!c[Slot::kv_lengths].present()) drop_variant(c, paged_variant.name);
  settle_append(c);
  restate_kinds(c, variant);
}

void leave_out_gradient_by_lse(Case& c) {
  c[Slot::d_lse] = Tensor();
  if (!c.provenance.strides) return;
  Layouts layouts = layouts_of(c);
  layouts[Slot::d_lse] = MemoryLayout::row_major;
  set_layouts(c, layouts);
}

namespace {

/// Without a causal form positions count as the terms of all that ask have it, and where no alignment does the last of
/// these is left out.
void fit_alignment(Case& c, const Manifest& m) {
  if (c.causal != Causal::none || c.alignment == Causal::none) return;
  const auto takes = [&](const Variant& variant, Causal alignment) {
    if (!has_variant(c, variant.name)) return true;
    const auto terms = m.variants.find(variant.name);
    return terms != m.variants.end() && std::ranges::count(terms->second.alignment, alignment) > 0;
  };
  const auto all_take = [&](Causal alignment) {
    return std::ranges::all_of(positional_variants, [&](const Variant& variant) { return takes(variant, alignment); });
  };
  if (all_take(c.alignment)) return;
  for (const Causal other : {Causal::top_left, Causal::bottom_right})
    if (all_take(other)) {
      c.alignment = other;
      return;
    }
  const auto asks = [&](const Variant& variant) { return has_variant(c, variant.name); };
  if (std::ranges::count_if(positional_variants, asks) < 2) return;
  leave_out(c, std::ranges::find_if(positional_variants | std::views::reverse, asks)->name);
  fit_alignment(c, m);
}

/// Without the factors that the kernel does not take, and of heads, entries and blocks together where they may not have
/// their own.
void fit_descale(Case& c, const VariantTerms& terms) {
  const std::pair<Slot, bool> tensors[] = {{Slot::q, terms.of_q}, {Slot::k, terms.of_k}, {Slot::v, terms.of_v}};
  for (const auto& [tensor, taken] : tensors) {
    Tensor& factors = c[descale_of(tensor)];
    if (!factors.present()) continue;
    // What whole numbers are without theirs is no key any more.
    if (!taken) factors = Tensor();
    if (factors.present() && !terms.per_batch) factors = first_row(factors);
    if (factors.present() && !terms.per_head) factors = of_first_head(factors);
  }
  settle_blocks(c);
  // In its place each of those that a kernel takes as often as any other, of which there is more than one block.
  const auto fit = [&](bool of_rows, std::int64_t block, std::span<const std::int64_t> blocks) {
    if (block == 0 || terms.any_blocks || std::ranges::binary_search(blocks, block)) return;
    const std::int64_t rows = c[of_rows ? Slot::q : Slot::k].shape()[2];
    const auto shorter = static_cast<std::size_t>(std::ranges::lower_bound(blocks, rows) - blocks.begin());
    const auto among = blocks.first(std::max(shorter, std::min<std::size_t>(blocks.size(), 1)));
    set_block(c, of_rows, among.empty() ? 0 : among[static_cast<std::size_t>(block) % among.size()]);
  };
  fit(true, c.q_descale_block, terms.q_blocks);
  fit(false, c.kv_descale_block, terms.kv_blocks);
  if (c.provenance.kinds) restate_kinds(c, descale_variant.name);
}

/// Without the ends that a window may not have, and aligned as it may be; without the lengths that there may not be;
/// one entry's slopes for all where entries may not have their own; without variants that the kernel does not have, or
/// not with what else the case has.
void fit_variants(Case& c, const Manifest& m) {
  for (const Variant& variant : variants_of(c)) {
    const auto found = m.variants.find(variant.name);
    const auto of_case = [&](Feature feature) { return has(c, feature); };
    const auto is_lacking = [&](Feature feature) { return lacks(c, feature); };
    const auto is_it = [&](Feature feature) { return name_of(feature) == variant.name; };
    if (found == m.variants.end() || std::ranges::any_of(found->second.required, is_lacking) ||
        std::ranges::any_of(found->second.excluded, of_case) ||
        (asks_for_gradients(c) && std::ranges::any_of(m.backward_terms.excluded, is_it))) {
      leave_out(c, variant.name);
      continue;
    }
    const VariantTerms& terms = found->second;
    if (variant == lengths_variant) {
      if (!terms.queries) c[Slot::q_lengths] = Tensor();
      if (!terms.keys) c[Slot::kv_lengths] = Tensor();
      if (!c[Slot::kv_lengths].present()) drop_variant(c, paged_variant.name);
      settle_append(c);
      if (c.provenance.kinds) restate_kinds(c, variant.name);
    }
    // Of masks that are given to it, or that it draws, in its backward pass as well.
    const bool draws = terms.own && (!asks_for_gradients(c) || m.backward_terms.own_dropout);
    if (variant == dropout_variant && !(draws_own_dropout(c) ? draws : terms.given)) leave_out(c, variant.name);
    if (variant == sink_variant && std::ranges::count(terms.dtypes, c[Slot::sink].dtype()) == 0)
      c[Slot::sink] = rounded(c[Slot::sink], terms.dtypes.front());
    if (variant == alibi_variant && !terms.per_batch) c[Slot::alibi_slopes] = first_row(c[Slot::alibi_slopes]);
    if (variant == descale_variant) fit_descale(c, terms);
    if (variant != window_variant) continue;
    // An end that may not be is exchanged for the one that may.
    if (!terms.left && c.window_left >= 0) c.window_right = std::max(c.window_right, std::exchange(c.window_left, -1));
    if (!terms.right && c.window_right >= 0) c.window_left = std::max(c.window_left, std::exchange(c.window_right, -1));
    if (c.provenance.kinds) restate_kinds(c, variant.name);
  }
  fit_alignment(c, m);
}

}  // namespace

void fit_rest(Case& c, const Manifest& m) {
  fit_variants(c, m);
  if (c[Slot::d_lse].present() && !m.backward_terms.d_lse) leave_out_gradient_by_lse(c);
  fit_caches(c, m);
  const std::int64_t dk = extents_of(c).dk;
  if (!m.any_scale && !is_inverse_root(c.scale, dk)) c.scale = inverse_root(dk);
  const bool additive = c.mask().present() && c.mask().dtype() != DType::boolean;
  if (additive && std::ranges::count(m.mask_conventions, MaskConvention::post_scale) == 0)
    for (const Variant& variant : {softcap_variant, alibi_variant})
      if (has_variant(c, variant.name)) leave_out(c, variant.name);
  if (additive && !m.mask_conventions.empty() && std::ranges::count(m.mask_conventions, c.mask_convention) == 0)
    c.mask_convention = m.mask_conventions.front();
  if (!c.provenance.strides || (m.strides && m.zero_strides && m.far_strides)) return;
  Layouts layouts = layouts_of(c);
  const auto fit = [&](MemoryLayout& layout, std::string_view tensor) {
    const bool ruled_out = (layout == MemoryLayout::repeated && !m.zero_strides) || (is_far(layout) && !m.far_strides);
    if (layout == MemoryLayout::row_major || layout == MemoryLayout::aliased || (m.strides && !ruled_out)) return;
    layout = m.strides ? MemoryLayout::padded_rows : MemoryLayout::row_major;
    const std::string group = std::string(tensor) + "-strides:";
    drop_kinds(c, group);
    if (m.strides) add_kind(c, group, name_of(layout));
  };
  for (int i = 0; i < slot_count; ++i) {
    const auto slot = static_cast<Slot>(i);
    fit(layouts[slot], name_of(slot));
  }
  fit(layouts.out, "out");
  fit(layouts.lse, "lse");
  set_layouts(c, layouts);
}

}  // namespace attest
