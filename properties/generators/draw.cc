#include "properties/generators/draw.h"

#include <algorithm>

#include "properties/generators/fill.h"
#include "properties/generators/recipes.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

/// One case in eight has a tensor whose elements lie far apart: offsets kept in 32 bits are a common mistake, and such
/// memory costs little.
void draw_far(Recipe& recipe) {
  const std::uint64_t seed = recipe.seed;
  if (recipe.large || (seed >> 44) % 8 != 0) return;
  const MemoryLayout layout = (seed >> 47) % 2 == 0 ? MemoryLayout::far_rows : MemoryLayout::far_heads;
  constexpr Slot inputs[] = {Slot::q, Slot::k, Slot::v};
  const std::uint64_t which = (seed >> 48) % 4;
  (which < 3 ? recipe.layouts[inputs[which]] : recipe.layouts.out) = layout;
}

}  // namespace

DrawnAttention Draw::attention(std::int64_t period) {
  Recipe recipe = attention_recipes(dtype_)(random_.split()).value();
  if (const auto number = production_number(shapes_, k_, period))
    make_production(recipe, shapes_, *number, large_for(period, *number));
  return {recipe, random_.split(), k_};
}

DrawnMultihead Draw::multihead(std::int64_t period) {
  Recipe recipe = multihead_recipes(dtype_)(random_.split()).value();
  if (const auto number = production_number(shapes_, k_, period))
    make_multihead_production(recipe, shapes_, *number, period < period_of_laws ? LargeFor::definition : LargeFor::law);
  return DrawnMultihead(recipe);
}

DrawnAttention& DrawnAttention::near_the_edge() {
  if (random_.split().next() % 2 == 0) move_to_the_edge(recipe_, random_);
  return *this;
}

DrawnAttention& DrawnAttention::sometimes_of_model_size() {
  rc::Random random = random_.split();
  if (recipe_.large || random.next() % 16 != 0) return *this;
  Recipe& r = recipe_;
  r.scores = ScoreKind::gaussian, r.values = ValueKind::gaussian, r.scale = ScaleKind::inverse_root;
  r.override_count = 0;
  r.batch = 1;
  r.heads = 1 + static_cast<std::int32_t>(random.next() % 2);
  r.kv_heads = 1 + static_cast<std::int32_t>(random.next() % static_cast<unsigned>(r.heads));
  r.queries = 1 + static_cast<std::int32_t>(random.next() % 2);
  // As many from each octave up to 255 keys; longer ones are dear. Half end where a block does. Errors are largest
  // where many columns meet few keys, whose weights average little away.
  const int octave = 3 + static_cast<int>(random.next() % 21) / 4;
  r.keys = (1 << octave) + static_cast<std::int32_t>(random.next() % (std::uint64_t{1} << octave));
  if (random.next() % 2 == 0) r.keys &= ~7;
  r.dk = 32 << (random.next() % 3);
  r.dv = 32 << (random.next() % 3);
  constexpr MaskKind masks[] = {MaskKind::none, MaskKind::none, MaskKind::padding, MaskKind::causal};
  r.mask = masks[random.next() % 4];
  r.convention = MaskConvention::post_scale;
  return *this;
}

DrawnAttention& DrawnAttention::strided() {
  rc::Random random = random_.split();
  // One head of one batch entry leaves few strides to be wrong about.
  if (recipe_.heads == 1 && random.next() % 2 == 0) recipe_.heads = recipe_.kv_heads = 2;
  if (recipe_.batch == 1 && random.next() % 2 == 0) recipe_.batch = 2;
  const auto drawn = [&](int kinds) { return static_cast<MemoryLayout>(random.next() % static_cast<unsigned>(kinds)); };
  constexpr int all = static_cast<int>(MemoryLayout::far_rows), of_outputs = static_cast<int>(MemoryLayout::repeated);
  Layouts& layouts = recipe_.layouts;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v, Slot::mask}) layouts[slot] = drawn(all);
  layouts.out = drawn(of_outputs);
  layouts.lse = drawn(of_outputs);
  const Slot one = static_cast<Slot>(random.next() % 3);
  if (layouts[one] == MemoryLayout::row_major) layouts[one] = static_cast<MemoryLayout>(1 + random.next() % (all - 1));
  draw_far(recipe_);
  return *this;
}

