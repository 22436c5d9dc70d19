// Manifest: what a kernel supports, how it computes and what it claims (kernel-interface.md, section 3).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/kernel/backward_arithmetic.h"
#include "core/problem/case.h"
#include "core/problem/fully_masked_row.h"
#include "core/problem/selection.h"
#include "core/problem/shape_class.h"
#include "core/support/words.h"

namespace attest {

enum class Claim { deterministic, batch_invariant, padding_invariant, ignores_dead_values };
template <>
struct Words<Claim> {
  static constexpr std::array<std::string_view, 4> names{"deterministic", "batch-invariant", "padding-invariant",
                                                         "ignores-dead-values"};
};

/// What a problem may have of its own, for "requires" and "excludes".
enum class Feature {
  mask,           ///< a mask of either kind
  additive_mask,  ///< one of numbers
  bool_mask,
  causal,  ///< a causal form of either kind
  top_left,
  bottom_right,
  grouped_query,      ///< fewer key-value heads than heads
  unequal_lengths,    ///< M != N of a sequence
  fewer_keys,         ///< N < M of one
  output_projection,  ///< w_o; of attention, which has none, nothing is asked
  bias_kv,            ///< bias_k or bias_v
  window,             ///< the variants, under their names
  lengths,
  packed,
  left_pad,
  paged,
  append,
  cache_index,
  sink,
  softcap,
  dropout,
  alibi,
  chunk,
  descale,
  lse  ///< the log-sum-exp is asked for: of the call, and no problem lacks it
};
template <>
struct Words<Feature> {
  static constexpr std::array<std::string_view, 25> names{
      "mask",         "additive-mask", "bool-mask",       "causal",     "top-left",
      "bottom-right", "grouped-query", "unequal-lengths", "fewer-keys", "output-projection",
      "bias-kv",      "window",        "lengths",         "packed",     "left_pad",
      "paged",        "append",        "cache_index",     "sink",       "softcap",
      "dropout",      "alibi",         "chunk",           "descale",    "lse"};
};
static_assert(Words<Feature>::names.back() == "lse");

/// Where a kernel's tiles end: their lengths in queries and in keys, and into how many parts keys are split. A hint for
/// what is worth drawing, no limit.
struct Tiles {
  std::vector<std::int64_t> queries, keys, splits;
  [[nodiscard]] bool operator==(const Tiles&) const = default;
};

/// What becomes of the rows of an output that are in no sequence.
enum class Padding {
  undeclared,  ///< anything: they are not looked at
  zero,        ///< they are written, as 0
  untouched    ///< they are not written
};
template <>
struct Words<Padding> {
  static constexpr std::array<std::string_view, 3> names{"undeclared", "zero", "untouched"};
};

/// What a kernel says of a variant that it has.
struct VariantTerms {
  bool left = true, right = true;  ///< of a window: the ends that it may have
  /// Of windows, chunks and slopes without a causal form; unstated: those of the manifest's causal forms, or both where
  /// there are none.
  std::vector<Causal> alignment{Causal::top_left, Causal::bottom_right};
  bool queries = true, keys = true;       ///< of lengths: whose there may be
  Padding padding = Padding::undeclared;  ///< of lengths, and of packed sequences, where it is "slack"
  /// Of pages: how many keys they may have, ascending; empty: any.
  std::vector<std::int64_t> page_sizes{};
  bool any_table_tail = false;  ///< of pages: entries of a table that nobody is to read may be no page at all
  bool two_tables = false;      ///< of pages: v may have a table of its own
  std::optional<std::int64_t> max_tokens{};  ///< of an append: to an entry
  std::vector<DType> dtypes{DType::f32};     ///< of sinks: what they may be in
  bool in_max = true;                        ///< the reference point of a row's exponents is no less than its sink
  bool lse_has_sink = true;                  ///< "lse": "with" | "without"
  bool given = true, own = false;            ///< of dropout: whose masks it takes: the problem's, or one that it draws
  std::int64_t keep_levels = 0;  ///< of a mask of its own: the probability is a multiple of 1/n; 0: of nothing
  DropoutPlace applied = DropoutPlace::unstated;  ///< of dropout: where 1/(1 - p) acts
  SlopeForm form = SlopeForm::distance;           ///< of slopes: what is added to a score
  bool per_batch = false;                         ///< of slopes and factors: a batch's entries may have their own
  bool per_head = true;                           ///< of factors: heads may
  bool of_q = true, of_k = true, of_v = true;     ///< of factors: which of the tensors may have some
  /// Of factors: so many rows of q, or keys, may have one together, ascending; empty: all of a head have one.
  std::vector<std::int64_t> q_blocks{}, kv_blocks{};
  bool any_blocks = false;                            ///< any number of rows, and of keys, may
  DescalePlace dequantised = DescalePlace::unstated;  ///< of factors: "applied"
  std::vector<Feature> required{};                    ///< a problem of the variant has all of them
  std::vector<Feature> excluded{};                    ///< and none of these
  [[nodiscard]] bool operator==(const VariantTerms&) const = default;
};

/// The log-sum-exp of a row that sees no key, beside -inf.
enum class EmptyLse { minus_infinity, plus_infinity, nan };
template <>
struct Words<EmptyLse> {
  static constexpr std::array<std::string_view, 3> names{"-inf", "+inf", "nan"};
};

/// In which form a kernel returns log-sum-exps; they are put into that of the contract as they come (lse_convention.h).
struct LseConvention {
  bool of_columns =
      false;  ///< beside slopes and a causal form that of the scores plus slope * position: the bias +slope*j
  EmptyLse empty = EmptyLse::minus_infinity;
  [[nodiscard]] bool operator==(const LseConvention&) const = default;
};

/// Of Attest's own kernels, which have every variant of the contract: as much of each as there can be, and padding is
/// 0.
[[nodiscard]] std::map<std::string, VariantTerms, std::less<>> every_variant();

struct Manifest;
/// What the terms of variants say of arithmetic, VariantTerms::in_max, applied and form, every arithmetic of the
/// manifest says from then on.
void state_terms_in_arithmetic(Manifest& manifest);

/// Formats of k and v beside one of q.
struct KvDtypes {
  DType k = DType::f32, v = DType::f32;
  [[nodiscard]] bool operator==(const KvDtypes&) const = default;
};

/// What a backward pass makes of a row that sees no key.
enum class MaskedGradient {
  undeclared,  ///< no problem with such a row is sent
  zero,        ///< nothing, and its own dq is 0
  nan,         ///< nothing, and its own dq is NaN
};
template <>
struct Words<MaskedGradient> {
  static constexpr std::array<std::string_view, 3> names{"undeclared", "zero", "nan"};
};

/// What a kernel says of its backward pass.
struct BackwardTerms {
  bool dq = true, dk = true, dv = true;   ///< the gradients that it returns
  bool dmask = false, dsink = false;      ///< those of problems that have an additive mask, or sinks
  bool uses_out = true, uses_lse = true;  ///< what it is given of its forward pass
  bool d_lse = false;                     ///< a loss may have a gradient by the log-sum-exp, too
  bool own_dropout = false;               ///< it draws masks of dropout, those that its forward pass draws
  bool own_forward = false;               ///< it makes its forward pass again, and has no gradients at other answers
  MaskedGradient masked_row = MaskedGradient::undeclared;
  WeightsFrom weights = WeightsFrom::lse;
  DeltaFrom delta = DeltaFrom::unstated;
  std::vector<Claim> claims;      ///< as Manifest::claims, of gradients
  std::vector<Feature> excluded;  ///< no gradients of a problem with one of these
  [[nodiscard]] bool has(Gradient gradient) const {
    const std::array all{dq, dk, dv, dmask, dsink};
    return all[static_cast<std::size_t>(gradient)];
  }
  /// Of a problem.
  [[nodiscard]] bool returns(Gradient gradient, const Problem& c) const {
    return has(gradient) && has_argument_of(c, gradient);
  }
  [[nodiscard]] bool operator==(const BackwardTerms&) const = default;
};

/// An arithmetic of some shapes: a path of its own, as kernels have for a few queries or a wide head.
struct ArithmeticPath {
  ExtentRange queries{0, any_extent}, keys{0, any_extent}, head_dim{1, any_extent};  ///< all three must hold
  Arithmetic arithmetic;

