#include <algorithm>
#include <string>

#include "core/problem/edge.h"
#include "properties/generators/fill.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

/// Brings a kind into its range.
template <class Kind>
void wrap(Kind& kind) {
  kind = static_cast<Kind>(static_cast<unsigned>(kind) % static_cast<unsigned>(Kind::count));
}

std::int32_t clamped(std::int32_t extent, std::int64_t least, std::int64_t most) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(extent, least, most));
}

/// Halves the largest of some extents until their product is at most `most`.
template <class... Extent>
void limit_product(std::int64_t most, Extent&... extents) {
  std::int32_t* all[] = {&extents...};
  for (;;) {
    std::int64_t product = 1;
    for (const std::int32_t* extent : all) product *= *extent;
    if (product <= most) return;
    std::int32_t* largest = *std::max_element(std::begin(all), std::end(all), [](auto* a, auto* b) { return *a < *b; });
    *largest /= 2;
  }
}

/// One mask for all heads where each of its own would be too many, and none where that is too many as well.
void limit_mask(Recipe& r) {
  const auto elements = [&] {
    return (r.mask_per_batch ? r.batch : 1LL) * (r.mask_per_head ? r.heads : 1) * r.queries * r.keys;
  };
  if (elements() > most_masked_of_large) r.mask_per_batch = r.mask_per_head = false;
  if (elements() > most_masked_of_large) r.mask = MaskKind::none;
}

/// Row i of q of each head becomes row i mod `distinct`.
void repeat_queries(std::int64_t distinct, Tensor& q) {
  const Shape& shape = q.shape();
  const std::int64_t rows = shape[2];
  const std::size_t row = static_cast<std::size_t>(shape[3]) * size_of(q.dtype());
  const std::span<std::byte> bytes = q.bytes();
  for (std::int64_t head = 0; head < shape[0] * shape[1]; ++head) {
    std::byte* const first = bytes.data() + static_cast<std::size_t>(head * rows) * row;
    for (std::int64_t i = distinct; i < rows; ++i)
      std::copy_n(first + static_cast<std::size_t>(i % distinct) * row, row, first + static_cast<std::size_t>(i) * row);
  }
}

void make_valid(Recipe& r) {
  wrap(r.scores);
  wrap(r.values);
  wrap(r.matrices);
  wrap(r.mask);
  wrap(r.scale);
  wrap(r.lengths);
  wrap(r.one_tensor);
  if (r.operation != Operation::multihead) r.operation = Operation::attention;
  if (r.causal != Causal::top_left && r.causal != Causal::bottom_right) r.causal = Causal::none;
  if (r.convention != MaskConvention::pre_scale) r.convention = MaskConvention::post_scale;
  for (std::int32_t* extent : {&r.batch, &r.heads, &r.dk, &r.dv, &r.c_q, &r.c_k, &r.c_v, &r.d_o}) {
    *extent = clamped(*extent, 1, 512);
  }
  const std::int64_t tokens = r.large ? most_tokens_of_large : most_tokens;
  const std::int64_t elements = r.large ? most_elements_of_large : most_elements;
  r.queries = clamped(r.queries, 0, tokens);
  r.keys = clamped(r.keys, 0, tokens);
  if (!r.large) limit_product(elements, r.batch, r.heads, r.queries, r.keys);
  limit_product(elements, r.batch, r.heads, r.queries, r.dk);
  limit_product(elements, r.batch, r.heads, r.queries, r.dv);
  limit_product(elements, r.batch, r.heads, r.keys, r.dk);
  limit_product(elements, r.batch, r.heads, r.keys, r.dv);
  if (r.large) limit_mask(r);
  r.distinct_queries = clamped(r.distinct_queries, 0, tokens);
  r.kv_heads = clamped(r.kv_heads, 1, r.heads);
  while (r.heads % r.kv_heads != 0) --r.kv_heads;
  if (r.operation == Operation::multihead) {
    const bool self = r.self_attention;
    if (self || r.one_tensor == OneTensor::queries_and_keys) r.keys = r.queries, r.c_k = r.c_q;
    if (self || r.one_tensor == OneTensor::keys_and_values) r.c_v = r.c_k;
  }
  limit_arguments(r.arguments);
  for (MemoryLayout& layout : r.layouts.inputs) wrap(layout);
  for (MemoryLayout* const layout : {&r.layouts.out, &r.layouts.lse}) {
    wrap(*layout);
    if (!is_for_outputs(*layout)) *layout = MemoryLayout::row_major;
  }
  r.override_count = clamped(r.override_count, 0, static_cast<std::int64_t>(r.overrides.size()));
}

void apply(const Override& change, Case& c) {
  if (change.slot != Slot::q && change.slot != Slot::k && change.slot != Slot::v) return;
  Tensor& tensor = c[change.slot];
  if (tensor.elements() == 0 || change.value != change.value) return;
  const double largest = format_of(tensor.dtype()).largest;
  tensor.set(static_cast<std::int64_t>(change.index) % tensor.elements(), std::clamp(change.value, -largest, largest));
}

