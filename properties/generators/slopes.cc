// Slopes: those of the paper of ALiBi (Press, Smith and Lewis 2022) and of models that have them, and others that no
// formula gives: of either sign, none, equal ones, so small that nothing changes, so large that one key is all.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/problem/sight.h"
#include "properties/generators/fill.h"
#include "properties/generators/production.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

enum class SlopeKind : std::uint8_t {
  geometric,   ///< the paper's, of as many heads
  of_more,     ///< some of the paper's of more heads, as one device of several has them
  unordered,   ///< the paper's in another order
  any_number,  ///< no powers of two
  negative,    ///< far keys have the higher scores
  mixed,       ///< of either sign, some of them none
  equal,       ///< the same in every head
  none,        ///< 0 in every head
  tiny,        ///< from the smallest of the format to what moves no score
  large,       ///< from where a few keys have weights to where one alone has
  count
};

/// A third of them the paper's, as most that reach kernels are.
SlopeKind some_kind(Stream& stream) {
  if (stream.one_in(3)) return SlopeKind::geometric;
  return static_cast<SlopeKind>(stream.below(static_cast<std::int64_t>(SlopeKind::count)));
}

/// The slope of head h of so many: 2^(-8 (h + 1) / heads) of a power of two, and of another number those of the power
/// of two below it, and behind them every other one of twice as many heads.
double paper_slope(std::int64_t h, std::int64_t heads) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  const double place = h < below ? static_cast<double>(h + 1) / static_cast<double>(below)
                                 : static_cast<double>(2 * (h - below) + 1) / static_cast<double>(2 * below);
  return std::exp2(-8 * place);
}

std::vector<double> paper_slopes(std::int64_t heads, std::int64_t first, std::int64_t of) {
  std::vector<double> slopes;
  for (std::int64_t h = 0; h < heads; ++h) slopes.push_back(paper_slope((first + h) % of, of));
  return slopes;
}

/// Those of a device that has some of the heads.
std::vector<double> part_of(std::int64_t heads, std::int64_t of, Stream& stream) {
  return paper_slopes(heads, of > heads ? stream.below(of / heads) * heads : 0, std::max(of, heads));
}

double drawn_slope(SlopeKind kind, Stream& stream) {
  switch (kind) {
    case SlopeKind::negative:
      return -std::exp2(stream.uniform(-8, 1));
    case SlopeKind::mixed:
      return stream.one_in(3) ? 0.0 : stream.either(std::exp2(stream.uniform(-8, 2)));
    case SlopeKind::tiny: {
      const double least = stream.one_in(4) ? -149 : -60;
      return stream.either(std::exp2(stream.uniform(least, -12)));
    }
    case SlopeKind::large: {
      const double most = stream.one_in(4) ? 60 : 10;
      return std::exp2(stream.uniform(2, most));
    }
    default:
      return std::exp2(stream.uniform(-8, 1));
  }
}

std::vector<double> drawn_slopes(SlopeKind kind, std::int64_t heads, Stream& stream) {
  std::vector<double> slopes = paper_slopes(heads, 0, heads);
  switch (kind) {
    case SlopeKind::geometric:
      return slopes;
    case SlopeKind::of_more:
      return part_of(heads, heads * stream.between(2, 8), stream);
    case SlopeKind::unordered:
      for (std::size_t h = slopes.size(); h > 1; --h)
        std::swap(slopes[h - 1], slopes[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(h)))]);
      return slopes;
    case SlopeKind::equal:
      slopes.assign(slopes.size(), drawn_slope(SlopeKind::any_number, stream));
      return slopes;
    case SlopeKind::none:
      slopes.assign(slopes.size(), stream.one_in(2) ? 0.0 : -0.0);
      return slopes;
    default:
      for (double& slope : slopes) slope = drawn_slope(kind, stream);
      return slopes;
  }
}

}  // namespace

void give_slopes(Recipe& r, Stream& stream) {
  r.slopes = true;
  // Where there is a window it is said already.
  if (double& counted = argument_in(r.arguments, &Problem::alignment); counted == static_cast<double>(Causal::none))
    counted = static_cast<double>(stream.one_in(2) ? Causal::top_left : Causal::bottom_right);
}

void fill_slopes(const Recipe& r, Case& c) {
  if (r.operation != Operation::attention || !r.slopes) return;
  Stream stream(r.seed ^ 0x736c6f7065U);
  const std::int64_t batch = batch_of(c), heads = heads_of(c);
  const std::int64_t rows = batch > 1 && stream.one_in(2) ? batch : 1;
  Tensor slopes(DType::f32, {rows, heads});
  for (std::int64_t b = 0; b < rows; ++b) {
    const bool of_a_model = r.large && stream.one_in(2);
    const std::vector<double> row = of_a_model ? part_of(heads, heads_of_sloped_model(r.dk, stream), stream)
                                               : drawn_slopes(some_kind(stream), heads, stream);
    for (std::int64_t h = 0; h < heads; ++h) slopes.set(b * heads + h, row[static_cast<std::size_t>(h)]);
  }
  c[Slot::alibi_slopes] = std::move(slopes);
}

}  // namespace attest
