// Recipe: a case before its numbers are written out: extents, a kind per tensor, a seed, and a few elements set apart.
// Small and plain on purpose: every recipe decodes to a valid case, whatever its fields hold, so that any source of
// recipes will do (the generators here, bytes of a mutator).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/memory.h"
#include "core/support/words.h"
#include "properties/generators/later_arguments.h"
#include "properties/generators/stream.h"

namespace attest {

/// How q and k are made, so that the scores have the stated character.
enum class ScoreKind : std::uint8_t {
  gaussian_tenth,   ///< q, k normal with sigma 0.1
  gaussian,         ///< sigma 1
  gaussian_ten,     ///< sigma 10: peaked weights
  heavy,            ///< Cauchy-like tails
  integers,         ///< whole numbers in -3..3: exact dot products, many ties
  powers_of_two,    ///< +-2^e, some one ulp off
  exact_ties,       ///< all keys equal
  near_ties,        ///< keys equal but for single ulps
  duplicate_keys,   ///< a few distinct keys, repeated
  dominant,         ///< one score 8 to 200 above the others
  offset,           ///< all scores near a common +-100…3000
  spread,           ///< scores over a range of 20 to 200
  below_sentinels,  ///< all scores around and below -1e4 or -1e9, what "minus infinity" often is
  underflow_edges,  ///< scores below the largest by about where exp or its storage format underflows
  ill_conditioned,  ///< large products that cancel in q.k
  zero_queries,     ///< q = 0: uniform weights
  huge,             ///< scores from 1e4 up to the edge of the domain of definition, and rarely beyond
  bit_classes,      ///< zeros, subnormals, powers of two +-1 ulp, large numbers, mixed
  rising,  ///< from key to key higher or lower by as much, 4 to 512 from the first to the last, and a little noise
  dominant_tile,  ///< the keys of one tile of 16 to 128 lie 3 to 12 above the others
  count
};

/// How v is made.
enum class ValueKind : std::uint8_t {
  gaussian,
  heavy,
  integers,
  powers_of_two,
  ones,                ///< reads the sum of the weights
  one_hot,             ///< each column reads the weight of one key
  low_weight_one_hot,  ///< of the keys that weigh least in the first row
  zero_visible,        ///< 0 on every key that some row sees, not 0 on the others: any leak shows
  half_ones,           ///< 0 on the first half of the keys, 1 on the second: stagnating sums show
  cancelling,          ///< +-x pairs: the output is small against the values
  huge_offset,         ///< a common offset of 1 to 3000 and sigma 1
  huge,                ///< up to the largest sum that is in the domain
  bit_classes,
  count
};

/// Which places the mask hides or biases.
enum class MaskKind : std::uint8_t {
  none,
  random,       ///< each place by a coin
  first_block,  ///< the first keys, of every row
  middle_block,
  last_block,
  padding,          ///< a tail that differs per batch entry
  whole_row,        ///< one row sees nothing, the others all
  whole_head,       ///< one head sees nothing
  causal,           ///< the causal triangle written out
  bias,             ///< small finite numbers, nothing hidden
  alibi,            ///< -slope·|i - j|
  finite_sentinel,  ///< -1e4, -1e9 or -largest where `random` would hide, or near -largest in a whole row: a bias
  count
};

/// Of a multihead case: how inputs and weights are made.
enum class MatrixKind : std::uint8_t {
  gaussian,      ///< inputs sigma 1, weights sigma 1/sqrt(rows)
  gaussian_ten,  ///< inputs sigma 10
  integers,      ///< -2..2
  powers_of_two,
  identity,      ///< weights that copy: inputs reach the heads unchanged
  one_hot,       ///< inputs with a single 1 per token
  equal_tokens,  ///< all tokens of k and v equal
  zeros,         ///< inputs zero: only the biases speak
  heavy,
  huge,  ///< inputs up to where scores and sums leave the domain of definition
  count
};

/// Which of q, k and v have factors.
enum class FactorKind : std::uint8_t {
  none,
  any,        ///< one of them at least
  of_scores,  ///< q or k at least
  of_both,    ///< q and k at least
  of_values,  ///< v at least
  in_blocks,  ///< k or v at least, and where there are rows for two blocks there are two
  count
};

/// How long the sequences of a batch are, beside the M and N that the longest may have.
enum class LengthKind : std::uint8_t {
  none,     ///< all as long as that
  uniform,  ///< from nothing to all
  edges,    ///< around nothing, all, and multiples of tiles of 8 to 128
  full,     ///< as none, but said
  ones,     ///< one query, one key
  decode,   ///< one query, keys from one to all
  empty,    ///< as uniform, but that one sequence has no queries, no keys or neither
  keys,     ///< of keys alone
  queries,  ///< of queries alone
  count
};

/// How the gradients by the output are made.
enum class LossKind : std::uint8_t {
  none,  ///< none are asked for
  gaussian,
  one_hot,     ///< one column of each row
  cancelling,  ///< of alternating signs, so that values that are alike leave little of each other
  huge,
  subnormal,
  zero_rows,  ///< of half of the rows
  heavy,
  integers,
  count
};

/// Of a multihead case that is no self-attention: what is one tensor all the same.
enum class OneTensor : std::uint8_t {
  none,
  keys_and_values,   ///< as a decoder attends to what an encoder made
  queries_and_keys,  ///< as where positions are added to both, and not to what is read
  count
};

enum class ScaleKind : std::uint8_t { inverse_root, one, power_of_two, uniform, count };

template <>
struct Words<LossKind> {
  static constexpr std::array<std::string_view, 9> names{"none",      "gaussian",  "one-hot", "cancelling", "huge",
                                                         "subnormal", "zero-rows", "heavy",   "integers"};
};
template <>
struct Words<ScoreKind> {
  static constexpr std::array<std::string_view, 20> names{
      "gaussian-0.1",  "gaussian",   "gaussian-10",     "heavy",           "integers",
      "powers-of-two", "exact-ties", "near-ties",       "duplicate-keys",  "dominant",
      "offset",        "spread",     "below-sentinels", "underflow-edges", "ill-conditioned",
      "zero-queries",  "huge",       "bit-classes",     "rising",          "dominant-tile"};
};
template <>
struct Words<ValueKind> {
  static constexpr std::array<std::string_view, 13> names{
      "gaussian",     "heavy",     "integers",   "powers-of-two", "ones", "one-hot",    "low-weight-one-hot",
      "zero-visible", "half-ones", "cancelling", "huge-offset",   "huge", "bit-classes"};
};
template <>
struct Words<MaskKind> {
  static constexpr std::array<std::string_view, 12> names{"none",       "random",  "first-block", "middle-block",
                                                          "last-block", "padding", "whole-row",   "whole-head",
                                                          "causal",     "bias",    "alibi",       "finite-sentinel"};
};
template <>
struct Words<MatrixKind> {
  static constexpr std::array<std::string_view, 10> names{"gaussian", "gaussian-10", "integers",     "powers-of-two",
                                                          "identity", "one-hot",     "equal-tokens", "zeros",
                                                          "heavy",    "huge"};
};
template <>
struct Words<LengthKind> {
  static constexpr std::array<std::string_view, 9> names{"none",   "uniform", "edges", "full",   "ones",
                                                         "decode", "empty",   "keys",  "queries"};
};
template <>
struct Words<ScaleKind> {
  static constexpr std::array<std::string_view, 4> names{"inverse-root", "one", "power-of-two", "uniform"};
};

/// "empty" without queries or keys; by the longer of M and N "large" (9 to 256) or "long"; else "small", or "wide" with
/// more than 8 columns.
[[nodiscard]] std::string_view shape_name(std::int64_t queries, std::int64_t keys, std::int64_t dk, std::int64_t dv);

/// Every word that "kinds" of a drawn case of an operation may hold, group by group: "scores:gaussian-0.1", …
[[nodiscard]] std::vector<std::string> all_kinds(Operation operation);
/// Adds the word group + name ("shape:", "small") to a case's "kinds", where it has any.
void add_kind(Case& c, std::string_view group, std::string_view name);
/// Removes the words of a group from a case's "kinds": for what was drawn and then arranged to be something else.
void drop_kinds(Case& c, std::string_view group);

/// Of the words of a case that has any those about variants that are tensors say again what it has.
void restate_variants(Case& c);

/// Sets one element of q, k or v after the fill: index modulo the number of elements, value rounded, made finite.
struct Override {
  Slot slot = Slot::q;
  std::uint32_t index = 0;
  double value = 0.0;
};

struct Recipe {
  Operation operation = Operation::attention;
  DType dtype = DType::f32;
  std::int32_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, dk = 1, dv = 1;
  std::int32_t c_q = 1, c_k = 1, c_v = 1, d_o = 1;  ///< multihead only
  ScoreKind scores = ScoreKind::gaussian;
  ValueKind values = ValueKind::gaussian;
  MatrixKind matrices = MatrixKind::gaussian;  ///< multihead only
  MaskKind mask = MaskKind::none;
  bool boolean_mask = false;  ///< boolean where the kind only hides
  bool mask_per_batch = false, mask_per_head = false;
  bool self_attention = false;                                            ///< multihead: q, k and v are the same tensor
  OneTensor one_tensor = OneTensor::none;                                 ///< multihead
  bool biases = false, key_value_bias = false, output_projection = true;  ///< multihead
  /// multihead with biases: which of b_q, b_k, b_v and b_o are not there all the same, bit by bit.
  std::uint32_t left_out_biases = 0;
  ScaleKind scale = ScaleKind::inverse_root;
  Causal causal = Causal::none;
  MaskConvention convention = MaskConvention::post_scale;
  /// Those of later versions of the contract; the others stand above.
  ArgumentValues arguments = neutral_arguments();
  LengthKind lengths = LengthKind::none;  ///< of an attention case's sequences, drawn from the seed
  bool left_pad = false;                  ///< and keys of theirs before the first one, so many as the seed says
  bool sinks = false;                     ///< a score without a key for each head, drawn from the seed
  bool dropout = false;                   ///< weights that are dropped, drawn from the seed; the rate is an argument
  /// What takes from scores by distance, for each head, drawn from the seed; what distances count from is an argument.
  bool slopes = false;
  FactorKind descale = FactorKind::none;  ///< factors of q, k or v, drawn from the seed
  LossKind loss = LossKind::none;         ///< gradients by the output, drawn from the seed
  bool loss_by_lse = false;               ///< and by the log-sum-exp, of its size
  bool own_dropout = false;               ///< weights that a kernel is to drop by a mask of its own
  double trained_rate = 0;                ///< not 0: that of dropout, of a shape that has it (with_later_arguments)
  /// Of memory. Of what is `repeated`, the slices along an axis drawn from the seed are made equal, so that the layout
  /// has something to repeat; a mask is spread out over the heads.
  Layouts layouts{};
  std::uint64_t seed = 0;  ///< of every number in the tensors
  std::int32_t override_count = 0;
  std::array<Override, 4> overrides{};
  /// Of the limits below those of large cases hold.
  bool large = false;
  /// Not 0: so many rows of q of each head are drawn, and the others repeat them in turn.
  std::int32_t distinct_queries = 0;
};

/// Of the axes that arguments of variants have to do with; 0 of the others.
[[nodiscard]] AxisExtents axis_extents(const Recipe& recipe);

/// Distinct rows of q of a head where few stand for all. A prime, so that no two rows that lie a multiple of a tile
/// apart, or a power of two, are the same.
inline constexpr std::int32_t distinct_queries = 17;

/// The largest M or N, and the largest number of elements of one tensor, of a decoded case.
inline constexpr std::int64_t most_tokens = 16384, most_tokens_of_large = std::int64_t{1} << 20;
inline constexpr std::int64_t most_elements = std::int64_t{1} << 22, most_elements_of_large = std::int64_t{1} << 30;
/// The largest number of elements of a large case's mask; it has none where they would be more.
inline constexpr std::int64_t most_masked_of_large = std::int64_t{1} << 24;

/// A kind of lengths other than none.
void give_lengths(Recipe& recipe, Stream& stream);
/// Weights that are dropped, at one of the rates that are in use, at none, or at any.
void give_dropout(Recipe& recipe, Stream& stream);
/// Slopes, of positions that count from the first key or from the last one; as the recipe has it where it has a window.
void give_slopes(Recipe& recipe, Stream& stream);
/// Weights that are dropped by a mask which the kernel draws, at one of the rates that are in use, or at one between
/// 1/2048 and 1/2: of small ones it shows best that a byte decides.
void give_own_dropout(Recipe& recipe, Stream& stream);
/// Gives a variant of the operation to the recipe, or takes it away again: each as often as any other, and now and then
/// another one beside it. Nothing where there are none.
void change_variant(Recipe& recipe, Stream& stream);
/// Gives an attention recipe one variant in two: kernels that serve have many of them, which meet in long cases.
void give_several_variants(Recipe& recipe, Stream& stream);

/// The case of a recipe; total: extents are brought into range, kv_heads to a divisor of heads, kinds into their range.
/// Every number is finite and representable in the dtype. Metadata: "kinds", "strides" where a layout is not row-major,
/// and "edge" (edge.h) in one case of two, by the seed.
[[nodiscard]] Case decode(Recipe recipe);

}  // namespace attest
