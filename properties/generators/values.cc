#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/problem/sight.h"
#include "properties/generators/fill.h"

namespace attest {
namespace {

/// v of one key-value head.
struct Block {
  std::span<double> v;
  std::int64_t keys, dv;
  const Format& format;
  double& at(std::int64_t j, std::int64_t column) { return v[static_cast<std::size_t>(j * dv + column)]; }
};

template <class Make>
void fill_all(Block& block, Make make) {
  for (double& x : block.v) x = make();
}

/// The largest value of which `keys` may be added without leaving the format.
double largest_summand(const Block& block) {
  return block.format.largest / (4.0 * static_cast<double>(std::max<std::int64_t>(1, block.keys)));
}

/// Each column has one 1, at the keys in the order given, round again when there are more columns than keys.
void one_hot(Block& block, std::span<const std::int64_t> order) {
  std::ranges::fill(block.v, 0.0);
  for (std::int64_t column = 0; column < block.dv; ++column) {
    block.at(order[static_cast<std::size_t>(column) % order.size()], column) = 1.0;
  }
}

/// The keys that row 0 of the head sees, the least score first; all keys where it sees none.
std::vector<std::int64_t> by_score(const Recipe& recipe, const Case& c, std::int64_t batch, std::int64_t head,
                                   std::span<const double> q, std::span<const double> k) {
  const std::int64_t group = recipe.heads / recipe.kv_heads, dk = recipe.dk;
  const double* row = &q[static_cast<std::size_t>((batch * recipe.heads + head) * recipe.queries * dk)];
  const double* keys = &k[static_cast<std::size_t>((batch * recipe.kv_heads + head / group) * recipe.keys * dk)];
  std::vector<double> score(static_cast<std::size_t>(recipe.keys));
  std::vector<std::int64_t> order;
  for (std::int64_t j = 0; j < recipe.keys; ++j) {
    score[static_cast<std::size_t>(j)] = std::inner_product(row, row + dk, keys + j * dk, 0.0);
    if (!hidden(c, batch, head, 0, j)) order.push_back(j);
  }
  if (order.empty()) {
    order.resize(score.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
  }
  std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
    const double of_a = score[static_cast<std::size_t>(a)], of_b = score[static_cast<std::size_t>(b)];
    return of_a < of_b || (of_a == of_b && a < b);
  });
  return order;
}

/// True when some row of the heads that read this key-value head sees key j.
bool seen(const Recipe& recipe, const Case& c, std::int64_t batch, std::int64_t kv_head, std::int64_t j) {
  const std::int64_t group = recipe.heads / recipe.kv_heads;
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    for (std::int64_t i = 0; i < recipe.queries; ++i) {
      if (!hidden(c, batch, head, i, j)) return true;
    }
  }
  return false;
}

/// A value that must show wherever it leaks to.
double seen_nowhere(Stream& stream) {
  const double size = stream.uniform(1, 100);
  return stream.either(size);
}

void cancelling(Block& block, Stream& stream) {
  const double size = std::ldexp(1.0, static_cast<int>(stream.between(0, 10)));
  const double rest = std::ldexp(1.0, -static_cast<int>(stream.between(2, block.format.precision)));
  for (std::int64_t column = 0; column < block.dv; ++column) {
    const double x = size * stream.gaussian();
    for (std::int64_t j = 0; j < block.keys; ++j) {
      block.at(j, column) = (j % 2 == 0 ? x : -x) * (1.0 + rest * stream.gaussian());
    }
  }
}

/// The kinds that look at neither scores nor mask.
void fill_plain(ValueKind kind, Block& block, Stream& stream) {
  switch (kind) {
    case ValueKind::heavy:
      return fill_all(block, [&] { return stream.heavy(); });
    case ValueKind::integers:
      return fill_all(block, [&] { return static_cast<double>(stream.between(-4, 4)); });
    case ValueKind::powers_of_two:
      return fill_all(block, [&] { return power_of_two(stream, block.format, -8, 8); });
    case ValueKind::ones:
      return fill_all(block, [] { return 1.0; });
    case ValueKind::half_ones:
      for (std::int64_t j = 0; j < block.keys; ++j) {
        for (std::int64_t column = 0; column < block.dv; ++column) block.at(j, column) = j < block.keys / 2 ? 0.0 : 1.0;
      }
      return;
    case ValueKind::cancelling:
      return cancelling(block, stream);
    case ValueKind::huge_offset: {
      const double size = stream.uniform(1, 3000), offset = stream.either(size);
      return fill_all(block, [&] { return offset + stream.gaussian(); });
    }
    case ValueKind::huge: {
      // One case in sixteen leaves the domain: sums that may overflow are excused, and counted.
      const double top = stream.one_in(16) ? block.format.largest : largest_summand(block);
      const double size = std::ldexp(top, -static_cast<int>(stream.below(8)));
      return fill_all(block, [&] {
        const double part = 0.5 + 0.5 * stream.unit();
        return stream.either(size * part);
      });
    }
    case ValueKind::bit_classes: {
      const int high = std::ilogb(stream.one_in(16) ? block.format.largest : largest_summand(block));
      const int low = stream.one_in(2) ? block.format.min_exponent : -6;
      const int top = stream.one_in(2) ? high : std::min(6, high);
      return fill_all(block, [&] { return bit_class(stream, block.format, low, top); });
    }
    default:
      return fill_all(block, [&] { return stream.gaussian(); });
  }
}

}  // namespace

void fill_values(const Recipe& recipe, Case& c, std::span<const double> q, std::span<const double> k) {
  const Shape shape{recipe.batch, recipe.kv_heads, recipe.keys, recipe.dv};
  thread_local std::vector<double> v;
  v.resize(static_cast<std::size_t>(shape.elements()));
  Stream stream = stream_of(recipe, Slot::v);
  const auto block_size = static_cast<std::size_t>(std::int64_t{recipe.keys} * recipe.dv);
  for (std::int64_t b = 0; recipe.keys > 0 && b < recipe.batch; ++b) {
    for (std::int64_t g = 0; g < recipe.kv_heads; ++g) {
      Block block{std::span(v).subspan(static_cast<std::size_t>(b * recipe.kv_heads + g) * block_size, block_size),
                  recipe.keys, recipe.dv, format_of(recipe.dtype)};
      switch (recipe.values) {
        case ValueKind::one_hot: {
          std::vector<std::int64_t> order(static_cast<std::size_t>(recipe.keys));
          std::iota(order.begin(), order.end(), std::int64_t{0});
          std::ranges::rotate(order, order.begin() + stream.below(recipe.keys));
          one_hot(block, order);
          break;
        }
        case ValueKind::low_weight_one_hot:
          if (recipe.queries > 0) {
            one_hot(block, by_score(recipe, c, b, g * (recipe.heads / recipe.kv_heads), q, k));
          } else {
            fill_all(block, [] { return 1.0; });
          }
          break;
        case ValueKind::zero_visible:
          for (std::int64_t j = 0; j < recipe.keys; ++j) {
            const bool zero = seen(recipe, c, b, g, j);
            for (std::int64_t column = 0; column < recipe.dv; ++column) {
              block.at(j, column) = zero ? 0.0 : seen_nowhere(stream);
            }
          }
          break;
        default:
          fill_plain(recipe.values, block, stream);
      }
    }
  }
  c[Slot::v] = stored(recipe.dtype, shape, v);
}

}  // namespace attest
