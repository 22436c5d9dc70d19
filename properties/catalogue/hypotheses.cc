#include "properties/catalogue/hypotheses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/problem/case.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"
#include "core/problem/memory.h"
#include "core/problem/selection.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/multihead_cases.h"

namespace attest {
namespace {

std::string misses_no_causal_form(const Case& c) {
  if (c.causal == Causal::none) return {};
  return fmt::format("has the causal form {}; the theorem rearranges rows or keys, which that form counts",
                     name_of(c.causal));
}

std::string misses_unmasked(const Case& c) {
  if (c.mask().present()) return "has a mask; the theorem is about attention without one";
  return misses_no_causal_form(c);
}

std::string misses_mask(const Case& c) {
  return c.mask().present() ? "" : "has no mask; the theorem is about one";
}

std::string misses_boolean_mask(const Case& c) {
  if (c.mask().present() && c.mask().dtype() == DType::boolean) return {};
  return "has no boolean mask; the theorem is about one";
}

std::string misses_additive_mask(const Case& c) {
  if (c.mask().present() && c.mask().dtype() != DType::boolean) return {};
  return "has no additive mask; the theorem is about one";
}

std::string misses_only_hides(const Case& c) {
  return only_hides(c) ? "" : "has a mask entry other than 0 and -inf; the theorem is about masks that only hide";
}

std::string misses_one_boolean_mask(const Case& c) {
  if (c.mask().present() && (c.mask().dtype() != DType::boolean || c.mask().shape()[0] * c.mask().shape()[1] != 1))
    return "has a mask that is not one boolean matrix; 002's is";
  return {};
}

std::string misses_causal_mask(const Case& c) {
  const std::int64_t M = queries_of(c), N = keys_of(c), shift = std::max<std::int64_t>(0, N - M);
  for (std::int64_t b = 0; b < batch_of(c); ++b)
    for (std::int64_t h = 0; h < heads_of(c); ++h)
      for (std::int64_t i = 0; i < M; ++i)
        for (std::int64_t j = i + shift + 1; j < N; ++j)
          if (!hidden(c, b, h, i, j))
            return fmt::format("row {} sees key {}; the theorem is about the causal mask", i, j);
  return {};
}

std::string misses_causal_form(const Case& c) {
  return c.causal != Causal::none ? "" : "has no causal form; the theorem is about one";
}

/// Is there a row of which it is true, by what the rule shows it?
template <class Is>
bool any_row(const Case& c, const SightRule& rule, Is is) {
  for (std::int64_t i = 0; i < queries_of(c); ++i)
    if (is(sight(rule, i, queries_of(c), keys_of(c)))) return true;
  return false;
}
template <class Is>
bool any_row(const Case& c, Is is) {
  return any_row(c, sight_rule(c), is);
}

bool sees_no_key(const Sight& seen) {
  return seen.first == seen.last;
}
/// Is there a block of 16 keys or more before what it sees?
bool is_behind_a_block(const Sight& seen) {
  return seen.first >= 16 && !sees_no_key(seen);
}

bool has_window(const Case& c) {
  return has_variant(c, window_variant.name);
}

std::string misses_window(const Case& c) {
  return has_window(c) ? "" : "has no window; the theorem is about one";
}

std::string misses_no_window(const Case& c) {
  return has_window(c) ? "has a window; the theorem is about attention with and without one of its own" : "";
}

std::string misses_sink(const Case& c) {
  return has_variant(c, sink_variant.name) ? "" : "has no sink; the theorem is about one";
}

std::string misses_softcap(const Case& c) {
  return c.softcap > 0 ? "" : "has no softcap; the theorem is about one";
}

std::string misses_dropout(const Case& c) {
  return c[Slot::keep].present() ? "" : "has no mask of dropped weights; the theorem is about one";
}

std::string misses_own_dropout(const Case& c) {
  return draws_own_dropout(c) ? "" : "has no mask of dropped weights for the kernel to draw; the theorem is about one";
}

std::string misses_alibi(const Case& c) {
  return c[Slot::alibi_slopes].present() ? "" : "has no slopes; the theorem is about them";
}

std::string misses_descale(const Case& c) {
  return has_variant(c, descale_variant.name) ? "" : "has no factors of q, k or v; the theorem is about them";
}

std::string misses_descale_of_scores(const Case& c) {
  if (c[Slot::q_descale].present() || c[Slot::k_descale].present()) return {};
  return "has no factors of q or k; the theorem is about them";
}

std::string misses_descale_of_both(const Case& c) {
  if (c[Slot::q_descale].present() && c[Slot::k_descale].present()) return {};
  return "has no factors of both q and k; the theorem is about their product";
}

std::string misses_descale_of_values(const Case& c) {
  return c[Slot::v_descale].present() ? "" : "has no factors of v; the theorem is about them";
}

std::string misses_descale_blocks(const Case& c) {
  if (has_blocks(c, Slot::q) || has_blocks(c, Slot::k) || has_blocks(c, Slot::v)) return {};
  return "has no factors of blocks of rows or keys; the theorem is about them";
}

std::string misses_bottom_right_positions(const Case& c) {
  if ((c.causal != Causal::none ? c.causal : c.alignment) == Causal::bottom_right) return {};
  return "has positions that do not count from the last key; the theorem is about those that do";
}

std::string misses_added_after_scale(const Case& c) {
  const bool additive = c.mask().present() && c.mask().dtype() != DType::boolean;
  if (!additive || c.mask_convention == MaskConvention::post_scale) return {};
  return "has a pre-scale mask; the theorem is about what is added to a score";
}

std::string misses_window_and_more(const Case& c) {
  if (!has_window(c)) return misses_window(c);
  if (c.mask().present() || c.causal != Causal::none) return {};
  return "has a window alone; the theorem is about one beside a mask or a causal form";
}

std::string misses_keys_before_windows(const Case& c) {
  if (c.window_left >= 0 && c.alignment == Causal::bottom_right && queries_of(c) > 0 && keys_of(c) > 1 &&
      !any_row(c, [](const Sight& seen) { return seen.first == 0 && seen.last > 0; }))
    return {};
  return "has no key before every row's window, counted from the bottom right; the theorem deletes one";
}

std::string misses_keys_behind_windows(const Case& c) {
  if (c.window_right >= 0 && c.alignment == Causal::top_left && queries_of(c) > 0 && keys_of(c) > 1 &&
      !any_row(c, [&](const Sight& seen) { return seen.last == keys_of(c) && seen.first < seen.last; }))
    return {};
  return "has no key behind every row's window, counted from the top left; the theorem deletes one";
}

std::string misses_row_outside_the_keys(const Case& c) {
  if (!has_window(c)) return misses_window(c);
  if (keys_of(c) > 0 && any_row(c, sees_no_key)) return {};
  return "has a key in every row's window; the theorem is about a row without one";
}

std::string misses_row_behind_a_block(const Case& c) {
  if (c.window_left >= 0 && any_row(c, is_behind_a_block)) return {};
  return "has no row whose window begins at key 16 or later; the theorem is about one";
}

std::string misses_window_of_one_key(const Case& c) {
  const bool ends = c.window_right == 0 || c.causal != Causal::none;
  if (c.window_left == 0 && ends && !c.mask().present() && queries_of(c) == keys_of(c)) return {};
  return "is not a window of one key with as many queries as keys and without a mask; the theorem is about that";
}

bool has_chunks(const Case& c) {
  return has_variant(c, chunk_variant.name);
}

/// What chunks alone show.
SightRule rule_of_chunks(const Case& c) {
  return {.alignment = c.alignment, .chunk = c.attention_chunk};
}

std::string misses_chunk(const Case& c) {
  return has_chunks(c) ? "" : "has no chunks of keys; the theorem is about them";
}

std::string misses_no_chunk(const Case& c) {
  return has_chunks(c) ? "has chunks of keys; the theorem is about attention with and without some of its own" : "";
}

std::string misses_chunk_and_more(const Case& c) {
  if (!has_chunks(c)) return misses_chunk(c);
  if (c.mask().present() || c.causal != Causal::none || has_window(c)) return {};
  return "has chunks alone; the theorem is about those beside a mask, a causal form or a window";
}

std::string misses_chunks_before_rows(const Case& c) {
  if (!has_chunks(c)) return misses_chunk(c);
  // The first row that stands at a key is at key N - M, or at key 0.
  if (c.alignment == Causal::bottom_right && queries_of(c) > 0 && keys_of(c) - queries_of(c) >= c.attention_chunk)
    return {};
  return "has no chunk before every row's own, counted from the bottom right; the theorem deletes one";
}

std::string misses_keys_behind_chunks(const Case& c) {
  if (!has_chunks(c)) return misses_chunk(c);
  const std::int64_t last = queries_of(c) - 1;
  if (c.alignment == Causal::top_left && last >= 0 &&
      last / c.attention_chunk * c.attention_chunk + c.attention_chunk < keys_of(c))
    return {};
  return "has no key behind every row's chunk, counted from the top left; the theorem deletes one";
}

std::string misses_row_without_a_chunk(const Case& c) {
  if (!has_chunks(c)) return misses_chunk(c);
  if (keys_of(c) > 0 && any_row(c, rule_of_chunks(c), sees_no_key)) return {};
  return "has a key in every row's chunk; the theorem is about a row without one";
}

std::string misses_chunk_behind_a_block(const Case& c) {
  if (!has_chunks(c)) return misses_chunk(c);
  if (any_row(c, rule_of_chunks(c), is_behind_a_block)) return {};
  return "has no row whose chunk begins at key 16 or later; the theorem is about one";
}

std::string misses_chunk_of_one_key(const Case& c) {
  if (c.attention_chunk == 1 && !c.mask().present() && queries_of(c) == keys_of(c)) return {};
  return "has no chunks of one key with as many queries as keys and without a mask; the theorem is about those";
}

std::string misses_sequences(const Case& c) {
  return has_sequences(c) ? ""
                          : "has no lengths, padding on the left or packed sequences; the theorem is about sequences";
}

std::string misses_packed(const Case& c) {
  return has_variant(c, packed_variant.name) ? "" : "has no packed sequences; the theorem is about them";
}

std::string misses_two_sequences(const Case& c) {
  if (!has_sequences(c)) return misses_sequences(c);
  return sequence_count(c) >= 2 ? "" : "has one sequence; the theorem needs at least 2";
}

std::string misses_padding(const Case& c) {
  return has_padding(c) ? "" : "has no row and no key that is in no sequence; the theorem is about these";
}

std::string misses_bottom_right_sequence(const Case& c) {
  const Causal alignment = c.causal != Causal::none ? c.causal : c.alignment;
  const auto differs = [](const Sequence& s) { return s.queries > 0 && s.keys > 0 && s.queries != s.keys; };
  if (has_sequences(c) && alignment == Causal::bottom_right && std::ranges::any_of(sequences_of(c), differs)) return {};
  return "has no sequence with M and N that differ whose positions count from its last key; the theorem is about one";
}

std::string misses_key_lengths(const Case& c) {
  return c[Slot::kv_lengths].present() ? "" : "has no lengths of keys; the theorem is about them";
}

std::string misses_pages(const Case& c) {
  return c[Slot::page_table].present() ? "" : "has no table of pages; the theorem is about keys in pages";
}

std::string misses_page_tail(const Case& c) {
  if (!c[Slot::page_table].present()) return misses_pages(c);
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    const Sequence own = sequence_of(c, b);
    if (own.first_key > 0 || (own.first_key + own.keys) % page_size_of(c) != 0) return {};
  }
  return "has no page with a slot that no key is in; the theorem is about one";
}

std::string misses_table_tail(const Case& c) {
  if (!c[Slot::page_table].present()) return misses_pages(c);
  for (std::int64_t b = 0; b < batch_of(c); ++b)
    if (columns_needed(c, b) < c[Slot::page_table].shape()[1]) return {};
  return "has no table with an entry that nobody reads; the theorem is about one";
}

std::string misses_cache_rows(const Case& c) {
  return c[Slot::cache_index].present() ? "" : "has no index of a cache's rows; the theorem is about one";
}

std::string misses_new_keys(const Case& c) {
  return c.append > 0 ? "" : "appends no keys; the theorem is about a call that does";
}

/// Of tokens that a call appends some go to one page and some to the next.
std::string misses_crossed_page(const Case& c) {
  if (!c[Slot::page_table].present()) return misses_pages(c);
  if (c.append == 0) return misses_new_keys(c);
  const std::int64_t page = page_size_of(c);
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    const auto length = static_cast<std::int64_t>(c[Slot::kv_lengths][b]);
    if ((length - c.append) / page != (length - 1) / page) return {};
  }
  return "appends to one page of each entry; the theorem is about a call that appends to two";
}

