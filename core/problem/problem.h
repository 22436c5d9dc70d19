// The mathematical problem of attention: its tensors and its arguments. It knows nothing of where it comes from.
#pragma once

#include <attest/kernel.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "core/support/words.h"
#include "core/value/tensor.h"

namespace attest {

enum class MaskConvention : std::int32_t { post_scale = ATTEST_MASK_POST_SCALE, pre_scale = ATTEST_MASK_PRE_SCALE };
enum class Causal : std::int32_t {
  none = ATTEST_CAUSAL_NONE,
  top_left = ATTEST_CAUSAL_TOP_LEFT,
  bottom_right = ATTEST_CAUSAL_BOTTOM_RIGHT
};
/// Which entry of the kernel the problem is for.
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

/// The tensors a problem may hold, under the names of kernel-interface.md. Those from q_lengths on are of variants of
/// attention (fields.h).
enum class Slot {
  q,
  k,
  v,
  mask,
  w_q,
  w_k,
  w_v,
  b_q,
  b_k,
  b_v,
  w_o,
  b_o,
  bias_k,
  bias_v,
  q_lengths,
  kv_lengths,
  q_starts,
  kv_starts,
  left_pad,
  page_table,
  page_table_v,
  cache_index,
  k_new,
  v_new,
  sink,
  keep,
  alibi_slopes,
  q_descale,
  k_descale,
  v_descale,
  d_out,
  d_lse
};
inline constexpr int slot_count = 32, original_slots = 14;  ///< so many, and so many before those of variants
template <>
struct Words<Slot> {
  static constexpr std::array<std::string_view, slot_count> names{
      "q",           "k",          "v",        "mask",      "w_q",      "w_k",          "w_v",
      "b_q",         "b_k",        "b_v",      "w_o",       "b_o",      "bias_k",       "bias_v",
      "q_lengths",   "kv_lengths", "q_starts", "kv_starts", "left_pad", "page_table",   "page_table_v",
      "cache_index", "k_new",      "v_new",    "sink",      "keep",     "alibi_slopes", "q_descale",
      "k_descale",   "v_descale",  "d_out",    "d_lse"};
};

/// Shapes as in kernel.h: attention q [batch, heads, M, dk], k [batch, kv_heads, N, dk], v [batch, kv_heads, N, dv],
/// mask [batch|1, heads|1, M, N]; multihead q [batch, M, c_q] and so on. Of a batch of sequences that are not all as
/// long q_lengths [batch] and kv_lengths [batch] say how many of M and N are each entry's own, the first ones, and
/// left_pad [batch] how many of these keys are padding all the same; of a packed one entry 0 is all there is, and
/// sequence s has the tokens from q_starts[s] to before q_starts[s + 1], its keys so by kv_starts. Rows and keys of no
/// sequence are padding (sequences.h). page_table [batch, columns] and cache_index [batch] say where k and v lie in a
/// cache, and change nothing of what they are (kv_cache.h). k_new and v_new are there where a kernel is called alone: a
/// problem has its new keys among the others, and says how many there are. sink [heads] is a score without a key, for
/// each head: e^sink joins the sum of the weights of each of its rows, as a key's of value 0 would. keep [batch|1,
/// heads|1, M, N] says which weights are dropped, where it is 0, once they are normalised. alibi_slopes [batch|1,
/// heads] takes slope |p - j| from the score of key j in a row whose position is p (sight.h). q_descale [batch|1,
/// heads|1, blocks|1], k_descale and v_descale [batch|1, kv_heads|1, blocks|1] multiply rows of q, keys and values,
/// which are in formats that hold their quotients by it (descale.h). d_out, in the shape of the output, is the gradient
/// of a loss by it, where a backward pass is asked for, and d_lse [batch, heads, M] beside it that by the log-sum-exp
/// as the definition has it; absent: 0.
struct Problem {
  Operation operation = Operation::attention;
  std::array<Tensor, slot_count> tensors;
  double scale = 1.0;  ///< multiplies q.k; finite, > 0; 1/sqrt(dk) is already in it
  MaskConvention mask_convention = MaskConvention::post_scale;
  Causal causal = Causal::none;
  std::int32_t heads = 1;  ///< of multihead; attention reads it off q
  /// A row whose position is p sees keys p - window_left to p + window_right, both inclusive; -1: without an end.
  std::int64_t window_left = -1, window_right = -1;
  /// C: a row whose position is p sees key j where floor(j / C) = floor(p / C); 0: keys are not in chunks.
  std::int64_t attention_chunk = 0;
  /// What the position of row i is, where a window, chunks or slopes ask: i, or i + N - M. As causal, where that is not
  /// none; none where nothing asks.
  Causal alignment = Causal::none;
  /// c: a scaled product t is c tanh(t/c) before a mask is added to it; 0: t itself.
  double softcap = 0;
  /// p: a weight that is kept is divided by 1 - p, which nothing else is. Above 0 without `keep`, the kernel draws what
  /// it keeps, by the seed, and nobody else knows it.
  double dropout_p = 0;
  std::int64_t dropout_seed = 0;
  /// So many rows, or keys, have a factor together; 0: all of a head.
  std::int64_t q_descale_block = 0, kv_descale_block = 0;
  /// Of a cache (kv_cache.h): so many pages there are in memory, or rows of a cache; 0: as many as are named.
  std::int64_t pool = 0;
  /// So many of each entry's keys, the last ones, come with the call, which writes them into the cache; 0: all are
  /// there.
  std::int64_t append = 0;

