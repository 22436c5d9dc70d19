// Case: one concrete problem put to a kernel, and its file (.safetensors, scalars in the metadata).
#pragma once

#include <attest/kernel.h>

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "core/support/errors.h"
#include "core/support/words.h"
#include "core/value/tensor.h"

namespace attest {

enum class MaskConvention : std::int32_t { post_scale = ATTEST_MASK_POST_SCALE, pre_scale = ATTEST_MASK_PRE_SCALE };
enum class Causal : std::int32_t {
  none = ATTEST_CAUSAL_NONE,
  top_left = ATTEST_CAUSAL_TOP_LEFT,
  bottom_right = ATTEST_CAUSAL_BOTTOM_RIGHT
};
/// Which entry of the kernel the case is for.
enum class Operation : std::int32_t { attention, multihead };

template <>
struct Words<MaskConvention> {
  static constexpr std::array<std::string_view, 2> names{"post-scale", "pre-scale"};
};
template <>
struct Words<Causal> {
  static constexpr std::array<std::string_view, 3> names{"none", "top-left", "bottom-right"};
};
template <>
struct Words<Operation> {
  static constexpr std::array<std::string_view, 2> names{"attention", "multihead"};
};

/// The tensors a case may hold, under the names of kernel-interface.md. attention uses q, k, v and mask only.
enum class Slot { q, k, v, mask, w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o, bias_k, bias_v };
inline constexpr int slot_count = 14;
template <>
struct Words<Slot> {
  static constexpr std::array<std::string_view, slot_count> names{
      "q", "k", "v", "mask", "w_q", "w_k", "w_v", "b_q", "b_k", "b_v", "w_o", "b_o", "bias_k", "bias_v"};
};

/// One concrete problem. Shapes as in kernel.h: attention q [batch, heads, M, dk], k [batch, kv_heads, N, dk],
/// v [batch, kv_heads, N, dv], mask [batch|1, heads|1, M, N]; multihead q [batch, M, c_q] and so on.
struct Case {
  Operation operation = Operation::attention;
  std::array<Tensor, slot_count> tensors;
  double scale = 1.0;  ///< multiplies q.k; finite, > 0; 1/sqrt(dk) is already in it
  MaskConvention mask_convention = MaskConvention::post_scale;
  Causal causal = Causal::none;
  std::int32_t heads = 1;  ///< of a multihead case; attention reads it off q
  /// Everything else that travels in the file's metadata: property, kernel, dtype, seed, k, arguments, expected
  /// verdict, and "non_finite": "yes" where a property placed NaN or Inf on purpose. Never the scalars above, under the
  /// names the file gives them: attest, op, scale, mask_convention, causal and, for multihead, heads.
  std::map<std::string, std::string> metadata;

  [[nodiscard]] const Tensor& operator[](Slot slot) const { return tensors[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] Tensor& operator[](Slot slot) { return tensors[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const Tensor& q() const { return (*this)[Slot::q]; }
  [[nodiscard]] const Tensor& k() const { return (*this)[Slot::k]; }
  [[nodiscard]] const Tensor& v() const { return (*this)[Slot::v]; }
  [[nodiscard]] const Tensor& mask() const { return (*this)[Slot::mask]; }
  [[nodiscard]] DType dtype() const { return q().dtype(); }

  /// The C structures over this case's memory; the case must outlive them.
  [[nodiscard]] attest_problem problem() const;
  [[nodiscard]] attest_multihead_problem multihead_problem() const;
  /// Shape of the output: [batch, heads, M, dv], or [batch, M, d_o]. The case is valid.
  [[nodiscard]] Shape out_shape() const;
  /// Equal operation, tensors bit by bit, scalars and metadata.
  [[nodiscard]] bool operator==(const Case&) const = default;
};

/// Shapes, dtypes, divisibility, scale and mask entries as kernel-interface.md requires them; no NaN or Inf in q, k and
/// v unless metadata says "non_finite": "yes", and none in weights and biases; bool masks of 0 and 1; metadata
/// "strides" as memory.h reads it. M = 0 and N = 0 are valid. Whether a kernel takes the dtype of the mask is the
/// manifest's business. Beyond the contract: an axis is at most 2^31 - 1 long, batch times heads at most 2^24, the
/// output at most 2^32 elements. Throws UsageError with one line naming the tensor and the rule.
void validate(const Case& c);

/// 1/sqrt(dk), the definition's scale, in double.
[[nodiscard]] double inverse_root(std::int64_t dk);
/// Whether a scale is 1/sqrt(dk), however it was computed in double: within a relative 2^-52 of it, which is what two
/// roundings can make of it (1 / sqrt(dk), sqrt(1 / dk)) and what bounds allow between a case's scale and a kernel's.
[[nodiscard]] bool is_inverse_root(double scale, std::int64_t dk);

/// Reads a case file; strict (see safetensors.h). Throws UsageError naming the file. The result is valid. For tensors
/// that users capture: q, k and v of attention may lack leading axes (rank 2 or 3), those of multihead the batch (rank
/// 2), and mask either (rank 2 or 3): axes of 1 are put in front. The metadata must state attest, op, scale and, for
/// multihead, heads; mask_convention is else post-scale and causal none. A tensor under any other name is an error.
[[nodiscard]] Case load_case(const std::filesystem::path& file);
/// Writes it whole or not at all (temporary file, fsync, rename). Throws UsageError when the place cannot be written.
void save_case(const Case& c, const std::filesystem::path& file);

/// The bytes of a case file / a request frame, and back. `source` names the origin in error lines. scale is written as
/// the shortest decimal that reads back as the same double, so that decode_case(encode_case(c)) == c for a valid c
/// whose metadata is UTF-8 (other bytes become U+FFFD) and, for attention, whose heads is left at 1.
[[nodiscard]] std::string encode_case(const Case& c);
[[nodiscard]] Case decode_case(std::string_view bytes, std::string_view source);

}  // namespace attest
