#include "fuzz/mutate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "properties/generators/draw.h"
#include "properties/generators/fill.h"
#include "properties/generators/recipes.h"

namespace attest {
namespace {

/// A recipe as Draw::attention and Draw::multihead begin with it.
Recipe drawn_recipe(Operation operation, DType dtype, std::uint64_t seed) {
  rc::Random random(seed);
  const rc::Random first = random.split();
  return operation == Operation::attention ? attention_recipes(dtype)(first).value()
                                           : multihead_recipes(dtype)(first).value();
}

Input from_recipe(Recipe recipe) {
  Input input;
  for (std::int32_t i = 0; i < recipe.override_count; ++i) {
    const Override& change = recipe.overrides[static_cast<std::size_t>(i)];
    input.changes.push_back({change.slot, change.index, change.value});
  }
  recipe.override_count = 0;
  input.recipe = recipe;
  return input;
}

template <class Kind>
Kind any_kind(Stream& stream) {
  return static_cast<Kind>(stream.below(static_cast<std::int64_t>(Kind::count)));
}

/// Small lengths, and those around the blocks that kernels use.
std::int32_t any_extent(std::int32_t now, Stream& stream) {
  switch (stream.below(8)) {
    case 0:
    case 1:
      return now + 1;
    case 2:
    case 3:
      return now - 1;
    case 4: {
      const std::int64_t block = std::int64_t{4} << stream.below(5);
      return static_cast<std::int32_t>(block + stream.between(-1, 1));
    }
    case 5:
      return stream.one_in(2) ? 2 * now : now / 2;
    default:
      return static_cast<std::int32_t>(stream.between(1, 8));
  }
}

double work_of(const Recipe& r) {
  return static_cast<double>(r.batch) * r.heads * r.queries * r.keys * (static_cast<double>(r.dk) + r.dv);
}

/// What a multihead case has beside attention.
void change_parts(Input& input, Stream& stream) {
  Recipe& r = input.recipe;
  switch (stream.below(5)) {
    case 0:
      r.biases = !r.biases;
      return;
    case 1:
      r.key_value_bias = !r.key_value_bias;
      return;
    case 2:
      r.output_projection = !r.output_projection;
      return;
    case 3:
      r.self_attention = !r.self_attention;
      return;
    default:
      r.matrices = any_kind<MatrixKind>(stream);
      for (int i = 0; i < original_slots; ++i)
        if (static_cast<Slot>(i) != Slot::mask) input.raw[static_cast<std::size_t>(i)].reset();
      return;
  }
}

void change_structure(Input& input, Stream& stream) {
  Recipe& r = input.recipe;
  switch (stream.below(12)) {
    case 0:
    case 1:
    case 2: {
      std::int32_t* const extents[] = {&r.queries, &r.keys,  &r.keys, &r.keys, &r.dk,  &r.dk, &r.dv,
                                       &r.batch,   &r.heads, &r.c_q,  &r.c_k,  &r.c_v, &r.d_o};
      // The widths of projections are a multihead case's alone.
      std::int32_t& extent = *extents[stream.below(r.operation == Operation::multihead ? 13 : 9)];
      const std::int32_t before = extent;
      extent = std::max(any_extent(extent, stream), 1);
      // Lengths only ever growing would leave a search of a few long cases.
      if (extent > before && work_of(r) > 4.0 * static_cast<double>(cheap_work)) extent = before;
      return;
    }
    case 3:
      r.kv_heads = static_cast<std::int32_t>(stream.between(1, std::max(r.heads, 1)));
      return;
    case 4:
      r.scores = any_kind<ScoreKind>(stream);
      input.raw[0].reset(), input.raw[1].reset();
      return;
    case 5:
      r.values = any_kind<ValueKind>(stream);
      input.raw[2].reset();
      return;
    case 6:
      r.mask = stream.one_in(3) ? MaskKind::none : any_kind<MaskKind>(stream);
      r.boolean_mask = stream.one_in(2);
      input.raw[3].reset();
      return;
    case 7:
      r.mask_per_batch = stream.one_in(2);
      r.mask_per_head = stream.one_in(2);
      if (r.operation == Operation::multihead) change_parts(input, stream);
      return;
    case 8:
      if (input.scale && !stream.one_in(3)) {
        input.scale = *input.scale * (stream.one_in(2) ? 2.0 : 0.5);
      } else {
        r.scale = any_kind<ScaleKind>(stream);
        input.scale.reset();
      }
      return;
    case 9:
      r.causal = static_cast<Causal>(stream.below(3));
      r.convention = static_cast<MaskConvention>(stream.below(2));
      change_variant(r, stream);
      return;
    case 10:
      r.layouts.inputs[static_cast<std::size_t>(stream.below(4))] = any_kind<MemoryLayout>(stream);
      return;
    default:
      r.seed = stream.next();
      return;
  }
}

/// A tensor that has elements, no mask, and one of q, k and v at least every other time; q where none has.
Tensor& some_tensor(Case& c, Stream& stream) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    const bool token = c.operation == Operation::attention || stream.one_in(2);
    const auto slot = static_cast<Slot>(token ? stream.below(3) : stream.between(4, original_slots - 1));
    if (c[slot].elements() > 0) return c[slot];
  }
  return c[Slot::q];
}

