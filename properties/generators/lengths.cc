// Lengths of the sequences of a batch, and which variants a recipe has.
#include <algorithm>
#include <string_view>
#include <vector>

#include "core/problem/fields.h"
#include "properties/generators/fill.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

std::int64_t uniform(std::int64_t most, Stream& stream) {
  return stream.below(most + 1);
}

/// Around nothing, around all, or around a multiple of a tile.
std::int64_t at_an_edge(std::int64_t most, Stream& stream) {
  const std::int64_t tile = std::int64_t{8} << stream.below(5);
  const std::int64_t edges[] = {0, most, tile * (1 + stream.below(std::max<std::int64_t>(most / tile, 1)))};
  return std::clamp<std::int64_t>(edges[stream.below(3)] + stream.between(-1, 1), 0, most);
}

/// Of one sequence, where M or N is `most`.
std::int64_t drawn(LengthKind kind, std::int64_t most, bool queries, Stream& stream) {
  switch (kind) {
    case LengthKind::edges:
      return at_an_edge(most, stream);
    case LengthKind::full:
      return most;
    case LengthKind::ones:
      return std::min<std::int64_t>(most, 1);
    case LengthKind::decode:
      return queries ? std::min<std::int64_t>(most, 1) : std::min(most, 1 + uniform(most, stream));
    default:
      return uniform(most, stream);
  }
}

Tensor drawn_lengths(const Recipe& r, std::int64_t batch, std::int64_t most, bool queries, Stream& stream) {
  Tensor lengths(DType::i32, {batch});
  for (std::int64_t b = 0; b < batch; ++b) lengths.set(b, static_cast<double>(drawn(r.lengths, most, queries, stream)));
  return lengths;
}

}  // namespace

void fill_lengths(const Recipe& r, Case& c) {
  if (r.operation != Operation::attention || r.lengths == LengthKind::none) return;
  Stream stream(r.seed ^ 0x6c656e73U);
  const std::int64_t batch = c.q().shape()[0];
  if (r.lengths != LengthKind::keys)
    c[Slot::q_lengths] = drawn_lengths(r, batch, c.q().shape()[2], /*queries=*/true, stream);
  if (r.lengths != LengthKind::queries)
    c[Slot::kv_lengths] = drawn_lengths(r, batch, c.k().shape()[2], /*queries=*/false, stream);
  // One sequence has something to attend to, where the batch has.
  const std::int64_t whole = stream.below(batch);
  for (const Slot slot : {Slot::q_lengths, Slot::kv_lengths}) {
    const std::int64_t most = slot == Slot::q_lengths ? c.q().shape()[2] : c.k().shape()[2];
    if (c[slot].present() && most > 0) c[slot].set(whole, std::max(c[slot][whole], 1.0));
  }
  if (r.lengths != LengthKind::empty || batch == 1) return;
  const std::int64_t one = (whole + 1 + stream.below(batch - 1)) % batch, which = stream.below(3);
  if (which != 0) c[Slot::q_lengths].set(one, 0);
  if (which != 1) c[Slot::kv_lengths].set(one, 0);
}

void give_lengths(Recipe& recipe, Stream& stream) {
  recipe.lengths = static_cast<LengthKind>(1 + stream.below(static_cast<std::int64_t>(LengthKind::count) - 1));
}

void change_variant(Recipe& r, Stream& stream) {
  if (r.operation != Operation::attention) return;
  const std::string_view names[] = {window_variant.name, lengths_variant.name};
  const auto change = [&](std::string_view name) {
    const bool lengths = name == lengths_variant.name;
    const bool given = lengths ? r.lengths != LengthKind::none : has_variant(r.arguments, name);
    if (given && !stream.one_in(2)) {
      r.lengths = lengths ? LengthKind::none : r.lengths;
      drop_variant(r.arguments, name);
    } else if (lengths) {
      give_lengths(r, stream);
    } else {
      give_variant(r.arguments, name, axis_extents(r), stream);
    }
  };
  const std::int64_t first = stream.below(std::ssize(names));
  change(names[first]);
  // What meets nowhere but where two of them do shows in no case that has one.
  if (stream.one_in(3)) change(names[(first + 1) % std::ssize(names)]);
}

}  // namespace attest