  [[nodiscard]] bool is_taken_by(const Extents& e) const {
    return queries.has(e.queries) && keys.has(e.keys) && head_dim.has(e.dk);
  }
  [[nodiscard]] bool operator==(const ArithmeticPath&) const = default;
};

/// How a kernel computes in each of its dtypes.
struct Arithmetics {
  std::map<DType, Arithmetic> usual;
  std::map<DType, std::vector<ArithmeticPath>> paths;  ///< of a problem that takes several the first one counts
  std::map<DType, BackwardArithmetic> backward;        ///< of kernels with a backward pass; universal where not stated

  /// That of one of the dtypes outside of its paths; throws std::out_of_range for any other.
  [[nodiscard]] const Arithmetic& usual_for(DType dtype) const { return usual.at(dtype); }
  /// That of the path which the problem takes, and the usual one where it takes none; null where its dtype has none.
  [[nodiscard]] const Arithmetic* find(const Problem& problem) const;
  [[nodiscard]] bool operator==(const Arithmetics&) const = default;
};

struct Manifest {
  std::string name;
  std::string version;
  std::string source;                                ///< as source_place takes it; empty: not told
  std::vector<DType> dtypes;                         ///< input dtypes, never empty
  std::map<DType, std::vector<DType>> out_dtypes;    ///< output dtypes beyond the input's own
  std::map<DType, std::vector<KvDtypes>> kv_dtypes;  ///< of q's dtype, all that k and v may have; none stated: q's own
  Arithmetics arithmetic;                            ///< one per dtype, universal where not stated
  Arithmetics promises;  ///< what a kernel's documents say of it, judged apart from what it declares; empty: nothing
  std::vector<Claim> claims;
  FullyMaskedRow fully_masked_row = FullyMaskedRow::undeclared;
  bool any_scale = true;   ///< false: "inv-sqrt-dk" only
  bool attention = true;   ///< has the attention entry ("operations")
  bool multihead = false;  ///< has the multihead entry
  bool backward = false;   ///< has the backward entry
  BackwardTerms backward_terms;
  bool additive_masks = true;
  bool bool_masks = true;
  std::vector<DType> mask_dtypes;  ///< additive masks in formats other than q's
  std::vector<MaskConvention> mask_conventions{MaskConvention::post_scale};
  std::map<std::string, VariantTerms, std::less<>> variants;  ///< that it has, by their names in fields.h
  std::vector<Causal> causal;                                 ///< alignments supported beside none
  bool grouped_query = false;
  bool strides = false;
  bool lse = false;
  LseConvention lse_convention;
  bool thread_safe = true;
  bool shared_memory = false;  ///< a program: it takes large tensors in shared memory
  std::int64_t head_dim_multiple = 1;
  std::optional<std::int64_t> max_head_dim, max_queries, max_keys, max_heads;
  std::int64_t heads_multiple = 1;
  bool value_dim_equals_head_dim = false;  ///< "value_dim": "head_dim" | "any"
  bool self_attention_only = false;        ///< multihead: q, k and v are one tensor
  std::int64_t alignment = 0;              ///< bytes; 0: the element's
  std::vector<std::int64_t> head_dims;    ///< the dk there are, ascending, and dv where value_dims is empty; empty: any
  std::vector<std::int64_t> value_dims;   ///< the dv there are, ascending; empty: as head_dims says
  std::vector<std::int64_t> group_sizes;  ///< heads to a key-value head, ascending; empty: any
  std::int64_t queries_multiple = 1, keys_multiple = 1;  ///< 0 is a multiple
  std::int64_t min_queries = 0, min_keys = 0;
  bool same_lengths = false;        ///< M = N
  bool model_dim_is_heads = false;  ///< multihead: c_q = d_o = heads * dk, "model_dim": "heads*head_dim" | "any"
  bool zero_strides = true;         ///< of what "strides" offers: a stride of 0 too
  bool far_strides = true;          ///< and such as reach beyond 2^32 elements
  std::vector<Feature> required;    ///< every problem has them ("requires")
  std::vector<std::vector<Feature>> excluded;  ///< no problem has all of one of these lists ("excludes")
  Tiles tiles;