DrawnMultihead& DrawnMultihead::near_the_edge() {
  if ((recipe_.seed >> 28) % 2 == 0) recipe_.matrices = MatrixKind::huge;
  return *this;
}

DrawnMultihead& DrawnMultihead::strided() {
  Stream stream(recipe_.seed ^ 0x73747269U);
  if (recipe_.batch == 1 && stream.below(2) == 0) recipe_.batch = 2;
  const auto drawn = [&](int kinds) { return static_cast<MemoryLayout>(stream.below(kinds)); };
  constexpr int all = static_cast<int>(MemoryLayout::far_rows), of_outputs = static_cast<int>(MemoryLayout::repeated);
  Layouts& layouts = recipe_.layouts;
  for (int slot = 0; slot < original_slots; ++slot) layouts[static_cast<Slot>(slot)] = drawn(all);
  layouts.out = drawn(of_outputs);
  constexpr Slot matrices[] = {Slot::q, Slot::k, Slot::v, Slot::w_q};
  const Slot one = matrices[stream.below(4)];
  if (layouts[one] == MemoryLayout::row_major) layouts[one] = static_cast<MemoryLayout>(1 + stream.below(all - 1));
  return *this;
}

DrawnMultihead& DrawnMultihead::torch_case() {
  recipe_.dv = recipe_.dk;
  const std::int32_t d = recipe_.heads * recipe_.dk;
  recipe_.c_q = recipe_.d_o = d;
  // Half of the cases in the packed form, where c_k = c_v = d.
  if (recipe_.seed % 2 == 0) recipe_.c_k = recipe_.c_v = d;
  recipe_.output_projection = true;
  recipe_.left_out_biases = 0;
  recipe_.scale = ScaleKind::inverse_root;
  recipe_.convention = MaskConvention::post_scale;
  return *this;
}

namespace {

void unmask(Recipe& r) {
  r.mask = MaskKind::none;
  r.causal = Causal::none;
}

/// A kind drawn from the recipe's own seed in the place of none, three times in four.
void mask(Recipe& r) {
  r.causal = Causal::none;
  if (r.mask != MaskKind::none || r.seed % 4 == 0) return;
  r.mask = static_cast<MaskKind>(1 + (r.seed >> 8) % (static_cast<std::uint64_t>(MaskKind::count) - 1));
}

void draw_later_arguments(Recipe& r) {
  Stream stream(r.seed ^ 0x61726775U);
  if (r.trained_rate > 0) {
    r.dropout = true;
    argument_in(r.arguments, &Problem::dropout_p) = r.trained_rate;
    return;
  }
  const bool large = r.large && r.operation == Operation::attention;
  if (!stream.one_in(large ? 2 : 4)) return;
  const std::int64_t which = large ? stream.below(8) : 7;
  // A batch of so many is one of sequences.
  if (r.batch > 32 && which % 2 == 0) return give_lengths(r, stream);
  if (which < 3 && give_model_window(r, stream)) return;
  if (which < 7) return give_several_variants(r, stream);
  change_variant(r, stream);
}

void raise(Recipe& r, std::int32_t queries, std::int32_t keys) {
  r.queries = std::max(r.queries, queries);
  r.keys = std::max(r.keys, keys);
}

}  // namespace

DrawnAttention& DrawnAttention::unmasked() {
  unmask(recipe_);
  return *this;
}
DrawnAttention& DrawnAttention::with_later_arguments() {
  draw_later_arguments(recipe_);
  return *this;
}
DrawnAttention& DrawnAttention::windowed() {
  Stream stream(recipe_.seed ^ 0x77696e64U);
  if (recipe_.large && stream.one_in(2) && give_model_window(recipe_, stream)) return *this;
  give_variant(recipe_.arguments, window_variant.name, axis_extents(recipe_), stream);
  return *this;
}
DrawnAttention& DrawnAttention::chunked() {
  Stream stream(recipe_.seed ^ 0x6368756e6bU);
  give_variant(recipe_.arguments, chunk_variant.name, axis_extents(recipe_), stream);
  return *this;
}
DrawnAttention& DrawnAttention::with_descale(FactorKind kind) {
  recipe_.descale = kind;
  return *this;
}
DrawnAttention& DrawnAttention::with_gradients() {
  recipe_.loss = drawn_loss(recipe_.seed);
  recipe_.loss_by_lse = draws_loss_by_lse(recipe_.seed);
  return *this;
}
DrawnAttention& DrawnAttention::with_gradients_by_lse() {
  static_cast<void>(with_gradients());
  recipe_.loss_by_lse = true;
  return *this;
}

