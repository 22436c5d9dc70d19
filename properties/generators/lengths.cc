// Lengths of the sequences of a batch, and which variants a recipe has.
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem/fields.h"
#include "core/problem/sequences.h"
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

/// Of keys that there are `most` of: seldom all of them.
std::int64_t drawn_left_pad(std::int64_t most, Stream& stream) {
  if (stream.one_in(8)) return most;
  return std::min(stream.one_in(2) ? uniform(most, stream) : at_an_edge(most, stream),
                  std::max<std::int64_t>(most - 1, 0));
}

void fill_left_pad(const Recipe& r, Case& c) {
  if (!r.left_pad) return;
  Stream stream(r.seed ^ 0x6c656674U);
  const std::int64_t batch = c.q().shape()[0];
  Tensor pad(DType::i32, {batch});
  for (std::int64_t b = 0; b < batch; ++b)
    pad.set(b, static_cast<double>(drawn_left_pad(sequence_of(c, b).keys, stream)));
  c[Slot::left_pad] = std::move(pad);
}

void fill_own_lengths(const Recipe& r, Case& c) {
  if (r.lengths == LengthKind::none) return;
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

}  // namespace

void fill_sequences(const Recipe& r, Case& c) {
  if (r.operation != Operation::attention) return;
  fill_own_lengths(r, c);
  fill_left_pad(r, c);
}

void give_lengths(Recipe& recipe, Stream& stream) {
  recipe.lengths = static_cast<LengthKind>(1 + stream.below(static_cast<std::int64_t>(LengthKind::count) - 1));
}

namespace {

/// Is a variant that has its own kind of drawing there, or do arguments have it?
bool has_variant(const Recipe& r, const Variant& variant) {
  if (variant == lengths_variant) return r.lengths != LengthKind::none;
  if (variant == left_pad_variant) return r.left_pad;
  if (variant == sink_variant) return r.sinks;
  if (variant == dropout_variant) return r.dropout;
  if (variant == alibi_variant) return r.slopes;
  if (variant == descale_variant) return r.descale != FactorKind::none;
  return attest::has_variant(r.arguments, variant.name);
}
void give_variant(Recipe& r, const Variant& variant, Stream& stream) {
  if (variant == lengths_variant)
    give_lengths(r, stream);
  else if (variant == left_pad_variant)
    r.left_pad = true;
  else if (variant == sink_variant)
    r.sinks = true;
  else if (variant == dropout_variant)
    give_dropout(r, stream);
  else if (variant == alibi_variant)
    give_slopes(r, stream);
  else if (variant == descale_variant)
    r.descale = FactorKind::any;
  else
    attest::give_variant(r.arguments, variant.name, axis_extents(r), stream);
}
void drop_variant(Recipe& r, const Variant& variant) {
  if (variant == lengths_variant) r.lengths = LengthKind::none;
  if (variant == left_pad_variant) r.left_pad = false;
  if (variant == sink_variant) r.sinks = false;
  if (variant == dropout_variant) r.dropout = false;
  if (variant == alibi_variant) r.slopes = false;
  if (variant == descale_variant) r.descale = FactorKind::none;
  attest::drop_variant(r.arguments, variant.name);
}

/// Those that recipes have: what is packed, or lies in a cache, is made of what has lengths.
const std::vector<Variant>& drawn_variants() {
  static const std::vector<Variant> drawn = [] {
    std::vector<Variant> all = variants();
    std::erase_if(all, [](const Variant& one) { return one == packed_variant || one.is_about_memory; });
    return all;
  }();
  return drawn;
}

/// Two of those that are drawn, each pair as often as any other. One more leaves most draws what they were: each has a
/// number of its own, and the largest ones win (rendezvous hashing, Thaler and Ravishankar 1998).
std::pair<Variant, Variant> two_variants(std::uint64_t salt) {
  std::pair<std::uint64_t, const Variant*> first{}, second{};
  for (const Variant& variant : drawn_variants()) {
    const std::pair one(Stream(salt ^ Stream(variant.bit).next()).next(), &variant);
    if (one.first >= first.first)
      second = std::exchange(first, one);
    else if (one.first >= second.first)
      second = one;
  }
  return {*first.second, *second.second};
}

}  // namespace

void change_variant(Recipe& r, Stream& stream) {
  if (r.operation != Operation::attention) return;
  const auto change = [&](const Variant& variant) {
    has_variant(r, variant) && !stream.one_in(2) ? drop_variant(r, variant) : give_variant(r, variant, stream);
  };
  const auto [first, second] = two_variants(stream.next());
  change(first);
  // What meets nowhere but where two of them do shows in no case that has one.
  if (stream.one_in(3)) change(second);
}

void give_several_variants(Recipe& r, Stream& stream) {
  for (const Variant& variant : drawn_variants())
    if (stream.one_in(2)) give_variant(r, variant, stream);
}

}  // namespace attest