double stepped(double value, const Format& format, Stream& stream) {
  const double step = 2 * format.unit;
  switch (stream.below(9)) {
    case 0:
      return value * (1 + step * static_cast<double>(stream.between(-2, 2)));
    case 1:
      return value * (1 + std::ldexp(stream.uniform(-1, 1), -static_cast<int>(stream.below(12))));
    case 2:
      return value * (stream.one_in(2) ? 2.0 : 0.5);
    case 3:
      return -value;
    case 4:
      return bit_class(stream, format, -6, 3);
    case 5:
      return power_of_two(stream, format, -8, 8);
    case 6:
      return value + stream.gaussian();
    case 7:
      return std::nearbyint(value);
    default:
      return stream.gaussian() * std::ldexp(1.0, static_cast<int>(stream.between(-4, 6)));
  }
}

void set_finite(Tensor& tensor, std::int64_t at, double value) {
  const double largest = format_of(tensor.dtype()).largest;
  tensor.set(at, value == value ? std::clamp(value, -largest, largest) : 0.0);
}

/// One step in the numbers of one tensor.
void change_numbers(Case& c, Stream& stream) {
  Tensor& tensor = some_tensor(c, stream);
  const std::int64_t elements = tensor.elements();
  if (elements == 0) return;
  const Format& format = format_of(tensor.dtype());
  const std::int64_t width = tensor.shape()[tensor.shape().rank() - 1],
                     rows = elements / std::max<std::int64_t>(width, 1);
  const std::int64_t at = stream.below(elements);
  const std::int64_t row = stream.below(rows), other = stream.below(rows);
  switch (stream.below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return set_finite(tensor, at, stepped(tensor[at], format, stream));
    case 5:
      return set_finite(tensor, at, tensor[stream.below(elements)]);
    case 6:
      for (std::int64_t i = 0; i < width; ++i) set_finite(tensor, row * width + i, tensor[other * width + i]);
      return;
    case 7:
      for (std::int64_t i = 0; i < width; ++i) {
        const double here = tensor[row * width + i];
        set_finite(tensor, row * width + i, tensor[other * width + i]);
        set_finite(tensor, other * width + i, here);
      }
      return;
    case 8: {
      const double factor = std::exp2(stream.uniform(-1, 1));
      for (std::int64_t i = 0; i < width; ++i) set_finite(tensor, row * width + i, tensor[row * width + i] * factor);
      return;
    }
    case 9: {
      const double factor = std::exp2(stream.uniform(-1, 1));
      for (std::int64_t i = 0; i < elements; ++i) set_finite(tensor, i, tensor[i] * factor);
      return;
    }
    case 10: {
      const std::int64_t column = at % width;
      const double shift = stepped(tensor[at], format, stream);
      for (std::int64_t i = column; i < elements; i += width) set_finite(tensor, i, tensor[i] + shift);
      return;
    }
    default:
      tensor.bytes()[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(tensor.bytes().size())))] ^=
          static_cast<std::byte>(1 << stream.below(8));
      return;
  }
}