  [[nodiscard]] const Tensor& operator[](Slot slot) const { return tensors[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] Tensor& operator[](Slot slot) { return tensors[static_cast<std::size_t>(slot)]; }
  [[nodiscard]] const Tensor& q() const { return (*this)[Slot::q]; }
  [[nodiscard]] const Tensor& k() const { return (*this)[Slot::k]; }
  [[nodiscard]] const Tensor& v() const { return (*this)[Slot::v]; }
  [[nodiscard]] const Tensor& mask() const { return (*this)[Slot::mask]; }
  [[nodiscard]] DType dtype() const { return q().dtype(); }

  /// The C structures over this problem's memory; it must outlive them.
  [[nodiscard]] attest_problem problem() const;
  [[nodiscard]] attest_multihead_problem multihead_problem() const;
  /// Shape of the output: [batch, heads, M, dv], or [batch, M, d_o]. The problem is valid.
  [[nodiscard]] Shape out_shape() const;
  /// Equal operation, tensors bit by bit and scalars.
  [[nodiscard]] bool operator==(const Problem&) const = default;
};

/// What a backward pass returns: the gradients of a loss by q, k and v, and where the problem has them by an additive
/// mask and by sinks; each in its argument's shape, over whose axes of length 1 it is summed up.
enum class Gradient { q, k, v, mask, sink };
inline constexpr int gradient_count = 5;
template <>
struct Words<Gradient> {
  static constexpr std::array<std::string_view, gradient_count> names{"dq", "dk", "dv", "dmask", "dsink"};
};
inline constexpr std::array every_gradient{Gradient::q, Gradient::k, Gradient::v, Gradient::mask, Gradient::sink};
/// A choice of gradients, by Gradient.
using GradientChoice = std::array<bool, gradient_count>;
inline constexpr GradientChoice all_gradients{true, true, true, true, true};
/// Those that every problem has.
inline constexpr std::array gradients_by_inputs{Gradient::q, Gradient::k, Gradient::v};
[[nodiscard]] constexpr Slot slot_of(Gradient gradient) {
  constexpr std::array slots{Slot::q, Slot::k, Slot::v, Slot::mask, Slot::sink};
  return slots[static_cast<std::size_t>(gradient)];
}
/// Has the problem what the gradient is by? A mask of choices has none.
[[nodiscard]] inline bool has_argument_of(const Problem& c, Gradient gradient) {
  const Tensor& argument = c[slot_of(gradient)];
  return argument.present() && argument.dtype() != DType::boolean;
}
/// `output`: of those by q, k and v; the others have their arguments' own.
[[nodiscard]] inline DType dtype_of(const Problem& c, Gradient gradient, DType output) {
  return gradient == Gradient::mask || gradient == Gradient::sink ? c[slot_of(gradient)].dtype() : output;
}
/// Does the problem say what a loss's gradient by the output is? Then a backward pass is asked of it, beside the
/// forward pass of the same problem.
[[nodiscard]] inline bool asks_for_gradients(const Problem& c) {
  return c[Slot::d_out].present();
}

/// 1/sqrt(dk), the definition's scale, in double.
[[nodiscard]] double inverse_root(std::int64_t dk);
/// Whether a scale is 1/sqrt(dk), however it was computed in double: within a relative 2^-52 of it, which is what two
/// roundings can make of it (1 / sqrt(dk), sqrt(1 / dk)) and what bounds allow between a case's scale and a kernel's.
[[nodiscard]] bool is_inverse_root(double scale, std::int64_t dk);

}  // namespace attest
