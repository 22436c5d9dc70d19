// How a planted kernel computes when nothing is wrong with it, and which one mistake is made on top.
#pragma once

#include <cstdint>

#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel_under_test.h"

namespace attest {

/// An honest way to compute attention. Sums are kept in f32, for f64 in f64; out is rounded once.
struct Make {
  std::int64_t block = 16;          ///< keys per block of the running maximum; 0: the whole row at once
  std::int64_t splits = 1;          ///< parts of the row, each by itself, merged through their log-sum-exps
  bool backwards = false;           ///< the blocks from the last to the first, and the keys in them
  bool tiles = false;               ///< each block's products with V are summed by themselves first
  bool normalise_first = false;     ///< weights are divided by their sum before they multiply V; block is 0
  bool folded_exp2 = false;         ///< exp2(fma(x, c, -fl(m c))), c = scale log2(e)
  bool reciprocal = false;          ///< times 1/sum instead of a division
  bool truncates = false;           ///< the sums of q.k and of weights times values round toward zero
  double lazy_nats = 0;             ///< the reference follows the maximum when it is this far behind; 0: always
  bool narrow_weights = false;      ///< rounded to the dtype before they multiply V
  bool narrow_denominator = false;  ///< the rounded weights are summed too
  bool narrow_scores = false;       ///< written to memory in the dtype, after scale and mask
  bool prescaled_q = false;         ///< q times scale, rounded to the dtype, before the product
  bool bf16_weights = false;        ///< rounded to bf16 whatever the dtype
};

/// The mistakes, each named after what it does; Slip::none is a correct kernel. The catalogue says more of each.
enum class Slip : std::uint8_t {
  none,
  // rows that see no key
  masked_row_is_nan,
  masked_row_is_mean,
  masked_row_is_stale,
  masked_row_spoils_head,
  float_mask_hides_what_is_not_zero,
  sentinel_hides,
  mask_over_scale,
  // running maximum, merges, empty parts
  empty_splits_nan,
  empty_first_block_nan,
  normalises_every_block,
  sum_not_rescaled,
  output_not_rescaled,
  small_growth_not_rescaled,
  merge_ignores_sums,
  merge_takes_base_two,
  split_drops_remainder,
  reference_stays_at_first,
  // memory that means nothing
  dead_value_in_tail,
  dead_key_plus_infinity,
  page_past_the_end,
  stale_weight,
  // finite minus infinities
  hidden_is_minus_1e4,
  hidden_is_minus_1e9,
  hidden_adds_minus_1e4,
  hidden_is_lowest_f16,
  // overflow and precision
  product_in_f16,
  narrow_product_of_odd_head_dim,
  no_maximum,
  weights_saturate,
  narrow_sum,
  narrow_output_sum,
  coarse_exp,
  exp_clamped,
  undeclared_narrow_q,
  undeclared_narrow_scores,
  undeclared_narrow_weights,
  output_truncated,
  lse_base_two,
  lse_without_maximum,
  bf16_scale,
  // causal forms
  top_left_for_bottom_right,
  bottom_right_for_top_left,
  bottom_right_one_too_many,
  causal_by_blocks,
  causal_dropped_for_one_query,
  causal_dropped_with_mask,
  future_key_leaks,
  first_key_not_bounded,
  // masks and padding
  mask_of_first_batch,
  mask_of_first_head,
  mask_misses_last_key,
  padding_rounded_up,
  mask_of_kv_head,
  bool_mask_inverted,
  bool_mask_added,
  mask_transposed_when_square,
  mask_axes_exchanged,
  mask_scaled,
  mask_not_scaled,
  bias_sign,
  // scale
  scale_ignored,
  scale_of_all_heads,
  // heads
  interleaved_groups,
  third_head_unwritten,
  third_batch_reads_second,
  // tails
  last_key_of_a_residue,
  head_dim_in_eights,
  last_value_column,
  last_query_of_a_residue,
  phantom_key,
  key_position_zero,
  blocks_exchanged,
  // indices and layouts
  index_wraps,
  // from some number of keys on
  long_rows_half_again,
  last_key_of_long_rows,
  second_tile_skipped,
  partial_tile_of_long_rows,
  strides_ignored,
  value_strides_of_keys,
  value_width_of_keys,
  keys_transposed_when_square,
  // what differs from run to run
  splits_by_queries,
  splits_by_length,
  order_by_call,
  // nothing to attend to, nothing written
  empty_keys_unwritten,
  lse_unwritten,
  // windows, dropout, positions
  window_of_48,
  dropout_left_on,
  constant_shift,
  // all of it
  all_zeros,
  uniform_weights,
  mean_of_values
};

/// What the make may honestly declare for a dtype.
[[nodiscard]] Arithmetic arithmetic_of(const Make& make, DType dtype);

/// Runs the make with the slip on a problem in f64, f32, f16 or bf16, whatever the strides; ATTEST_UNSUPPORTED for
/// another dtype. `call` counts the calls before, for the one slip that differs from call to call.
[[nodiscard]] int run_planted(const Make& make, Slip slip, const attest_problem& problem, attest_result& result,
                              std::int64_t call, std::string& message);

}  // namespace attest