std::string misses_gradients(const Case& c) {
  return asks_for_gradients(c) ? "" : "has no gradients by its output; the theorem is about a backward pass";
}

std::string misses_gradients_by_lse(const Case& c) {
  return c[Slot::d_lse].present() ? "" : "has no gradient by its log-sum-exp; the theorem is about one";
}

std::string misses_left_pad(const Case& c) {
  if (c[Slot::left_pad].present() &&
      std::ranges::any_of(sequences_of(c), [](const Sequence& s) { return s.first_key > 0; }))
    return {};
  return "has no padding before a sequence's keys; the theorem is about it";
}

std::string misses_bottom_right_form(const Case& c) {
  if (c.causal == Causal::bottom_right) return {};
  return "has no causal form that counts from the last key; the theorem is about the queries of the last tokens";
}

std::string misses_equal_lengths(const Case& c) {
  if (queries_of(c) == keys_of(c)) return {};
  return fmt::format("has {} queries and {} keys; the theorem needs as many of both", queries_of(c), keys_of(c));
}

std::string misses_one_query(const Case& c) {
  return queries_of(c) == 1 ? "" : fmt::format("has {} queries; the theorem is about one", queries_of(c));
}

std::string misses_top_left_or_square(const Case& c) {
  if (c.causal != Causal::bottom_right || queries_of(c) == keys_of(c)) return {};
  return fmt::format("is bottom-right with {} queries and {} keys; the theorem needs top-left or as many of both",
                     queries_of(c), keys_of(c));
}

