// Hypotheses: what theorems ask of a case, each under the name by which it can be taken away.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// Something that a theorem asks of a case.
struct Hypothesis {
  std::string_view name;   ///< what a user types: "unmasked"
  std::string_view words;  ///< what it asks: "no mask and no causal form"
  /// Empty, or what the case misses ("has 1 keys; the theorem needs at least 2"). Null: no case can miss it, as the
  /// check of the property arranges it itself (a hidden key).
  std::string (*misses)(const Case& c) = nullptr;
};

/// What becomes of a theorem without one of its hypotheses.
enum class Need {
  needed,   ///< it is false then: there is a witness
  spare,    ///< it holds all the same, though it is stated with the hypothesis
  defining  ///< there is nothing to say then: what it speaks of is missing, or its sides cannot be compared
};

/// A hypothesis as one property states it.
struct Stated {
  const Hypothesis* hypothesis;
  Need need;
  std::string_view why;  ///< why it is needed, is not, or is no matter of truth
  /// What the theorem says of a case that misses the hypothesis, where Property::check would arrange it again or reads
  /// its sides off the case. Null: the check.
  Verdict (*conclusion)(Kernel& kernel, const Case& c) = nullptr;
};

[[nodiscard]] constexpr Stated needed(const Hypothesis& hypothesis, std::string_view why,
                                      Verdict (*conclusion)(Kernel&, const Case&) = nullptr) {
  return {&hypothesis, Need::needed, why, conclusion};
}
[[nodiscard]] constexpr Stated spare(const Hypothesis& hypothesis, std::string_view why) {
  return {&hypothesis, Need::spare, why};
}
[[nodiscard]] constexpr Stated defining(const Hypothesis& hypothesis, std::string_view why) {
  return {&hypothesis, Need::defining, why};
}

/// One list after another.
template <std::size_t... sizes>
[[nodiscard]] constexpr auto joined(const std::array<Stated, sizes>&... lists) {
  std::array<Stated, (sizes + ...)> all{};
  std::size_t at = 0;
  const auto append = [&](const auto& list) {
    for (const Stated& stated : list) all[at++] = stated;
  };
  (append(lists), ...);
  return all;
}

/// Every hypothesis, in alphabetical order of the names.
[[nodiscard]] std::span<const Hypothesis* const> all_hypotheses();
/// Null where there is none of that name.
[[nodiscard]] const Hypothesis* hypothesis_named(std::string_view name);

/// The most tokens of hypotheses::small_whole_numbers: at so many positions they are exact in bfloat16.
inline constexpr std::int32_t most_whole_tokens = 32;

