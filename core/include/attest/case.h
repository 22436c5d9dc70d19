// Case: one concrete problem put to a kernel, and its file (.safetensors, scalars in the metadata).
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "attest/kernel.h"
#include "attest/tensor.h"

namespace attest {

/// Something a user got wrong: one line that names the value, the rule and the remedy. Exit status 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class MaskConvention : std::int32_t { post_scale = ATTEST_MASK_POST_SCALE, pre_scale = ATTEST_MASK_PRE_SCALE };
enum class Causal : std::int32_t {
  none = ATTEST_CAUSAL_NONE,
  top_left = ATTEST_CAUSAL_TOP_LEFT,
  bottom_right = ATTEST_CAUSAL_BOTTOM_RIGHT
};
/// Which entry of the kernel the case is for.
enum class Operation : std::int32_t { attention, multihead };

/// "post-scale" "pre-scale"; "none" "top-left" "bottom-right"; "attention" "multihead".
[[nodiscard]] std::string_view name_of(MaskConvention) noexcept;
[[nodiscard]] std::string_view name_of(Causal) noexcept;
[[nodiscard]] std::string_view name_of(Operation) noexcept;
[[nodiscard]] std::optional<MaskConvention> mask_convention_named(std::string_view) noexcept;
[[nodiscard]] std::optional<Causal> causal_named(std::string_view) noexcept;
[[nodiscard]] std::optional<Operation> operation_named(std::string_view) noexcept;

/// The tensors a case may hold, under the names of kernel-interface.md. attention uses q, k, v and mask only.
enum class Slot { q, k, v, mask, w_q, w_k, w_v, b_q, b_k, b_v, w_o, b_o, bias_k, bias_v };
inline constexpr int slot_count = 14;
[[nodiscard]] std::string_view name_of(Slot) noexcept;

/// One concrete problem. Shapes as in kernel.h: attention q [batch, heads, M, dk], k [batch, kv_heads, N, dk],
/// v [batch, kv_heads, N, dv], mask [batch|1, heads|1, M, N]; multihead q [batch, M, c_q] and so on.
struct Case {
  Operation operation = Operation::attention;
  std::array<Tensor, slot_count> tensors;
  double scale = 1.0;  ///< multiplies q.k; finite, > 0; 1/sqrt(dk) is already in it
  MaskConvention mask_convention = MaskConvention::post_scale;
  Causal causal = Causal::none;
  std::int32_t heads = 1;  ///< of a multihead case; attention reads it off q
  /// Everything else that travels in the file's metadata: property, kernel, dtype, seed, k, arguments, expected verdict,
  /// and "non_finite": "yes" where a property placed NaN or Inf on purpose.
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
  /// Shape of the output: [batch, heads, M, dv], or [batch, M, d_o].
  [[nodiscard]] Shape out_shape() const;
};

/// Shapes, dtypes, divisibility, scale and mask entries as kernel-interface.md requires them, and no NaN or Inf in the
/// inputs unless metadata says "non_finite": "yes". Throws UsageError with one line naming the tensor and the rule.
void validate(const Case& c);

/// Reads a case file; strict (see safetensors.h). Throws UsageError naming the file. The result is valid.
[[nodiscard]] Case load_case(const std::filesystem::path& file);
/// Writes it whole or not at all (temporary file, fsync, rename). Throws UsageError when the place cannot be written.
void save_case(const Case& c, const std::filesystem::path& file);

/// The bytes of a case file / a request frame, and back. `source` names the origin in error lines.
[[nodiscard]] std::string encode_case(const Case& c);
[[nodiscard]] Case decode_case(std::string_view bytes, std::string_view source);

}  // namespace attest