std::string misses_plain_top_left(const Case& c) {
  if (c.mask().present() || c.causal != Causal::top_left || queries_of(c) != keys_of(c))
    return "is not top-left causal attention with M = N and no other mask";
  return {};
}

std::string misses_first_key_visible(const Case& c) {
  for (std::int64_t b = 0; queries_of(c) > 0 && keys_of(c) > 0 && b < batch_of(c); ++b)
    for (std::int64_t h = 0; h < heads_of(c); ++h)
      if (hidden(c, b, h, 0, 0)) return "hides the first key from the first row";
  return {};
}

std::string misses_lengths_differ(const Case& c) {
  return queries_of(c) == keys_of(c) ? "has M = N, where both alignments are the same" : "";
}

std::string misses_infinity_to_hide(const Case& c) {
  if (c.dtype() != DType::f8_e4m3 || !c.mask().present() || c.mask().dtype() == DType::boolean) return {};
  return fmt::format("has an additive mask in {}, which has no infinity; the theorem hides a key", name_of(c.dtype()));
}

std::string misses_infinite_dtype(const Case& c) {
  if (c.dtype() != DType::f8_e4m3) return {};
  return "is in f8_e4m3, which has no infinity for the limit of an additive mask";
}

std::string misses_infinity_for_a_mask(const Case& c) {
  if (c.dtype() == DType::f8_e4m3 && c.mask().present() && c.mask().dtype() == DType::boolean)
    return "is in f8_e4m3, which has no infinity for an additive mask that hides";
  return {};
}