namespace hypotheses {

// Masks and causal forms.
extern const Hypothesis unmasked;             ///< no mask and no causal form
extern const Hypothesis no_causal_form;       ///< no causal form; a mask may be there
extern const Hypothesis mask;                 ///< a mask
extern const Hypothesis boolean_mask;         ///< a boolean mask
extern const Hypothesis additive_mask;        ///< an additive mask
extern const Hypothesis only_hides;           ///< mask entries of 0 and -inf only
extern const Hypothesis one_boolean_mask;     ///< no mask, or one boolean matrix for all
extern const Hypothesis causal_mask;          ///< nothing after the diagonal is visible, by mask or causal form
extern const Hypothesis causal_form;          ///< a causal form
extern const Hypothesis top_left_or_square;   ///< no bottom-right causal form where M and N differ
extern const Hypothesis plain_top_left;       ///< the top-left form, M = N and no other mask
extern const Hypothesis first_key_visible;    ///< the first row sees the first key
extern const Hypothesis lengths_differ;       ///< M and N differ
extern const Hypothesis infinity_to_hide;     ///< no additive mask in a dtype without infinity
extern const Hypothesis infinite_dtype;       ///< a dtype with an infinity
extern const Hypothesis infinity_for_a_mask;  ///< no boolean mask to be made additive in a dtype without infinity
// Windows.
extern const Hypothesis window;                ///< a window
extern const Hypothesis window_and_more;       ///< a window beside a mask or a causal form
extern const Hypothesis keys_before_windows;   ///< bottom-right, and the first key lies before every row's window
extern const Hypothesis keys_behind_windows;   ///< top-left, and the last key lies behind every row's window
extern const Hypothesis row_outside_the_keys;  ///< a row whose window holds no key
extern const Hypothesis row_behind_a_block;    ///< a row that sees no key below 16, and one from there on
extern const Hypothesis window_of_one_key;     ///< each row sees its own key: both ends 0 (or causal), M = N, no mask
extern const Hypothesis no_window;             ///< no window
// Chunks.
extern const Hypothesis chunk;                 ///< chunks of keys
extern const Hypothesis chunk_and_more;        ///< chunks beside a mask, a causal form or a window
extern const Hypothesis chunks_before_rows;    ///< bottom-right, and the first chunk lies before every row's own
extern const Hypothesis keys_behind_chunks;    ///< top-left, and the last key lies behind every row's chunk
extern const Hypothesis row_without_a_chunk;   ///< a row whose chunk holds no key
extern const Hypothesis chunk_behind_a_block;  ///< a row whose chunk begins at key 16 or later
extern const Hypothesis chunk_of_one_key;      ///< each row sees its own key: C = 1, M = N, no mask
extern const Hypothesis no_chunk;              ///< no chunks
// Sinks.
extern const Hypothesis sink;               ///< a sink
extern const Hypothesis added_after_scale;  ///< no additive mask that is scaled with the products
// Caps.
extern const Hypothesis softcap;  ///< a cap of scores
// Dropout.
extern const Hypothesis dropout;      ///< a mask of dropped weights, which the problem gives
extern const Hypothesis own_dropout;  ///< a mask of dropped weights, which the kernel draws
// Slopes.
extern const Hypothesis alibi;                   ///< slopes
extern const Hypothesis descale;                 ///< factors of q, k or v
extern const Hypothesis descale_of_scores;       ///< of q or of k
extern const Hypothesis descale_of_both;         ///< of q and of k
extern const Hypothesis descale_of_values;       ///< of v
extern const Hypothesis descale_blocks;          ///< of blocks of rows, or of keys
extern const Hypothesis bottom_right_positions;  ///< positions that count from the last key, by a causal form or not
// Sequences.
extern const Hypothesis sequences;              ///< lengths, or packed sequences
extern const Hypothesis packed;                 ///< packed sequences
extern const Hypothesis two_sequences;          ///< at least two of them
extern const Hypothesis padding;                ///< rows or keys of no sequence
extern const Hypothesis bottom_right_sequence;  ///< a row counted from the last key of a sequence that is not square
extern const Hypothesis pages;                  ///< keys and values in pages
extern const Hypothesis page_tail;              ///< a page with a slot that no key is in
extern const Hypothesis table_tail;             ///< a table with an entry that nobody reads
extern const Hypothesis cache_rows;             ///< rows of a cache that an index names
extern const Hypothesis new_keys;               ///< keys that the call appends
extern const Hypothesis crossed_page;           ///< keys that the call appends to two pages of an entry
extern const Hypothesis left_pad;               ///< padding before a sequence's keys
extern const Hypothesis key_lengths;            ///< lengths of keys
// The backward pass.
extern const Hypothesis gradients;          ///< gradients by the output
extern const Hypothesis gradients_by_lse;   ///< and by the log-sum-exp
extern const Hypothesis bottom_right_form;  ///< the causal form that counts from the last key
extern const Hypothesis equal_lengths;      ///< M = N
extern const Hypothesis one_query;          ///< M = 1
// Sizes.
extern const Hypothesis two_queries;
extern const Hypothesis two_keys;
extern const Hypothesis one_key;
extern const Hypothesis a_query;
extern const Hypothesis a_query_and_a_key;
extern const Hypothesis two_batch_entries;
extern const Hypothesis two_heads;
extern const Hypothesis shared_key_heads;    ///< fewer key-value heads than heads
extern const Hypothesis two_head_columns;    ///< dk >= 2
extern const Hypothesis at_most_64_columns;  ///< dk <= 64
extern const Hypothesis two_token_columns;   ///< c_q >= 2
extern const Hypothesis equal_widths;        ///< dk = dv
extern const Hypothesis odd_head_dims;       ///< dk and dv differ, and neither is a multiple of 8
extern const Hypothesis power_of_four;       ///< dk a power of 4, so that sqrt(dk) is a power of 2
extern const Hypothesis other_strides;       ///< strides other than row-major
// Scales.
extern const Hypothesis inverse_root_scale;  ///< the scale 1/sqrt(dk)
extern const Hypothesis exact_inverse_root;  ///< the same to the bit
extern const Hypothesis unscaled;            ///< the scale 1
// Weights and tokens.
extern const Hypothesis one_head;
extern const Hypothesis identity_output;  ///< no W_o, or W_o = I
extern const Hypothesis no_output_bias;   ///< no b_o, or b_o = 0
extern const Hypothesis no_bias_kv;       ///< no add_bias_kv
extern const Hypothesis bias_kv;          ///< add_bias_kv
extern const Hypothesis no_biases;        ///< none of b_q, b_k and b_v
extern const Hypothesis biases;           ///< all of b_q, b_k and b_v
extern const Hypothesis value_bias;       ///< b_v
extern const Hypothesis output_projection;
extern const Hypothesis self_attention;  ///< q, k and v are one X
extern const Hypothesis one_projection;  ///< W_q = W_k = W_v
extern const Hypothesis exact_projections;
extern const Hypothesis small_whole_numbers;  ///< few tokens, and they and the first row of W_v whole numbers
extern const Hypothesis torch_case;           ///< the shapes and biases of torch.nn.MultiheadAttention
extern const Hypothesis notebook;             ///< the notebook's own X, W = I and scale 1

// What a check arranges.
extern const Hypothesis hidden_key;            ///< key s is hidden from row i
extern const Hypothesis hidden_from_all;       ///< key s is hidden from every row
extern const Hypothesis hidden_from_others;    ///< token s is hidden from every other row
extern const Hypothesis hidden_in_every_head;  ///< the key is hidden in every head
extern const Hypothesis another_row;           ///< s is not i
extern const Hypothesis hidden_tail;           ///< the keys appended are hidden
extern const Hypothesis equal_keys;
extern const Hypothesis constant_values;
extern const Hypothesis one_translation;            ///< one c for all keys
extern const Hypothesis one_shift;                  ///< one constant for the whole row of B
extern const Hypothesis moving_mask;                ///< the mask is permuted as the rows and keys are
extern const Hypothesis queries_blind_to_the_step;  ///< W_q^T t = 0
extern const Hypothesis moving_positions;           ///< positions are permuted as the tokens are

}  // namespace hypotheses

/// The four hypotheses of Attn_W and MAttn_W (000) where a theorem about them holds for MMHAttn as well.
inline constexpr std::array one_plain_head{
    spare(hypotheses::one_head, "every head obeys it by itself, and so do heads side by side and their sum"),
    spare(hypotheses::identity_output, "W_o acts on each row of the output alike, whichever it is"),
    spare(hypotheses::no_output_bias, "b_o is added to every row alike"),
    spare(hypotheses::no_bias_kv, "the appended key is the same on both sides, and nothing hides or moves it")};
/// The same where they say what the statement is about.
inline constexpr std::array defined_for_one_head{
    defining(hypotheses::one_head, "the statement is about the weights W of one head"),
    defining(hypotheses::identity_output, "the statement is about attention without an output projection"),
    defining(hypotheses::no_output_bias, "the statement is about attention without an output projection"),
    defining(hypotheses::no_bias_kv, "the statement is about attention without add_bias_kv")};

}  // namespace attest
