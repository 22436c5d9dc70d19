// Sinks: scores of the sizes that the keys of a head have, far above them, far below them, and none.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/problem/sight.h"
#include "properties/generators/fill.h"
#include "properties/generators/recipe.h"
#include "properties/generators/stream.h"

namespace attest {
namespace {

/// The score of some query and key of the head, without a mask; 0 where there is none, or no number.
double some_score(const Case& c, std::int64_t h, Stream& stream) {
  const std::int64_t batch = batch_of(c), queries = queries_of(c), keys = keys_of(c);
  if (batch * queries * keys == 0) return 0;
  const std::int64_t b = stream.below(batch), i = stream.below(queries), j = stream.below(keys);
  double product = 0;
  for (std::int64_t e = 0; e < c.q().shape()[3]; ++e)
    product += c.q().at(b, h, i, e) * c.k().at(b, kv_head_of(c, h), j, e);
  return std::isfinite(product) ? c.scale * product : 0;
}

double drawn_sink(const Case& c, std::int64_t h, Stream& stream) {
  const double score = some_score(c, h, stream);
  switch (stream.below(16)) {
    case 0:
      return -std::numeric_limits<double>::infinity();
    case 1:
      return -static_cast<double>(std::numeric_limits<float>::max());
    case 2:
      return 0;
    case 3:
    case 4:
      return score + stream.uniform(10, 40);
    case 5:
      return score + stream.uniform(40, 300);
    case 6:
      return score - stream.uniform(10, 120);
    case 7:
    case 8:
    case 9:
      return 2 * stream.gaussian();
    default:
      return score + 2 * stream.gaussian();
  }
}

}  // namespace

void fill_sinks(const Recipe& r, Case& c) {
  if (r.operation != Operation::attention || !r.sinks) return;
  Stream stream(r.seed ^ 0x73696e6bU);
  const std::int64_t heads = heads_of(c);
  constexpr double largest = std::numeric_limits<float>::max();
  Tensor sinks(DType::f32, {heads});
  for (std::int64_t h = 0; h < heads; ++h) {
    const double sink = drawn_sink(c, h, stream);
    sinks.set(h, std::isinf(sink) ? sink : std::clamp(sink, -largest, largest));
  }
  c[Slot::sink] = std::move(sinks);
}

}  // namespace attest
