#include "properties/generators/recipes.h"

#include <rapidcheck/shrinkable/Create.h>

#include <cmath>

#include "properties/generators/fill.h"

namespace attest {
namespace {

/// Choices from RapidCheck's splittable source.
class Choices {
 public:
  explicit Choices(const rc::Random& random) : random_(random) {}
  std::uint64_t bits() { return random_.next(); }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(((random_.next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }
  std::int32_t between(std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(low + below(high - low + 1));
  }
  bool one_in(std::int64_t n) { return below(n) == 0; }

 private:
  rc::Random random_;
};

template <class Value>
struct Weighted {
  Value value;
  int weight;
};

template <class Value, std::size_t n>
Value pick(Choices& choices, const Weighted<Value> (&table)[n]) {
  std::int64_t total = 0;
  for (const auto& row : table) total += row.weight;
  std::int64_t at = choices.below(total);
  for (const auto& row : table) {
    at -= row.weight;
    if (at < 0) return row.value;
  }
  return table[0].value;
}

constexpr Weighted<ScoreKind> score_kinds[] = {{ScoreKind::gaussian_tenth, 3},
                                               {ScoreKind::gaussian, 8},
                                               {ScoreKind::gaussian_ten, 6},
                                               {ScoreKind::heavy, 4},
                                               {ScoreKind::integers, 6},
                                               {ScoreKind::powers_of_two, 4},
                                               {ScoreKind::exact_ties, 4},
                                               {ScoreKind::near_ties, 5},
                                               {ScoreKind::duplicate_keys, 4},
                                               {ScoreKind::dominant, 5},
                                               {ScoreKind::offset, 5},
                                               {ScoreKind::spread, 6},
                                               {ScoreKind::below_sentinels, 3},
                                               {ScoreKind::underflow_edges, 4},
                                               {ScoreKind::ill_conditioned, 4},
                                               {ScoreKind::zero_queries, 3},
                                               {ScoreKind::huge, 1},
                                               {ScoreKind::bit_classes, 3}};

constexpr Weighted<ValueKind> value_kinds[] = {
    {ValueKind::gaussian, 10},          {ValueKind::heavy, 3},        {ValueKind::integers, 5},
    {ValueKind::powers_of_two, 4},      {ValueKind::ones, 4},         {ValueKind::one_hot, 6},
    {ValueKind::low_weight_one_hot, 6}, {ValueKind::zero_visible, 4}, {ValueKind::half_ones, 2},
    {ValueKind::cancelling, 4},         {ValueKind::huge_offset, 4},  {ValueKind::huge, 2},
    {ValueKind::bit_classes, 3}};

constexpr Weighted<MaskKind> mask_kinds[] = {
    {MaskKind::none, 80},       {MaskKind::random, 16},  {MaskKind::first_block, 8}, {MaskKind::middle_block, 6},
    {MaskKind::last_block, 10}, {MaskKind::padding, 12}, {MaskKind::whole_row, 3},   {MaskKind::whole_head, 4},
    {MaskKind::causal, 10},     {MaskKind::bias, 12},    {MaskKind::alibi, 8},       {MaskKind::finite_sentinel, 10}};

/// Kinds that hide the same keys from every row.
constexpr Weighted<MaskKind> column_masks[] = {
    {MaskKind::first_block, 1}, {MaskKind::middle_block, 1}, {MaskKind::last_block, 1}, {MaskKind::padding, 1}};

constexpr Weighted<MatrixKind> matrix_kinds[] = {{MatrixKind::gaussian, 8},     {MatrixKind::gaussian_ten, 3},
                                                 {MatrixKind::integers, 4},     {MatrixKind::powers_of_two, 2},
                                                 {MatrixKind::identity, 3},     {MatrixKind::one_hot, 2},
                                                 {MatrixKind::equal_tokens, 1}, {MatrixKind::zeros, 1},
                                                 {MatrixKind::heavy, 2},        {MatrixKind::huge, 1}};

constexpr Weighted<ScaleKind> scale_kinds[] = {
    {ScaleKind::inverse_root, 15}, {ScaleKind::one, 2}, {ScaleKind::power_of_two, 2}, {ScaleKind::uniform, 1}};

constexpr Weighted<Causal> causal_forms[] = {{Causal::none, 16}, {Causal::top_left, 2}, {Causal::bottom_right, 1}};
constexpr Weighted<std::int32_t> batches[] = {{1, 9}, {2, 2}, {3, 1}};
constexpr Weighted<std::int32_t> head_counts[] = {{1, 8}, {2, 3}, {3, 1}, {4, 2}};
/// Of multi-head attention, where kernels go by two, four or eight heads at a time and the rest are their last ones.
constexpr Weighted<std::int32_t> layer_head_counts[] = {{1, 14}, {2, 6}, {3, 2}, {4, 4},
                                                        {5, 2},  {6, 1}, {7, 1}, {9, 1}};
/// Block sizes in use; larger ones are rarer because their cases cost more.
constexpr Weighted<std::int32_t> block_sizes[] = {{16, 8}, {32, 5}, {64, 3}, {128, 1}};

std::int32_t around_a_block(Choices& choices) {
  const std::int32_t block = pick(choices, block_sizes);
  return block + choices.between(-1, 1);
}

/// One long extent among short ones (1 case in 16), several (1 in 512), thousands of keys (1 in 4096), nothing (1 in
/// 200); these shares keep the average case about twice as dear as one with every extent at most 8.
void draw_extents(Choices& choices, Recipe& r, bool small_only) {
  r.batch = pick(choices, batches);
  r.heads = pick(choices, head_counts);
  r.kv_heads = choices.one_in(3) ? choices.between(1, r.heads) : r.heads;
  r.queries = choices.between(1, 8);
  r.keys = choices.between(1, 8);
  r.dk = choices.between(1, 8);
  r.dv = choices.between(1, 8);
  if (small_only) return;
  const std::int64_t rarity = choices.below(4096);
  if (rarity == 0) {
    r.batch = r.heads = r.kv_heads = 1;
    r.queries = choices.between(1, 2);
    r.dk = choices.between(1, 4);
    r.dv = choices.between(1, 2);
    r.keys = 1 << choices.between(10, 13);
    r.keys -= choices.between(0, 1);
    r.scores = ScoreKind::zero_queries;
    r.values = ValueKind::half_ones;
  } else if (rarity < 9) {
    r.batch = r.heads = r.kv_heads = 1;
    for (std::int32_t* extent : {&r.queries, &r.keys, &r.dk, &r.dv}) {
      if (choices.one_in(2)) *extent = around_a_block(choices);
    }
  } else if (rarity < 9 + 256) {
    r.batch = 1;
    std::int32_t* const extents[] = {&r.keys, &r.keys, &r.queries, &r.dk, &r.dv};
    *extents[choices.below(5)] = around_a_block(choices);
  } else if (rarity < 9 + 256 + 20) {
    (choices.one_in(2) ? r.queries : r.keys) = 0;
  }
}

void draw_mask(Choices& choices, Recipe& r) {
  r.mask = pick(choices, mask_kinds);
  if (r.values == ValueKind::zero_visible) r.mask = pick(choices, column_masks);
  if (r.scores == ScoreKind::below_sentinels && r.mask == MaskKind::none && choices.one_in(2)) {
    r.mask = pick(choices, column_masks);
  }
  // With a single row or head these would leave nothing to judge.
  if (r.mask == MaskKind::whole_row && r.queries < 2) r.mask = MaskKind::random;
  if (r.mask == MaskKind::whole_head && r.heads < 2) r.mask = MaskKind::last_block;
  r.boolean_mask = choices.one_in(2);
  r.mask_per_batch = choices.one_in(2);
  r.mask_per_head = choices.one_in(2);
  r.causal = pick(choices, causal_forms);
  if (r.mask != MaskKind::none && choices.one_in(6)) r.convention = MaskConvention::pre_scale;
}

void draw_overrides(Choices& choices, Recipe& r) {
  if (!choices.one_in(8)) return;
  Stream stream(choices.bits());
  r.override_count = choices.between(1, 3);
  for (std::int32_t i = 0; i < r.override_count; ++i) {
    Override& change = r.overrides[static_cast<std::size_t>(i)];
    change.slot = static_cast<Slot>(stream.below(3));
    change.index = static_cast<std::uint32_t>(stream.next());
    change.value = bit_class(stream, format_of(r.dtype), -6, 3);
  }
}

struct AttentionRecipes {
  DType dtype;
  rc::Shrinkable<Recipe> operator()(const rc::Random& random, int size) const {
    Choices choices(random);
    Recipe r;
    r.dtype = dtype;
    r.seed = choices.bits();
    r.scores = pick(choices, score_kinds);
    r.values = pick(choices, value_kinds);
    // Weights near the underflow show only through values that are large, or zero elsewhere.
    if (r.scores == ScoreKind::underflow_edges && !choices.one_in(3)) {
      r.values = choices.one_in(2) ? ValueKind::huge : ValueKind::low_weight_one_hot;
    }
    draw_extents(choices, r, size < rc::kNominalSize);
    draw_mask(choices, r);
    r.scale = pick(choices, scale_kinds);
    draw_overrides(choices, r);
    return rc::shrinkable::just(r);
  }
};

struct MultiheadRecipes {
  DType dtype;
  rc::Shrinkable<Recipe> operator()(const rc::Random& random, int size) const {
    Choices choices(random);
    Recipe r;
    r.operation = Operation::multihead;
    r.dtype = dtype;
    r.seed = choices.bits();
    r.matrices = pick(choices, matrix_kinds);
    r.batch = pick(choices, batches);
    r.heads = r.kv_heads = pick(choices, layer_head_counts);
    for (std::int32_t* extent : {&r.queries, &r.dk, &r.dv}) *extent = choices.between(1, 6);
    // A single key leaves nothing of the softmax to judge: rarer than the other lengths.
    r.keys = choices.one_in(16) ? 1 : choices.between(2, 6);
    for (std::int32_t* extent : {&r.c_q, &r.c_k, &r.c_v, &r.d_o}) *extent = choices.between(1, 12);
    if (size >= rc::kNominalSize && choices.one_in(64)) {
      std::int32_t* const extents[] = {&r.keys, &r.queries, &r.dk, &r.c_k};
      *extents[choices.below(4)] = 16 + choices.between(-1, 1);
    }
    r.self_attention = choices.one_in(3);
    r.biases = !choices.one_in(3);
    r.key_value_bias = choices.one_in(6);
    r.output_projection = !choices.one_in(6);
    draw_mask(choices, r);
    r.scale = pick(choices, scale_kinds);
    // Drawn apart, so that the others are what they would be. Whisper has none of the keys.
    Stream apart(r.seed ^ 0x62696173U);
    if (apart.one_in(6)) r.left_out_biases = apart.one_in(3) ? 2 : static_cast<std::uint32_t>(apart.below(15));
    return rc::shrinkable::just(r);
  }
};

constexpr Weighted<ScoreKind> edge_scores[] = {{ScoreKind::huge, 3},
                                               {ScoreKind::offset, 2},
                                               {ScoreKind::below_sentinels, 2},
                                               {ScoreKind::underflow_edges, 2},
                                               {ScoreKind::bit_classes, 3}};
constexpr Weighted<ValueKind> edge_values[] = {
    {ValueKind::huge, 2}, {ValueKind::bit_classes, 2}, {ValueKind::gaussian, 1}};

}  // namespace

rc::Gen<Recipe> attention_recipes(DType dtype) {
  return AttentionRecipes{dtype};
}
rc::Gen<Recipe> multihead_recipes(DType dtype) {
  return MultiheadRecipes{dtype};
}

void move_to_the_edge(Recipe& recipe, rc::Random& random) {
  Choices choices(random.split());
  recipe.scores = pick(choices, edge_scores);
  recipe.values = pick(choices, edge_values);
}

}  // namespace attest