/// The bits of a step may have made a NaN or an infinity.
void change_finitely(Case& c, Stream& stream) {
  change_numbers(c, stream);
  for (int slot = 0; slot < slot_count; ++slot) {
    if (static_cast<Slot>(slot) == Slot::mask || slot >= original_slots) continue;
    Tensor& tensor = c[static_cast<Slot>(slot)];
    for (std::int64_t i = 0; i < tensor.elements(); ++i)
      if (!std::isfinite(tensor[i])) set_finite(tensor, i, tensor[i]);
  }
}

void add_change(Input& input, Stream& stream) {
  if (input.changes.size() >= most_changes) input.changes.erase(input.changes.begin());
  input.changes.push_back({static_cast<Slot>(stream.below(3)), static_cast<std::uint32_t>(stream.next()),
                           bit_class(stream, format_of(input.recipe.dtype), -6, 3)});
}

}  // namespace

Input restructured(const Input& input, const Target& target, Stream& stream) {
  Input result = input;
  if (result.drawn) {
    std::optional<Input> bits = input_of(case_of(input, *target.property));
    if (!bits) return mutated(input, target, stream);
    result = std::move(*bits);
  }
  for (std::int64_t i = stream.between(1, 2); i > 0; --i) change_structure(result, stream);
  return result;
}

Input fresh_input(const Target& target, Stream& stream) {
  const std::uint64_t seed = stream.next();
  Input input;
  if (stream.one_in(4)) {
    input = from_recipe(drawn_recipe(target.property->operation, target.dtype, seed));
  } else {
    input.drawn = true;
    input.recipe.operation = target.property->operation;
    input.recipe.dtype = target.dtype;
    input.recipe.seed = seed;
  }
  return input;
}

Input mutated(const Input& input, const Target& target, Stream& stream) {
  Input result = input;
  const std::int64_t steps = stream.between(1, 4);
  if (!input.drawn && stream.one_in(4)) {
    for (std::int64_t i = 0; i < steps; ++i) change_structure(result, stream);
    return result;
  }
  Case c = case_of(input, *target.property);
  if (std::optional<Input> bits = input_of(c)) {
    // What the recipe says stays for later changes of structure; the bits say everything now.
    for (std::int64_t i = 0; i < steps; ++i) change_finitely(c, stream);
    // What was one tensor stays one, or a self-attention would never be bred.
    if (bits->recipe.self_attention) c[Slot::k] = c[Slot::v] = c.q();
    bits = input_of(c);
    if (!input.drawn) {
      bits->recipe.scores = input.recipe.scores;
      bits->recipe.values = input.recipe.values;
      bits->recipe.scale = input.recipe.scale;
      bits->recipe.matrices = input.recipe.matrices;
    }
    bits->recipe.seed = input.recipe.seed;
    return std::move(*bits);
  }
  if (!input.drawn && stream.one_in(2)) change_structure(result, stream);
  for (std::int64_t i = 0; i < steps; ++i) add_change(result, stream);
  return result;
}

Input crossed(const Input& a, const Input& b, Stream& stream) {
  Input result = a;
  // What a property arranged is whole or not at all; one that is not drawn gives its parts.
  if (a.drawn || b.drawn) {
    if (b.drawn && !a.drawn && stream.one_in(2)) result = b;
    const Input& other = stream.one_in(2) ? a : b;
    result.changes = other.changes;
    return result;
  }
  if (stream.one_in(2)) {
    result.recipe.scores = b.recipe.scores;
    result.raw[0] = b.raw[0], result.raw[1] = b.raw[1];
  }
  if (stream.one_in(2)) {
    result.recipe.values = b.recipe.values;
    result.raw[2] = b.raw[2];
  }
  if (stream.one_in(2)) {
    result.recipe.matrices = b.recipe.matrices;
    std::copy(b.raw.begin() + 4, b.raw.end(), result.raw.begin() + 4);
  }
  if (stream.one_in(2)) {
    result.recipe.mask = b.recipe.mask;
    result.recipe.boolean_mask = b.recipe.boolean_mask;
    result.recipe.causal = b.recipe.causal;
    result.recipe.arguments = b.recipe.arguments;
    result.raw[3] = b.raw[3];
  }
  if (stream.one_in(2)) {
    result.recipe.scale = b.recipe.scale;
    result.scale = b.scale;
  }
  if (stream.one_in(4)) result.recipe.seed = b.recipe.seed;
  if (stream.one_in(4)) result.changes = b.changes;
  return result;
}

}  // namespace attest
