#include <algorithm>
#include <array>
#include <cmath>

#include "properties/generators/fill.h"

namespace attest {
namespace {

/// q and k of one key-value head of one batch entry: q has `rows` rows (all its query heads'), k has `keys`.
struct Block {
  std::span<double> q, k;
  std::int64_t rows, keys, dk;
  double scale;
  const Format& format;
  std::span<double> key(std::int64_t j) {
    return k.subspan(static_cast<std::size_t>(j * dk), static_cast<std::size_t>(dk));
  }
};

template <class Make>
void fill_both(Block& block, Make make) {
  for (double& x : block.q) x = make();
  for (double& x : block.k) x = make();
}

/// Exponent of the largest q or k whose scores stay inside every format: scale <= 4, dk products, sums with room to
/// spare.
int exponent_limit(const Block& block) {
  const int largest = std::ilogb(block.format.largest);
  return (largest - 5 - std::ilogb(static_cast<double>(block.dk))) / 2;
}

/// Gives key j the score target[j] for every row: q and k point along one vector of +-2^a, q scaled so that neither
/// side needs numbers much larger than the other. Half of the time some columns are left to small noise of their own.
/// Where rows are `told_apart` at least half of the columns are, and the noise is larger: a row in another's place
/// shows.
void prescribe(Block& block, Stream& stream, std::span<const double> target, bool told_apart) {
  double largest = 1.0;
  for (const double t : target) largest = std::max(largest, std::abs(t));
  const std::int64_t most = told_apart ? std::max<std::int64_t>(1, block.dk / 2) : block.dk;
  const std::int64_t aimed = stream.one_in(2) ? most : stream.between(1, most);
  const double noise = told_apart ? 0.5 : 0.125;
  const double per_column = largest / (block.scale * static_cast<double>(aimed));
  const double power = std::ldexp(1.0, std::ilogb(per_column) / 2);
  for (std::int64_t c = 0; c < block.dk; ++c) {
    const bool aims = c < aimed;
    const double sign = stream.either(1.0);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      block.q[static_cast<std::size_t>(i * block.dk + c)] = aims ? sign * power : stream.gaussian();
    }
    const double share = sign / (block.scale * static_cast<double>(aimed) * power);
    for (std::int64_t j = 0; j < block.keys; ++j) {
      block.key(j)[static_cast<std::size_t>(c)] =
          aims ? share * target[static_cast<std::size_t>(j)] : noise * stream.gaussian();
    }
  }
}

/// A key at an end or anywhere: the first and the last are where blocks and tails go wrong.
std::int64_t some_key(Stream& stream, std::int64_t keys) {
  const std::int64_t end = stream.below(3);
  return end == 0 ? 0 : end == 1 ? keys - 1 : stream.below(keys);
}

/// Distances below the largest score at which exp, or the format the weights are kept in, goes subnormal and then zero.
double underflow_edge(Stream& stream, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::array{708.4, 744.4, 745.1, 87.3}[static_cast<std::size_t>(stream.below(4))];
    case DType::f32:
    case DType::bf16:
      return std::array{87.34, 103.28, 103.97}[static_cast<std::size_t>(stream.below(3))];
    default:
      return std::array{9.7, 16.64, 17.33, 87.34, 103.97}[static_cast<std::size_t>(stream.below(5))];
  }
}

/// -1e4, rarely -1e9 and the format's own -largest, as far as q.k of the format reaches it with room to spare.
double sentinel(Stream& stream, const Format& format) {
  const std::int64_t which = stream.below(32);
  const bool narrow = format.largest < 1e9;
  const double own = narrow ? format.largest : format.largest / 16;
  return std::min(which == 0 ? own : which < 6 ? 1e9 : 1e4, narrow ? format.largest * format.largest / 64 : own);
}

