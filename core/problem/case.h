// Case: one concrete problem put to a kernel, and its file (.safetensors, scalars in the metadata).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/problem/problem.h"
#include "core/problem/provenance.h"
#include "core/support/errors.h"

namespace attest {

/// Whoever asks for a Problem alone (oracle, bound, sight) cannot know where it comes from.
struct Case : Problem {
  Provenance provenance;

  [[nodiscard]] bool operator==(const Case&) const = default;
};

/// The forward pass's problem, of one that asks for gradients.
[[nodiscard]] inline Case forward_of(Case c) {
  c[Slot::d_out] = c[Slot::d_lse] = Tensor();
  return c;
}

/// The generators' words for what was drawn, "scores:near-ties values:ones mask:none"; empty where it was not drawn.
[[nodiscard]] inline std::string_view kinds_of(const Case& c) {
  return c.provenance.kinds ? std::string_view(*c.provenance.kinds) : std::string_view();
}

/// Shapes, dtypes, divisibility, scale and mask entries as kernel-interface.md requires them; no NaN or Inf in q, k and
/// v unless its non_finite is "yes", and none in weights and biases; bool masks of 0 and 1; strides as memory.h reads
/// them. M = 0 and N = 0 are valid. Whether a kernel takes the dtype of the mask is the manifest's business. Beyond the
/// contract: an axis is at most 2^31 - 1 long, batch times heads at most 2^24, the output at most 2^32 elements. Throws
/// UsageError with one line naming the tensor and the rule.
void validate(const Case& c);

/// Reads a case file; strict (see safetensors.h). Throws UsageError naming the file. The result is valid. For tensors
/// that users capture: q, k and v of attention may lack leading axes (rank 2 or 3), those of multihead the batch (rank
/// 2), and mask either (rank 2 or 3): axes of 1 are put in front. The metadata must state attest, op, scale and, for
/// multihead, heads; mask_convention is else post-scale and causal none. A tensor under any other name is an error.
[[nodiscard]] Case load_case(const std::filesystem::path& file);
/// Writes it whole or not at all (temporary file, fsync, rename). Throws UsageError when the place cannot be written.
void save_case(const Case& c, const std::filesystem::path& file);

/// The bytes of a case file / a request frame, and back. `source` names the origin in error lines. scale is written as
/// the shortest decimal that reads back as the same double, so that decode_case(encode_case(c)) == c for a valid c
/// whose provenance is UTF-8 (other bytes become U+FFFD) and, for attention, whose heads is left at 1.
[[nodiscard]] std::string encode_case(const Case& c);
[[nodiscard]] Case decode_case(std::string_view bytes, std::string_view source);

}  // namespace attest
