#include "properties/catalogue/hypotheses.h"

#include <algorithm>

namespace attest {
namespace hypotheses {

// What a check arranges, so that no case can miss it.
constexpr Hypothesis hidden_key{"hidden-key", "key s is hidden from row i"};
constexpr Hypothesis hidden_from_all{"hidden-from-all", "key s is hidden from every row"};
constexpr Hypothesis hidden_from_others{"hidden-from-others", "token s is hidden from every other row"};
constexpr Hypothesis hidden_in_every_head{"hidden-in-every-head", "the key is hidden in every head"};
constexpr Hypothesis another_row{"another-row", "row i is not that of token s"};
constexpr Hypothesis hidden_tail{"hidden-tail", "the keys appended are hidden"};
constexpr Hypothesis equal_keys{"equal-keys", "all keys are equal"};
constexpr Hypothesis constant_values{"constant-values", "all values are equal"};
constexpr Hypothesis one_translation{"one-translation", "one c is added to all keys"};
constexpr Hypothesis one_shift{"one-shift", "one constant is added to the whole row of B"};
constexpr Hypothesis moving_mask{"moving-mask", "the mask is permuted as the rows and keys are"};
constexpr Hypothesis queries_blind_to_the_step{"queries-blind-to-the-step", "W_q^T t = 0"};
constexpr Hypothesis moving_positions{"moving-positions", "positions are permuted as the tokens are"};

namespace {
constexpr const Hypothesis* all[] = {&a_query,
                                     &a_query_and_a_key,
                                     &added_after_scale,
                                     &additive_mask,
                                     &alibi,
                                     &another_row,
                                     &at_most_64_columns,
                                     &bias_kv,
                                     &biases,
                                     &boolean_mask,
                                     &bottom_right_form,
                                     &bottom_right_positions,
                                     &bottom_right_sequence,
                                     &cache_rows,
                                     &causal_form,
                                     &causal_mask,
                                     &chunk,
                                     &chunk_and_more,
                                     &chunk_behind_a_block,
                                     &chunk_of_one_key,
                                     &chunks_before_rows,
                                     &constant_values,
                                     &crossed_page,
                                     &descale,
                                     &descale_blocks,
                                     &descale_of_both,
                                     &descale_of_scores,
                                     &descale_of_values,
                                     &dropout,
                                     &equal_keys,
                                     &equal_lengths,
                                     &equal_widths,
                                     &exact_inverse_root,
                                     &exact_projections,
                                     &first_key_visible,
                                     &gradients,
                                     &gradients_by_lse,
                                     &hidden_from_all,
                                     &hidden_from_others,
                                     &hidden_in_every_head,
                                     &hidden_key,
                                     &hidden_tail,
                                     &identity_output,
                                     &infinite_dtype,
                                     &infinity_for_a_mask,
                                     &infinity_to_hide,
                                     &inverse_root_scale,
                                     &key_lengths,
                                     &keys_before_windows,
                                     &keys_behind_chunks,
                                     &keys_behind_windows,
                                     &left_pad,
                                     &lengths_differ,
                                     &mask,
                                     &moving_mask,
                                     &moving_positions,
                                     &new_keys,
                                     &no_bias_kv,
                                     &no_biases,
                                     &no_causal_form,
                                     &no_chunk,
                                     &no_output_bias,
                                     &no_window,
                                     &notebook,
                                     &odd_head_dims,
                                     &one_boolean_mask,
                                     &one_head,
                                     &one_key,
                                     &one_projection,
                                     &one_query,
                                     &one_shift,
                                     &one_translation,
                                     &only_hides,
                                     &other_strides,
                                     &output_projection,
                                     &own_dropout,
                                     &packed,
                                     &padding,
                                     &page_tail,
                                     &pages,
                                     &plain_top_left,
                                     &power_of_four,
                                     &queries_blind_to_the_step,
                                     &row_behind_a_block,
                                     &row_outside_the_keys,
                                     &row_without_a_chunk,
                                     &self_attention,
                                     &sequences,
                                     &shared_key_heads,
                                     &sink,
                                     &small_whole_numbers,
                                     &softcap,
                                     &table_tail,
                                     &top_left_or_square,
                                     &torch_case,
                                     &two_batch_entries,
                                     &two_head_columns,
                                     &two_heads,
                                     &two_keys,
                                     &two_queries,
                                     &two_sequences,
                                     &two_token_columns,
                                     &unmasked,
                                     &unscaled,
                                     &value_bias,
                                     &window,
                                     &window_and_more,
                                     &window_of_one_key};
}  // namespace

}  // namespace hypotheses

std::span<const Hypothesis* const> all_hypotheses() {
  return hypotheses::all;
}

const Hypothesis* hypothesis_named(std::string_view name) {
  const auto all = all_hypotheses();
  const auto found = std::ranges::find(all, name, &Hypothesis::name);
  return found == all.end() ? nullptr : *found;
}

}  // namespace attest