std::string misses_two_queries(const Case& c) {
  return queries_of(c) >= 2 ? "" : fmt::format("has {} queries; the theorem needs at least 2", queries_of(c));
}

std::string misses_two_keys(const Case& c) {
  return keys_of(c) >= 2 ? "" : fmt::format("has {} keys; the theorem needs at least 2", keys_of(c));
}

std::string misses_one_key(const Case& c) {
  return keys_of(c) == 1 ? "" : fmt::format("has {} keys; the theorem is about one", keys_of(c));
}

std::string misses_a_query(const Case& c) {
  return queries_of(c) >= 1 ? "" : "has no query; the theorem needs one";
}

std::string misses_a_query_and_a_key(const Case& c) {
  if (queries_of(c) < 1 || keys_of(c) < 1) return "has no row or no key to delete";
  return {};
}

std::string misses_two_batch_entries(const Case& c) {
  return batch_of(c) >= 2 ? "" : "has one batch entry; the theorem needs at least 2";
}

std::string misses_two_heads(const Case& c) {
  return heads_of(c) >= 2 ? "" : "has 1 head; the theorem needs at least 2";
}

std::string misses_shared_key_heads(const Case& c) {
  return c.k().shape()[1] < heads_of(c) ? "" : "has a key-value head for every head; the theorem is about shared ones";
}

std::string misses_two_head_columns(const Case& c) {
  const std::int64_t dk = extents_of(c).dk;
  return dk >= 2 ? "" : fmt::format("has dk = {}; the conventions differ from dk = 2 on", dk);
}

std::string misses_odd_head_dims(const Case& c) {
  const Extents e = extents_of(c);
  if (e.dk != e.dv && e.dk % 8 != 0 && e.dv % 8 != 0) return "";
  return fmt::format("has dk = {} and dv = {}; two are required, neither a multiple of 8", e.dk, e.dv);
}

