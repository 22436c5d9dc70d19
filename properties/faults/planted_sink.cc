#include "properties/faults/planted_sink.h"

#include <limits>
#include <numbers>

#include "core/problem/score.h"
#include "core/value/tensor.h"
#include "properties/faults/planted_softcap.h"

namespace attest {

double sink_of(const attest_problem& p, Slip slip, std::int64_t h) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  const auto is = [&](std::string_view name) { return slip == Slip::named(name); };
  if ((p.variants & ATTEST_SINK) == 0 || is("sink-ignored")) return none;
  // Taken by the kernel for single queries alone.
  if (is("sink-of-single-queries") && p.q.shape[2] > 1) return none;
  if (is("sink-dropped-beside-a-mask") && p.mask.data != nullptr) return none;
  const std::int64_t group = p.q.shape[1] / p.k.shape[1];
  const std::int64_t head = is("sink-of-key-value-head") ? h / group : h;
  const double sink = load_element(p.sink.data, static_cast<DType>(p.sink.dtype), head * p.sink.stride[0]);
  if (sink == none) return none;
  if (is("sink-scaled")) return sink * p.scale;
  if (is("softcap-caps-the-sink")) return capped(sink, softcap_of(p, slip));
  if (is("sink-in-bf16")) return round_to(DType::bf16, sink);
  if (is("sink-exponent-in-base-two")) return sink * std::numbers::ln2;
  return sink;
}

}  // namespace attest