DrawnAttention& DrawnAttention::with_sinks() {
  recipe_.sinks = true;
  return *this;
}
DrawnAttention& DrawnAttention::with_softcap() {
  Stream stream(recipe_.seed ^ 0x636170U);
  give_variant(recipe_.arguments, softcap_variant.name, axis_extents(recipe_), stream);
  return *this;
}
DrawnAttention& DrawnAttention::with_dropout() {
  Stream stream(recipe_.seed ^ 0x64726f70U);
  give_dropout(recipe_, stream);
  return *this;
}

DrawnAttention& DrawnAttention::with_slopes() {
  Stream stream(recipe_.seed ^ 0x736c6f7065U);
  give_slopes(recipe_, stream);
  return *this;
}

DrawnAttention& DrawnAttention::with_own_dropout() {
  Stream stream(recipe_.seed ^ 0x6f776e64U);
  give_own_dropout(recipe_, stream);
  return *this;
}

DrawnAttention& DrawnAttention::of_sequences() {
  Recipe& r = recipe_;
  Stream stream(r.seed ^ 0x6c656e67U);
  give_lengths(r, stream);
  // One sequence has no neighbour.
  if (r.batch == 1 && !r.large && !stream.one_in(4)) r.batch = 2 + static_cast<std::int32_t>(stream.below(4));
  r.left_pad = stream.one_in(4);
  return *this;
}
DrawnAttention& DrawnAttention::masked() {
  mask(recipe_);
  return *this;
}
DrawnAttention& DrawnAttention::at_least(std::int32_t queries, std::int32_t keys) {
  raise(recipe_, queries, keys);
  return *this;
}

DrawnMultihead& DrawnMultihead::unmasked() {
  unmask(recipe_);
  return *this;
}
DrawnMultihead& DrawnMultihead::with_later_arguments() {
  draw_later_arguments(recipe_);
  return *this;
}
DrawnMultihead& DrawnMultihead::masked() {
  mask(recipe_);
  return *this;
}
DrawnMultihead& DrawnMultihead::at_least(std::int32_t queries, std::int32_t keys) {
  raise(recipe_, queries, keys);
  return *this;
}
DrawnMultihead& DrawnMultihead::sometimes_aliased() {
  Stream stream(recipe_.seed ^ 0x616c696173U);
  const bool aliased = stream.one_in(2), self = recipe_.self_attention;
  if (!self) {
    const std::int64_t eighth = stream.below(8);
    // A large case has the lengths that were asked for.
    const bool of_one_length = !recipe_.large || recipe_.queries == recipe_.keys;
    recipe_.one_tensor = eighth < 2                     ? OneTensor::keys_and_values
                         : eighth == 2 && of_one_length ? OneTensor::queries_and_keys
                                                        : OneTensor::none;
    // Tokens of models have one width, whichever they are.
    if (recipe_.one_tensor != OneTensor::none && stream.one_in(2)) recipe_.c_k = recipe_.c_v = recipe_.c_q;
  }
  if (!aliased) return *this;
  if (self || recipe_.one_tensor == OneTensor::queries_and_keys) recipe_.layouts[Slot::k] = MemoryLayout::aliased;
  if (self || recipe_.one_tensor == OneTensor::keys_and_values) recipe_.layouts[Slot::v] = MemoryLayout::aliased;
  return *this;
}
DrawnMultihead& DrawnMultihead::self_attention() {
  recipe_.self_attention = true;
  return *this;
}

}  // namespace attest
