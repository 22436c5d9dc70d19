#include "properties/generators/marked_keys.h"

#include <algorithm>

namespace attest {

void mark_keys(Recipe& r, Stream& stream) {
  constexpr std::int64_t tile = 256, many = 600;
  const std::int64_t last = r.keys - 1;
  const std::int64_t marked[] = {last, stream.between(std::min(tile, last), std::min(2 * tile - 1, last)),
                                 stream.between(std::min(many, last), last), stream.below(r.keys)};
  for (const std::int64_t key : marked) {
    const std::int64_t entry = stream.below(r.batch), head = stream.below(r.kv_heads), column = r.override_count;
    const std::int64_t element = ((entry * r.kv_heads + head) * r.keys + key) * r.dv + column;
    r.overrides[static_cast<std::size_t>(r.override_count++)] = {
        .slot = Slot::v, .index = static_cast<std::uint32_t>(element), .value = stream.either(r.keys / 4.0)};
  }
}

}  // namespace attest
