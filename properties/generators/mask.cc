#include <cmath>
#include <cstdint>
#include <limits>

#include "properties/generators/fill.h"

namespace attest {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// Rows of one head, filled by the rule of a kind: 0 where visible, -inf where hidden, else the bias.
struct Plane {
  std::span<double> entry;
  std::int64_t rows, keys;
  double& at(std::int64_t i, std::int64_t j) { return entry[static_cast<std::size_t>(i * keys + j)]; }
  void hide_keys(std::int64_t from, std::int64_t to) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = from; j < to; ++j) at(i, j) = minus_infinity;
    }
  }
};

/// Sets each place to `entry` with probability 1/odds, but never a whole row: that is a kind of its own.
void scatter(Plane plane, Stream& stream, double entry) {
  const std::int64_t odds = stream.between(2, 4);
  for (std::int64_t i = 0; i < plane.rows; ++i) {
    const std::int64_t spared = stream.below(plane.keys);
    for (std::int64_t j = 0; j < plane.keys; ++j) {
      if (stream.one_in(odds) && j != spared) plane.at(i, j) = entry;
    }
  }
}

/// In one case of four a row, or every row, is of nothing but the lowest number of the dtype, or of 0.6 times that
/// (2e38 in f32): all its keys are far away, and its answer is their mean all the same. Decided by `bits` and not by
/// the stream, so that whatever else is drawn stays as it is.
void lowest_rows(Plane plane, std::uint64_t bits, double largest) {
  if (bits % 4 != 0) return;
  const bool all = bits >> 2 & 1;
  const double entry = -largest * ((bits >> 3 & 1) != 0 ? 1.0 : 0.6);
  const auto one = static_cast<std::int64_t>((bits >> 4) % static_cast<std::uint64_t>(plane.rows));
  for (std::int64_t i = 0; i < plane.rows; ++i) {
    for (std::int64_t j = 0; (all || i == one) && j < plane.keys; ++j) plane.at(i, j) = entry;
  }
}

void hide_future(Plane plane, std::int64_t shift) {
  for (std::int64_t i = 0; i < plane.rows; ++i) {
    for (std::int64_t j = 0; j < plane.keys; ++j) {
      if (j > i + shift) plane.at(i, j) = minus_infinity;
    }
  }
}

void alibi(Plane plane, Stream& stream, std::int64_t head) {
  const double slope = std::ldexp(1.0, -static_cast<int>(head + 1));
  const bool causal = stream.one_in(2);
  for (std::int64_t i = 0; i < plane.rows; ++i) {
    for (std::int64_t j = 0; j < plane.keys; ++j) {
      plane.at(i, j) = -slope * static_cast<double>(i > j ? i - j : j - i);
      if (causal && j > i) plane.at(i, j) = minus_infinity;
    }
  }
}

void fill_plane(const Recipe& recipe, Plane plane, Stream& stream, std::int64_t head) {
  const std::int64_t keys = plane.keys;
  switch (recipe.mask) {
    case MaskKind::random:
      return scatter(plane, stream, minus_infinity);
    case MaskKind::first_block:
      return plane.hide_keys(0, stream.below(keys));
    case MaskKind::middle_block: {
      const std::int64_t from = stream.below(keys);
      return plane.hide_keys(from, from == 0 ? keys - 1 : from + 1 + stream.below(keys - from));
    }
    case MaskKind::last_block:
    case MaskKind::padding:
      return plane.hide_keys(stream.between(1, keys), keys);
    case MaskKind::whole_row: {
      scatter(plane, stream, minus_infinity);
      const std::int64_t row = stream.below(plane.rows);
      for (std::int64_t j = 0; j < keys; ++j) plane.at(row, j) = minus_infinity;
      return;
    }
    case MaskKind::whole_head:
      if (head == static_cast<std::int64_t>(recipe.seed % static_cast<std::uint64_t>(recipe.heads))) {
        plane.hide_keys(0, keys);
      }
      return;
    case MaskKind::causal:
      return hide_future(plane, stream.one_in(2) ? 0 : keys - plane.rows);
    case MaskKind::bias: {
      const double sigma = stream.one_in(3) ? 30.0 : stream.one_in(2) ? 4.0 : 0.5;
      for (double& entry : plane.entry) entry = sigma * stream.gaussian();
      return;
    }
    case MaskKind::alibi:
      return alibi(plane, stream, head);
    case MaskKind::finite_sentinel: {
      const double largest = format_of(recipe.dtype).largest;
      const std::int64_t which = stream.below(4);
      scatter(plane, stream, -std::min(which < 2 ? 1e4 : which == 2 ? 1e9 : largest, largest));
      return lowest_rows(plane, recipe.seed >> 24, largest);
    }
    case MaskKind::none:
    case MaskKind::count:
      return;
  }
}

bool only_hides(MaskKind kind) {
  return kind != MaskKind::bias && kind != MaskKind::alibi && kind != MaskKind::finite_sentinel;
}

}  // namespace

Tensor filled_mask(const Recipe& recipe) {
  if (recipe.mask == MaskKind::none) return {};
  const std::int64_t batch = recipe.mask_per_batch || recipe.mask == MaskKind::padding ? recipe.batch : 1;
  const std::int64_t heads = recipe.mask_per_head || recipe.mask == MaskKind::whole_head ? recipe.heads : 1;
  const std::int64_t plane_size = std::int64_t{recipe.queries} * recipe.keys;
  const Shape shape{batch, heads, recipe.queries, recipe.keys};
  thread_local std::vector<double> entries;
  entries.assign(static_cast<std::size_t>(shape.elements()), 0.0);
  Stream stream = stream_of(recipe, Slot::mask);
  for (std::int64_t plane = 0; plane_size > 0 && plane < batch * heads; ++plane) {
    fill_plane(
        recipe,
        {std::span(entries).subspan(static_cast<std::size_t>(plane * plane_size), static_cast<std::size_t>(plane_size)),
         recipe.queries, recipe.keys},
        stream, plane % heads);
  }
  // e4m3 has no infinity: what hides must be boolean there.
  if (only_hides(recipe.mask) && (recipe.boolean_mask || recipe.dtype == DType::f8_e4m3)) {
    for (double& entry : entries) entry = entry == 0.0 ? 1.0 : 0.0;
    return {DType::boolean, shape, entries};
  }
  if (recipe.dtype == DType::f8_e4m3) return stored(recipe.dtype, shape, entries);
  return {recipe.dtype, shape, entries};
}

}  // namespace attest