/// Half of all cases stand against protected pages, each end as often as the other. What a recipe is decoded to is all
/// that decides, so that a case of a mutator has an edge too.
Edge edge_of(const Recipe& r) {
  constexpr Edge edges[] = {Edge::front, Edge::behind, Edge::none, Edge::none};
  return edges[Stream(r.seed ^ 0x65646765U).below(4)];
}

/// Of what a variant has for each head, entry or pair, and of gradients by answers, where anything lies under other
/// strides: drawn apart from the others, which are then what they are without it. A variant's are never `repeated`, as
/// what a head has is not what all of them have; gradients by the output often are, behind a sum.
MemoryLayout layout_of_later(const Recipe& r, Slot slot) {
  const bool repeats = slot == Slot::d_out || slot == Slot::d_lse;
  return static_cast<MemoryLayout>(
      Stream(r.seed ^ (0x6b656570U + static_cast<std::uint64_t>(slot)))
          .below(static_cast<int>(repeats ? MemoryLayout::far_rows : MemoryLayout::repeated)));
}

std::string kinds_of(const Recipe& r) {
  std::string kinds;
  kinds.reserve(96);
  const auto add = [&](std::string_view what, std::string_view kind) {
    if (!kinds.empty()) kinds += ' ';
    kinds.append(what).append(kind);
  };
  if (r.operation == Operation::attention) {
    add("scores:", name_of(r.scores));
    add("values:", name_of(r.values));
    if (r.loss != LossKind::none) add("loss:", name_of(r.loss));
  } else {
    add("matrices:", name_of(r.matrices));
  }
  add("mask:", name_of(r.mask));
  add("causal:", name_of(r.causal));
  add("scale:", name_of(r.scale));
  add("shape:", shape_name(r.queries, r.keys, r.dk, r.dv));
  if (r.override_count > 0) add("overrides:", "yes");
  const auto add_layout = [&](std::string_view tensor, MemoryLayout layout) {
    if (layout == MemoryLayout::row_major) return;
    add(tensor, "-strides:");
    kinds.append(name_of(layout));
  };
  for (int i = 0; i < original_slots; ++i) {
    const auto slot = static_cast<Slot>(i);
    const bool there =
        slot == Slot::mask ? r.mask != MaskKind::none : slot < Slot::mask || r.operation == Operation::multihead;
    if (there) add_layout(name_of(slot), r.layouts[slot]);
  }
  add_layout("out", r.layouts.out);
  return kinds;
}

}  // namespace

AxisExtents axis_extents(const Recipe& recipe) {
  AxisExtents extents{};
  extents[static_cast<std::size_t>(Axis::queries)] = recipe.queries;
  extents[static_cast<std::size_t>(Axis::keys)] = recipe.keys;
  return extents;
}

Case decode(Recipe recipe) {
  make_valid(recipe);
  Case c;
  c.operation = recipe.operation;
  c.scale = scale_of(recipe);
  c.causal = recipe.causal;
  c.mask_convention = recipe.convention;
  c[Slot::mask] = filled_mask(recipe);
  if (recipe.operation == Operation::attention) {
    thread_local std::vector<double> q, k;
    fill_scores(recipe, c, q, k);
    fill_values(recipe, c, q, k);
    if (recipe.distinct_queries > 0) repeat_queries(recipe.distinct_queries, c[Slot::q]);
  } else {
    fill_multihead(recipe, c);
  }
  // After the fills: a case whose kernel does not have its variant is the one that it would be without it.
  fill_slopes(recipe, c);
  set_later_arguments(c, recipe.arguments);
  fill_descale(recipe, c);
  fill_sequences(recipe, c);
  fill_sinks(recipe, c);
  fill_dropout(recipe, c);
  fill_loss(recipe, c);
  for (std::int32_t i = 0; i < recipe.override_count; ++i) apply(recipe.overrides[static_cast<std::size_t>(i)], c);
  if (recipe.layouts != Layouts()) {
    for (const Slot slot : {Slot::keep, Slot::sink, Slot::alibi_slopes, Slot::q_descale, Slot::k_descale,
                            Slot::v_descale, Slot::d_out, Slot::d_lse})
      if (c[slot].present()) recipe.layouts[slot] = layout_of_later(recipe, slot);
    make_repeatable(recipe, c);
    set_layouts(c, recipe.layouts);
  }
  set_edge(c, edge_of(recipe));
  c.provenance.kinds = kinds_of(recipe);
  for_each_scalar(c.operation, [&](const auto& field) {
    if (!field.is_original() && !field.is_detail && c.*field.member != field.neutral)
      add_kind(c, std::string(field.name) + ":", "given");
  });
  restate_variants(c);
  return c;
}

}  // namespace attest
