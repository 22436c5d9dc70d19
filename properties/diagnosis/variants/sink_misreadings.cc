#include "properties/diagnosis/variants/sink_misreadings.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"

namespace attest {

std::vector<MisreadSinks> misread_sinks(const Case& c) {
  const Tensor& sinks = c[Slot::sink];
  if (!sinks.present()) return {};
  std::vector<MisreadSinks> found;
  Case none = c;
  drop_variant(none, sink_variant.name);
  found.push_back({"there were no sink", std::move(none)});
  // In f64, which holds what becomes of every other format.
  const auto add = [&](std::string words, const std::function<double(std::int64_t h)>& sink) {
    Case other = c;
    other[Slot::sink] = mapped(Tensor(DType::f64, sinks.shape()), [&](std::int64_t h, double) { return sink(h); });
    found.push_back({std::move(words), std::move(other)});
  };
  const auto times = [&](double factor) { return [&sinks, factor](std::int64_t h) { return factor * sinks[h]; }; };
  const std::int64_t heads = heads_of(c), group = heads / c.k().shape()[1];
  add("the sink were multiplied by the scale", times(c.scale));
  add("the sink were divided by the scale", times(1 / c.scale));
  add("2, not e, were raised to the sink", times(std::numbers::ln2));
  add("the sink were multiplied by log2(e), and e raised to it", times(std::numbers::log2e));
  add("the sink were 0", [](std::int64_t) { return 0.0; });
  if (heads > 1) add("every head had the sink of the first", [&](std::int64_t) { return sinks[0]; });
  if (group > 1) {
    add("a head had the sink at the place of its key-value head", [&](std::int64_t h) { return sinks[h / group]; });
    add("heads had the sinks of other heads of the groups in turn",
        [&](std::int64_t h) { return sinks[h % group * (heads / group) + h / group]; });
  }
  for (const int times_counted : {2, 3, 4, 8})
    add(fmt::format("the sink counted {} times", times_counted),
        [&](std::int64_t h) { return sinks[h] + std::log(static_cast<double>(times_counted)); });
  for (const std::int64_t tile : {16, 32, 64, 128}) {
    const std::int64_t tiles = (keys_of(c) + tile - 1) / tile;
    if (tiles > 1)
      add(fmt::format("the sink counted once in every tile of {} keys", tile),
          [&, tiles](std::int64_t h) { return sinks[h] + std::log(static_cast<double>(tiles)); });
  }
  return found;
}

}  // namespace attest