  /// It has the entry for it.
  [[nodiscard]] bool has(Operation operation) const {
    return operation == Operation::attention ? attention : multihead;
  }
  /// What it says of the padding of a problem that has some.
  [[nodiscard]] Padding padding_of(const Problem& problem) const;
  /// It lists the dtype for its inputs.
  [[nodiscard]] bool takes(DType dtype) const;
  /// What k and v of an attention problem may be where q is of the dtype; never empty.
  [[nodiscard]] std::vector<KvDtypes> kv_dtypes_for(DType q) const;
  [[nodiscard]] bool claims_to(Claim claim) const;
  /// The arithmetic of a problem in one of `dtypes`; throws std::out_of_range for any other.
  [[nodiscard]] const Arithmetic& arithmetic_for(const Problem& problem) const;
  /// That of its backward pass in one of `dtypes`.
  [[nodiscard]] BackwardArithmetic backward_arithmetic_for(const Problem& problem) const;
  [[nodiscard]] bool operator==(const Manifest&) const = default;
};

/// Parses and checks a manifest. Throws UsageError: one line beginning with `source` that names the key, the value and
/// the rule (unknown keys are errors with the nearest known key, contradictions are errors). What is not stated is as
/// in a default Manifest, arithmetic universal, but thread_safe is false. A name twice in one object is an error.
[[nodiscard]] Manifest parse_manifest(std::string_view json, std::string_view source);
/// A complete manifest, as JSON: parse_manifest gives it back equal, where `arithmetic` has one entry per dtype.
[[nodiscard]] std::string to_json(const Manifest& manifest);

/// Empty when the kernel can be asked to run the valid case, else why not ("has 2 queries; the manifest's max_queries
/// is 1"). head_dim_multiple and max_head_dim hold for dk and dv alike. Which scales are 1/sqrt(dk) is
/// is_inverse_root's to say (case.h). The convention of a mask matters only where the mask is
/// additive.
[[nodiscard]] std::string why_unsupported(const Manifest& manifest, const Case& c);

}  // namespace attest
