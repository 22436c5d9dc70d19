// What a wrong kernel may have taken chunks of keys for: other chunks, windows, nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/problem/sight.h"
#include "properties/diagnosis/other_sights.h"

namespace attest {

/// A row of a problem with chunks.
struct ChunkedRow {
  std::int64_t i = 0, rows = 0, keys = 0;
  std::int64_t chunk = 0;     ///< C, the keys of a chunk
  std::int64_t position = 0;  ///< p, as the alignment that was asked for has it
  bool from_last = false;     ///< which is "bottom-right"
};

/// A reading of chunks. Its words call the position of a row p, and the keys of a chunk C.
struct ChunkReading {
  std::string_view words;   ///< that follow "it computes as if"
  std::string_view remedy;  ///< what makes such a kernel right, as a sentence; empty: nothing that an adapter can do
  Sight (*shows)(const ChunkedRow& row);  ///< in the place of the row's chunk; may reach beyond the keys
  bool is_another_beside_causal = false;  ///< beside a causal form another reading is the same
  bool is_only_probed = false;            ///< of wrong answers another reading is the same, or there are none

  /// What row i sees then of `keys` keys, by its position; all that is asked beside chunks stays as it is.
  [[nodiscard]] Sight sight(const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys) const;
};

/// All that are wrong.
[[nodiscard]] std::span<const ChunkReading> chunk_readings();

/// Of a case of attention; none where it has no chunks, and where a mask cannot say what they would hide (an additive
/// one in a format without infinity). One that hides the same keys as the case itself may be among them.
[[nodiscard]] std::vector<MisreadSight> misread_chunks(const Case& c);

}  // namespace attest