std::string misses_at_most_64_columns(const Case& c) {
  const std::int64_t dk = extents_of(c).dk;
  return dk <= 64 ? "" : fmt::format("has dk = {}; the theorem is checked up to 64", dk);
}

std::string misses_two_token_columns(const Case& c) {
  return c.q().shape()[2] >= 2 ? "" : "has tokens of one column, whose scores are symmetric; the theorem needs two";
}

std::string misses_equal_widths(const Case& c) {
  const Extents e = extents_of(c);
  return e.dk == e.dv ? "" : fmt::format("has dk = {} and dv = {}; 001 and 003 take dk = dv", e.dk, e.dv);
}

std::string misses_power_of_four(const Case& c) {
  if (in_a_proof()) return {};  // any scale has an inverse there
  const std::int64_t dk = extents_of(c).dk;
  int exponent = 0;
  if (std::frexp(static_cast<double>(dk), &exponent) != 0.5 || exponent % 2 == 0)
    return fmt::format("has dk = {}; sqrt(dk) Q is exact for a power of 4", dk);
  return {};
}

std::string misses_other_strides(const Case& c) {
  if (layouts_of(c) == Layouts()) return "is row-major throughout; the theorem is about other strides";
  return {};
}

std::string misses_inverse_root_scale(const Case& c) {
  if (is_inverse_root(c.scale, extents_of(c).dk)) return {};
  return fmt::format("has scale {}; the theorem is about 1/sqrt(dk)", c.scale);
}

std::string misses_exact_inverse_root(const Case& c) {
  if (in_a_proof() || c.scale == inverse_root(extents_of(c).dk)) return {};
  return fmt::format("has scale {}; the scaled form has 1/sqrt(dk)", c.scale);
}

std::string misses_unscaled(const Case& c) {
  return c.scale == 1 ? "" : fmt::format("has scale {}; the notebook's form is not scaled", c.scale);
}

std::string misses_one_head(const Case& c) {
  if (c.heads == 1) return {};
  return fmt::format("has {} heads; attention with the weights W has one", c.heads);
}

std::string misses_identity_output(const Case& c) {
  if (!c[Slot::w_o].present() || is_identity(c[Slot::w_o])) return {};
  return "has an output projection other than the identity; attention with the weights W has none";
}

std::string misses_no_output_bias(const Case& c) {
  for (std::int64_t e = 0; e < c[Slot::b_o].elements(); ++e)
    if (c[Slot::b_o][e] != 0) return "has b_o; attention with the weights W has no output bias";
  return {};
}

std::string misses_no_bias_kv(const Case& c) {
  return c[Slot::bias_k].present() ? "has bias_k and bias_v; the theorem is about attention without add_bias_kv" : "";
}

std::string misses_bias_kv(const Case& c) {
  return c[Slot::bias_k].present() ? "" : "has no bias_k and bias_v; the theorem is about add_bias_kv";
}

std::string misses_no_biases(const Case& c) {
  for (const Slot slot : {Slot::b_q, Slot::b_k, Slot::b_v})
    if (c[slot].present()) return fmt::format("has {}; the theorem is stated without biases", name_of(slot));
  return {};
}

std::string misses_biases(const Case& c) {
  for (const Slot slot : {Slot::b_q, Slot::b_k, Slot::b_v})
    if (!c[slot].present()) return "lacks one of b_q, b_k and b_v; the theorem is about attention with biases";
  return {};
}

std::string misses_value_bias(const Case& c) {
  return c[Slot::b_v].present() ? "" : "has no b_v; the theorem is about the value bias";
}

std::string misses_output_projection(const Case& c) {
  return c[Slot::w_o].present() ? "" : "has no w_o; the theorem is about an output projection";
}

std::string misses_self_attention(const Case& c) {
  if (is_self_attention(c)) return {};
  return "has keys or values other than its queries; self-attention has one X for all three";
}

std::string misses_one_projection(const Case& c) {
  if (c[Slot::w_q] == c[Slot::w_k] && c[Slot::w_q] == c[Slot::w_v]) return {};
  return "has different projections; the theorem has one U for queries, keys and values";
}

std::string misses_exact_projections(const Case& c) {
  if (in_a_proof()) return {};  // as real numbers are
  bool exact = true;
  for (const auto& [x, w, b] : {std::array{Slot::q, Slot::w_q, Slot::b_q}, std::array{Slot::k, Slot::w_k, Slot::b_k},
                                std::array{Slot::v, Slot::w_v, Slot::b_v}})
    static_cast<void>(projected(c[x], c[w], c[b], exact));
  if (exact) return {};
  return fmt::format("has projections that {} does not hold exactly; the other side starts from them",
                     name_of(c.dtype()));
}