/// The scores a kind asks for, one per key.
void targets(const Recipe& recipe, Block& block, Stream& stream, std::span<double> target) {
  for (double& t : target) t = stream.gaussian();
  switch (recipe.scores) {
    case ScoreKind::dominant:
      target[static_cast<std::size_t>(some_key(stream, block.keys))] +=
          std::array{8.0, 20.0, 50.0, 100.0, 200.0}[static_cast<std::size_t>(stream.below(5))];
      return;
    case ScoreKind::offset: {
      const double size = stream.uniform(100, 3000), offset = stream.either(size);
      for (double& t : target) t += offset;
      return;
    }
    case ScoreKind::spread: {
      const double reach = std::array{10.0, 25.0, 50.0, 100.0}[static_cast<std::size_t>(stream.below(4))];
      for (double& t : target) t = stream.uniform(-reach, reach);
      return;
    }
    case ScoreKind::below_sentinels: {
      const double limit = sentinel(stream, block.format), reach = std::max(50.0, std::ldexp(limit, -12));
      for (double& t : target) t = -limit + stream.uniform(-reach, reach);
      return;
    }
    case ScoreKind::underflow_edges: {
      const double edge = underflow_edge(stream, recipe.dtype);
      for (double& t : target) t = -edge + stream.uniform(-1, 1);
      target[static_cast<std::size_t>(some_key(stream, block.keys))] = 0.0;
      return;
    }
    case ScoreKind::huge: {
      const int edge = 2 * exponent_limit(block);
      const int exponent = static_cast<int>(stream.one_in(8) ? stream.between(std::min(22, edge), edge)
                                                             : stream.between(13, std::max(13, std::min(21, edge))));
      for (double& t : target) t = std::ldexp(stream.uniform(-1, 1), exponent);
      return;
    }
    case ScoreKind::rising: {
      const double significand = 1.0 + stream.unit();
      const double rise = std::ldexp(significand, static_cast<int>(stream.between(2, 8)));
      // In all heads alike, so that a mistake at either end shows in all of them or in none.
      const double step = (recipe.seed % 2 == 0 ? rise : -rise) / static_cast<double>(block.keys);
      for (std::size_t j = 0; j < target.size(); ++j)
        target[j] = 0.25 * target[j] + step * (static_cast<double>(j) - 0.5 * static_cast<double>(block.keys));
      return;
    }
    case ScoreKind::dominant_tile: {
      const std::int64_t tile = std::int64_t{16} << stream.below(4);
      const std::int64_t first = stream.below((block.keys + tile - 1) / tile) * tile;
      const double above = stream.uniform(3, 12);
      for (std::int64_t j = first; j < std::min(first + tile, block.keys); ++j)
        target[static_cast<std::size_t>(j)] += above;
      return;
    }
    default:
      return;
  }
}

/// All keys equal, equal but for single ulps, or a few distinct ones repeated.
void repeat_keys(ScoreKind kind, Block& block, Stream& stream) {
  fill_both(block, [&] { return stream.gaussian(); });
  const std::int64_t distinct = kind == ScoreKind::duplicate_keys ? (block.keys + 2) / 3 : 1;
  const double ulp = std::ldexp(1.0, 1 - block.format.precision);
  for (std::int64_t j = distinct; j < block.keys; ++j) {
    std::ranges::copy(block.key(stream.below(distinct)), block.key(j).begin());
    if (kind == ScoreKind::near_ties) {
      block.key(j)[static_cast<std::size_t>(stream.below(block.dk))] *=
          1.0 + static_cast<double>(stream.between(-2, 2)) * ulp;
    }
  }
}

/// Pairs of columns whose products cancel but for a prescribed share: condition number about 2^bits.
void ill_conditioned(Block& block, Stream& stream) {
  fill_both(block, [&] { return 4.0 * stream.gaussian(); });
  const double rest = std::ldexp(1.0, -static_cast<int>(stream.between(1, block.format.precision)));
  for (std::int64_t c = 0; c + 1 < block.dk; c += 2) {
    const auto even = static_cast<std::size_t>(c);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      double* row = &block.q[static_cast<std::size_t>(i * block.dk)];
      row[even + 1] = row[even];
    }
    for (std::int64_t j = 0; j < block.keys; ++j) {
      block.key(j)[even + 1] = -block.key(j)[even] * (1.0 + rest * stream.gaussian());
    }
  }
}

