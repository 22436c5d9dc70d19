// What a row of a problem sees: mask, causal form, window and chunks meet here (kernel-interface.md, section 1).
// Kernels that are judged by it have their own.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/problem/problem.h"

namespace attest {

/// The keys that a row sees by its position: those of [first, last). A mask hides some of them.
struct Sight {
  std::int64_t first = 0, last = 0;

  [[nodiscard]] bool sees(std::int64_t j) const { return first <= j && j < last; }
};

/// The arguments of a problem that hide keys by their position. One that does so has its member here and its meaning in
/// sight(), and nowhere else.
struct SightRule {
  Causal causal = Causal::none;
  std::int64_t window_left = -1, window_right = -1;
  Causal alignment = Causal::none;
  std::int64_t chunk = 0;
};
[[nodiscard]] inline SightRule sight_rule(const Problem& c) {
  return {.causal = c.causal,
          .window_left = c.window_left,
          .window_right = c.window_right,
          .alignment = c.alignment,
          .chunk = c.attention_chunk};
}

/// The position of row i of the `rows` of a sequence (sequences.h): i, or, counted from the last of `keys` (000), i +
/// keys - rows.
[[nodiscard]] inline std::int64_t position(const SightRule& rule, std::int64_t i, std::int64_t rows,
                                           std::int64_t keys) {
  const Causal counted = rule.causal != Causal::none ? rule.causal : rule.alignment;
  return counted == Causal::bottom_right ? i + keys - rows : i;
}

/// What row i of the `rows` of a sequence sees. Causal: it sees keys up to its position; a window: those from position
/// - window_left to position + window_right, both inclusive; chunks: those of the chunk that its position is in.
[[nodiscard]] inline Sight sight(const SightRule& rule, std::int64_t i, std::int64_t rows, std::int64_t keys) {
  const std::int64_t p = position(rule, i, rows, keys);
  std::int64_t first = 0, last = rule.causal != Causal::none ? p + 1 : keys;
  if (rule.window_left >= 0) first = p - rule.window_left;
  if (rule.window_right >= 0) last = std::min(last, p + rule.window_right + 1);
  if (rule.chunk > 0) {
    const std::int64_t begin = p - p % rule.chunk;
    first = std::max(first, begin);
    last = p < 0 ? 0 : std::min(last, begin + rule.chunk);  // before the keys there are chunks without one
  }
  last = std::clamp<std::int64_t>(last, 0, keys);
  return {std::clamp<std::int64_t>(first, 0, last), last};
}

/// Has it a variant that asks where a row's position counts from?
[[nodiscard]] bool counts_positions(const Problem& c);
/// Makes the alignment what the causal form and the variants that count positions ask of it: as the causal form where
/// there is one, as it is or from the top left where there is none, and none where there is no such variant.
void settle_alignment(Problem& c);

[[nodiscard]] std::int64_t batch_of(const Problem& c);
/// Heads of the queries.
[[nodiscard]] std::int64_t heads_of(const Problem& c);
/// The head of k and v that head h of attention's queries reads.
[[nodiscard]] std::int64_t kv_head_of(const Problem& c, std::int64_t h);
/// M and N as the tensors have them, padding and all; the row of bias_k/bias_v is not counted.
[[nodiscard]] std::int64_t queries_of(const Problem& c);
[[nodiscard]] std::int64_t keys_of(const Problem& c);

/// True when the mask, the causal form, the window or the chunks hide key `j` from row `i`, or they are not of one
/// sequence. A finite mask entry hides nothing.
[[nodiscard]] bool hidden(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j);

/// A mask's entry. An extent of 1 serves every batch entry, or every head.
[[nodiscard]] double mask_entry(const Tensor& mask, std::int64_t batch, std::int64_t head, std::int64_t i,
                                std::int64_t j);
/// The slope of a head; 0: none.
[[nodiscard]] double slope_of(const Problem& c, std::int64_t batch, std::int64_t head);
/// |p - j| of the position p of row `i` and of key `j`, which are of one sequence; 0 where the row is of none.
[[nodiscard]] double distance_of(const Problem& c, std::int64_t batch, std::int64_t i, std::int64_t j);
/// What the slope of its head adds to the score of row `i` and key `j`, which are of one sequence: -slope |p - j|,
/// exact up to distances of 2^29, as a slope has 24 bits and a double 53.
[[nodiscard]] double slope_term(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i,
                                std::int64_t j);
/// What is added to the score of row `i` and key `j`, which are of one sequence, rounded once: the additive mask's
/// entry, 0 where there is none, or a boolean one, and what the slope of the head says.
[[nodiscard]] double bias_of(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j);

/// Is the weight of key `j` in row `i` kept, whether the row sees it or not? All are where nothing is dropped.
[[nodiscard]] bool keeps(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j);

/// True when some row of a sequence sees no key at all (never with bias_k, whose row nothing hides). N = 0 with M > 0
/// counts.
[[nodiscard]] bool has_fully_masked_row(const Problem& c);

}  // namespace attest