std::string misses_small_whole_numbers(const Case& c) {
  if (in_a_proof()) return {};  // real numbers need not be rounded
  if (queries_of(c) > most_whole_tokens)
    return fmt::format("has {} tokens; at most {} are required", queries_of(c), most_whole_tokens);
  const auto is_one = [](double x) { return std::nearbyint(x) == x && std::fabs(x) <= 64; };
  for (std::int64_t e = 0; e < c.q().elements(); ++e)
    if (!is_one(c.q()[e])) return fmt::format("has {} in a token; whole numbers up to 64 are required", c.q()[e]);
  for (std::int64_t e = 0; e < c[Slot::w_v].shape()[1]; ++e)
    if (!is_one(c[Slot::w_v][e]))
      return fmt::format("has {} in the first row of W_v; whole numbers up to 64 are required", c[Slot::w_v][e]);
  return {};
}

/// What torch.nn.MultiheadAttention computes: dk = dv = d/h, c_q = d_o = d, c_k and c_v free, the three in-projection
/// biases together or not at all, an output projection, and the scale 1/sqrt(dk).
std::string misses_torch_case(const Case& c) {
  const Extents e = extents_of(c);
  if (e.dk != e.dv) return fmt::format("has dk = {} and dv = {}; the PyTorch case has dk = dv", e.dk, e.dv);
  const std::int64_t d = e.heads * e.dk;
  if (e.c_q != d || e.d_o != d) {
    return fmt::format("has c_q = {} and d_o = {}; the PyTorch case has both equal to heads*dk = {}", e.c_q, e.d_o, d);
  }
  if (!c[Slot::w_o].present()) return "has no w_o; the PyTorch case has an output projection";
  const bool bias = c[Slot::b_q].present();
  if (c[Slot::b_k].present() != bias || c[Slot::b_v].present() != bias || c[Slot::b_o].present() != bias) {
    return "has some biases and lacks others; the PyTorch case has all of b_q, b_k, b_v and b_o or none";
  }
  if (c[Slot::bias_k].present() != c[Slot::bias_v].present()) return "has one of bias_k and bias_v without the other";
  if (!is_inverse_root(c.scale, e.dk)) return fmt::format("has scale {}; the PyTorch case has 1/sqrt(dk)", c.scale);
  return {};
}

}  // namespace