void fill_block(const Recipe& recipe, Block block, Stream& stream) {
  switch (recipe.scores) {
    case ScoreKind::gaussian_tenth:
      return fill_both(block, [&] { return 0.1 * stream.gaussian(); });
    case ScoreKind::gaussian_ten:
      return fill_both(block, [&] { return 10.0 * stream.gaussian(); });
    case ScoreKind::heavy:
      return fill_both(block, [&] { return stream.heavy(); });
    case ScoreKind::integers:
      return fill_both(block, [&] { return static_cast<double>(stream.between(-3, 3)); });
    case ScoreKind::powers_of_two:
      return fill_both(block, [&] { return power_of_two(stream, block.format, -4, 3); });
    case ScoreKind::exact_ties:
    case ScoreKind::near_ties:
    case ScoreKind::duplicate_keys:
      return repeat_keys(recipe.scores, block, stream);
    case ScoreKind::dominant:
    case ScoreKind::offset:
    case ScoreKind::spread:
    case ScoreKind::below_sentinels:
    case ScoreKind::underflow_edges:
    case ScoreKind::rising:
    case ScoreKind::dominant_tile:
    case ScoreKind::huge: {
      thread_local std::vector<double> target;
      target.resize(static_cast<std::size_t>(block.keys));
      targets(recipe, block, stream, target);
      const bool of_tiles = recipe.scores == ScoreKind::rising || recipe.scores == ScoreKind::dominant_tile;
      return prescribe(block, stream, target, of_tiles);
    }
    case ScoreKind::ill_conditioned:
      return ill_conditioned(block, stream);
    case ScoreKind::zero_queries:
      for (double& x : block.k) x = stream.gaussian();
      std::ranges::fill(block.q, 0.0);
      return;
    case ScoreKind::bit_classes: {
      // One case in sixteen has the format's maxima, whose products overflow: excused, and counted.
      const int high = stream.one_in(16)  ? std::ilogb(block.format.largest)
                       : stream.one_in(8) ? exponent_limit(block)
                                          : 3;
      return fill_both(block, [&] { return bit_class(stream, block.format, -6, high); });
    }
    case ScoreKind::gaussian:
    case ScoreKind::count:
      break;
  }
  fill_both(block, [&] { return stream.gaussian(); });
}

}  // namespace

void fill_scores(const Recipe& recipe, Case& c, std::vector<double>& q, std::vector<double>& k) {
  const Shape q_shape{recipe.batch, recipe.heads, recipe.queries, recipe.dk};
  const Shape k_shape{recipe.batch, recipe.kv_heads, recipe.keys, recipe.dk};
  q.resize(static_cast<std::size_t>(q_shape.elements()));
  k.resize(static_cast<std::size_t>(k_shape.elements()));
  Stream stream = stream_of(recipe, Slot::q);
  const std::int64_t blocks = std::int64_t{recipe.batch} * recipe.kv_heads;
  const std::int64_t rows = std::int64_t{recipe.heads / recipe.kv_heads} * recipe.queries;
  if (recipe.keys == 0) {
    // No score to give a character to; what the vector held before is of another case.
    for (double& x : q) x = stream.gaussian();
  }
  for (std::int64_t block = 0; recipe.keys > 0 && block < blocks; ++block) {
    const auto part = [&](std::vector<double>& all) {
      const std::size_t size = all.size() / static_cast<std::size_t>(blocks);
      return std::span(all).subspan(static_cast<std::size_t>(block) * size, size);
    };
    fill_block(recipe, {part(q), part(k), rows, recipe.keys, recipe.dk, c.scale, format_of(recipe.dtype)}, stream);
  }
  c[Slot::q] = stored(recipe.dtype, q_shape, q);
  c[Slot::k] = stored(recipe.dtype, k_shape, k);
}

}  // namespace attest