namespace hypotheses {

constexpr Hypothesis unmasked{"unmasked", "no mask and no causal form", misses_unmasked};
constexpr Hypothesis no_causal_form{"no-causal-form", "no causal form", misses_no_causal_form};
constexpr Hypothesis mask{"mask", "a mask", misses_mask};
constexpr Hypothesis boolean_mask{"boolean-mask", "a boolean mask", misses_boolean_mask};
constexpr Hypothesis additive_mask{"additive-mask", "an additive mask", misses_additive_mask};
constexpr Hypothesis only_hides{"only-hides", "mask entries of 0 and -inf only", misses_only_hides};
constexpr Hypothesis one_boolean_mask{"one-boolean-mask", "no mask, or one boolean matrix for all",
                                      misses_one_boolean_mask};
constexpr Hypothesis causal_mask{"causal-mask", "nothing after the diagonal is visible", misses_causal_mask};
constexpr Hypothesis causal_form{"causal-form", "a causal form", misses_causal_form};
constexpr Hypothesis window{"window", "a window", misses_window};
constexpr Hypothesis no_window{"no-window", "no window", misses_no_window};
constexpr Hypothesis sink{"sink", "a sink", misses_sink};
constexpr Hypothesis softcap{"softcap", "a softcap", misses_softcap};
constexpr Hypothesis dropout{"dropout", "a mask of dropped weights", misses_dropout};
constexpr Hypothesis own_dropout{"own-dropout", "a mask of dropped weights that the kernel draws", misses_own_dropout};
constexpr Hypothesis descale{"descale", "factors of q, k or v", misses_descale};
constexpr Hypothesis descale_blocks{"descale-blocks", "factors of blocks", misses_descale_blocks};
constexpr Hypothesis descale_of_both{"descale-of-both", "factors of q and of k", misses_descale_of_both};
constexpr Hypothesis descale_of_scores{"descale-of-scores", "factors of q or of k", misses_descale_of_scores};
constexpr Hypothesis descale_of_values{"descale-of-values", "factors of v", misses_descale_of_values};
constexpr Hypothesis alibi{"alibi", "slopes", misses_alibi};
constexpr Hypothesis bottom_right_positions{"bottom-right-positions", "positions that count from the last key",
                                            misses_bottom_right_positions};
constexpr Hypothesis added_after_scale{"added-after-scale", "no pre-scale mask", misses_added_after_scale};
constexpr Hypothesis window_and_more{"window-and-more", "a window beside a mask or a causal form",
                                     misses_window_and_more};
constexpr Hypothesis keys_before_windows{"keys-before-windows", "bottom-right, a key before every row's window",
                                         misses_keys_before_windows};
constexpr Hypothesis keys_behind_windows{"keys-behind-windows", "top-left, a key behind every row's window",
                                         misses_keys_behind_windows};
constexpr Hypothesis row_outside_the_keys{"row-outside-the-keys", "a row whose window holds no key",
                                          misses_row_outside_the_keys};
constexpr Hypothesis row_behind_a_block{"row-behind-a-block", "a row whose window begins at key 16 or later",
                                        misses_row_behind_a_block};
constexpr Hypothesis window_of_one_key{"window-of-one-key", "a window of one key, M = N and no mask",
                                       misses_window_of_one_key};
constexpr Hypothesis chunk{"chunk", "chunks of keys", misses_chunk};
constexpr Hypothesis no_chunk{"no-chunk", "no chunks of keys", misses_no_chunk};
constexpr Hypothesis chunk_and_more{"chunk-and-more", "chunks beside a mask, a causal form or a window",
                                    misses_chunk_and_more};
constexpr Hypothesis chunks_before_rows{"chunks-before-rows", "bottom-right, a chunk before every row's own",
                                        misses_chunks_before_rows};
constexpr Hypothesis keys_behind_chunks{"keys-behind-chunks", "top-left, a key behind every row's chunk",
                                        misses_keys_behind_chunks};
constexpr Hypothesis row_without_a_chunk{"row-without-a-chunk", "a row whose chunk holds no key",
                                         misses_row_without_a_chunk};
constexpr Hypothesis chunk_behind_a_block{"chunk-behind-a-block", "a row whose chunk begins at key 16 or later",
                                          misses_chunk_behind_a_block};
constexpr Hypothesis chunk_of_one_key{"chunk-of-one-key", "chunks of one key, M = N and no mask",
                                      misses_chunk_of_one_key};
constexpr Hypothesis sequences{"sequences", "lengths, padding on the left, or packed sequences", misses_sequences};
constexpr Hypothesis packed{"packed", "packed sequences", misses_packed};
constexpr Hypothesis two_sequences{"two-sequences", "at least two sequences", misses_two_sequences};
constexpr Hypothesis padding{"padding", "rows or keys of no sequence", misses_padding};
constexpr Hypothesis bottom_right_sequence{"bottom-right-sequence",
                                           "positions from the last key of a sequence with M and N that differ",
                                           misses_bottom_right_sequence};
constexpr Hypothesis pages{"pages", "keys and values in pages", misses_pages};
constexpr Hypothesis page_tail{"page-tail", "a page with a slot that no key is in", misses_page_tail};
constexpr Hypothesis table_tail{"table-tail", "a table with an entry that nobody reads", misses_table_tail};
constexpr Hypothesis cache_rows{"cache-rows", "rows of a cache that an index names", misses_cache_rows};
constexpr Hypothesis new_keys{"new-keys", "keys that the call appends", misses_new_keys};
constexpr Hypothesis crossed_page{"crossed-page", "keys that the call appends to two pages of an entry",
                                  misses_crossed_page};
constexpr Hypothesis left_pad{"left-pad", "padding before a sequence's keys", misses_left_pad};
constexpr Hypothesis gradients{"gradients", "gradients by the output", misses_gradients};
constexpr Hypothesis gradients_by_lse{"gradients-by-lse", "a gradient by the log-sum-exp", misses_gradients_by_lse};
constexpr Hypothesis key_lengths{"key-lengths", "lengths of keys", misses_key_lengths};
constexpr Hypothesis bottom_right_form{"bottom-right-form", "the bottom-right causal form", misses_bottom_right_form};
constexpr Hypothesis equal_lengths{"equal-lengths", "M = N", misses_equal_lengths};
constexpr Hypothesis one_query{"one-query", "M = 1", misses_one_query};
constexpr Hypothesis top_left_or_square{"top-left-or-square", "a top-left causal form, or M = N",
                                        misses_top_left_or_square};
constexpr Hypothesis plain_top_left{"plain-top-left", "the top-left form, M = N and no other mask",
                                    misses_plain_top_left};
constexpr Hypothesis first_key_visible{"first-key-visible", "the first row sees the first key",
                                       misses_first_key_visible};
constexpr Hypothesis lengths_differ{"lengths-differ", "M and N differ", misses_lengths_differ};
constexpr Hypothesis infinity_to_hide{"infinity-to-hide", "no additive mask in a dtype without infinity",
                                      misses_infinity_to_hide};
constexpr Hypothesis infinite_dtype{"infinite-dtype", "a dtype with an infinity", misses_infinite_dtype};
constexpr Hypothesis infinity_for_a_mask{"infinity-for-a-mask",
                                         "no boolean mask to be written as numbers in a dtype without infinity",
                                         misses_infinity_for_a_mask};
constexpr Hypothesis two_queries{"two-queries", "at least two queries", misses_two_queries};
constexpr Hypothesis two_keys{"two-keys", "at least two keys", misses_two_keys};
constexpr Hypothesis one_key{"one-key", "one key", misses_one_key};
constexpr Hypothesis a_query{"a-query", "a query", misses_a_query};
constexpr Hypothesis a_query_and_a_key{"a-query-and-a-key", "a query and a key", misses_a_query_and_a_key};
constexpr Hypothesis two_batch_entries{"two-batch-entries", "at least two batch entries", misses_two_batch_entries};
constexpr Hypothesis two_heads{"two-heads", "at least two heads", misses_two_heads};
constexpr Hypothesis shared_key_heads{"shared-key-heads", "fewer key-value heads than heads", misses_shared_key_heads};
constexpr Hypothesis two_head_columns{"two-head-columns", "dk >= 2", misses_two_head_columns};
constexpr Hypothesis at_most_64_columns{"at-most-64-columns", "dk <= 64", misses_at_most_64_columns};
constexpr Hypothesis two_token_columns{"two-token-columns", "tokens of at least two columns", misses_two_token_columns};
constexpr Hypothesis equal_widths{"equal-widths", "dk = dv", misses_equal_widths};
constexpr Hypothesis odd_head_dims{"odd-head-dims", "dk and dv differ, and neither is a multiple of 8",
                                   misses_odd_head_dims};
constexpr Hypothesis power_of_four{"power-of-four", "dk a power of 4", misses_power_of_four};
constexpr Hypothesis other_strides{"other-strides", "strides other than row-major", misses_other_strides};
constexpr Hypothesis inverse_root_scale{"inverse-root-scale", "the scale 1/sqrt(dk)", misses_inverse_root_scale};
constexpr Hypothesis exact_inverse_root{"exact-inverse-root", "the scale 1/sqrt(dk) to the bit",
                                        misses_exact_inverse_root};
constexpr Hypothesis unscaled{"unscaled", "the scale 1", misses_unscaled};
constexpr Hypothesis one_head{"one-head", "one head", misses_one_head};
constexpr Hypothesis identity_output{"identity-output", "no W_o, or W_o = I", misses_identity_output};
constexpr Hypothesis no_output_bias{"no-output-bias", "no b_o, or b_o = 0", misses_no_output_bias};
constexpr Hypothesis no_bias_kv{"no-bias-kv", "no add_bias_kv", misses_no_bias_kv};
constexpr Hypothesis bias_kv{"bias-kv", "add_bias_kv", misses_bias_kv};
constexpr Hypothesis no_biases{"no-biases", "none of b_q, b_k and b_v", misses_no_biases};
constexpr Hypothesis biases{"biases", "all of b_q, b_k and b_v", misses_biases};
constexpr Hypothesis value_bias{"value-bias", "b_v", misses_value_bias};
constexpr Hypothesis output_projection{"output-projection", "an output projection", misses_output_projection};
constexpr Hypothesis self_attention{"self-attention", "one X for queries, keys and values", misses_self_attention};
constexpr Hypothesis one_projection{"one-projection", "W_q = W_k = W_v", misses_one_projection};
constexpr Hypothesis exact_projections{"exact-projections", "projected tokens that the dtype holds",
                                       misses_exact_projections};
constexpr Hypothesis small_whole_numbers{
    "small-whole-numbers", "few tokens, and they and the first row of W_v whole numbers", misses_small_whole_numbers};
constexpr Hypothesis torch_case{"torch-case", "the shapes, biases and scale of torch.nn.MultiheadAttention",
                                misses_torch_case};

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
