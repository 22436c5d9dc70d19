// The arguments of attention, a row each. Whatever has to know them all walks these rows: the case file, the C
// structures, the process of a shared library, validation, selection, shrinking and the words for people. An argument
// that a row describes needs nothing else of them.
#pragma once

#include <attest/kernel.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/problem/problem.h"

namespace attest {

/// The axes of tensors, in the letters of kernel-interface.md.
enum class Axis : std::uint8_t {
  batch,
  heads,
  kv_heads,
  queries,
  keys,
  dk,
  dv,
  c_q,
  c_k,
  c_v,
  key_columns,    ///< heads*dk
  value_columns,  ///< heads*dv
  d_o,
  starts,    ///< of so many sequences and one more
  columns,   ///< of a table of pages
  appended,  ///< keys that come with a call
  q_blocks,  ///< of rows that have a factor together
  kv_blocks  ///< of keys
};
template <>
struct Words<Axis> {
  static constexpr std::array<std::string_view, 18> names{"batch",
                                                          "heads",
                                                          "kv_heads",
                                                          "M",
                                                          "N",
                                                          "dk",
                                                          "dv",
                                                          "c_q",
                                                          "c_k",
                                                          "c_v",
                                                          "heads*dk",
                                                          "heads*dv",
                                                          "d_o",
                                                          "sequences + 1",
                                                          "columns",
                                                          "L",
                                                          "blocks of rows",
                                                          "blocks of keys"};
};
inline constexpr std::size_t axis_count = Words<Axis>::names.size();

/// The axes of a tensor, in order.
struct Axes {
  std::array<Axis, 4> axis{};
  int rank = 0;    ///< 0: the operation does not take the tensor
  int shared = 0;  ///< so many of the first may be 1 and then serve every index
  bool required = false;

  [[nodiscard]] constexpr Axis operator[](int i) const { return axis[static_cast<std::size_t>(i)]; }
};

/// What the numbers of a tensor are, and so what they may be.
enum class Content : std::uint8_t {
  input,   ///< finite, unless the provenance of a case says "non_finite": "yes"
  mask,    ///< of any dtype; finite or -inf, bool 0 or 1
  weight,  ///< finite
  logit,   ///< of a floating dtype of its own; finite or -inf
  length,  ///< i32: how many of an axis there are, from 0 to all
  start,   ///< i32: where parts of an axis begin and the last one ends; 0, and not decreasing, to all at most
  place,   ///< i32: where something lies in a cache, from 0; where nothing is read, anything
  choice,  ///< bool, 0 or 1
  slope,   ///< f32: finite
  factor   ///< f32: finite, above 0
};
/// Is its content whole numbers about an axis, which change with what is left of the axis?
[[nodiscard]] constexpr bool counts(Content content) {
  return content == Content::length || content == Content::start;
}

/// What kernels of the contract's first version do not know: arguments that belong together, under one name. It reaches
/// the kernels alone whose manifest's "variants" lists it, and is stated where one of its arguments is not neutral.
struct Variant {
  std::string_view name;
  std::uint32_t bit = 0;            ///< in attest_problem.variants
  std::string_view words = {};      ///< for people: what a problem of it has
  bool is_about_sequences = false;  ///< it says which rows and keys are a sequence's (sequences.h)
  bool is_about_memory = false;     ///< it says where k and v lie in a cache (kv_cache.h)

  [[nodiscard]] constexpr bool operator==(const Variant& other) const { return name == other.name; }
};
inline constexpr Variant window_variant{"window", ATTEST_WINDOW, "windows"},
    lengths_variant{"lengths", ATTEST_LENGTHS, "sequences with lengths of their own", true},
    packed_variant{"packed", ATTEST_PACKED, "packed sequences", true},
    left_pad_variant{"left_pad", ATTEST_LEFT_PAD, "padding before a sequence's keys", true},
    paged_variant{"paged", ATTEST_PAGED, "pages of a cache", false, true},
    append_variant{"append", ATTEST_APPEND, "keys that a call appends to a cache", false, true},
    cache_index_variant{"cache_index", ATTEST_CACHE_INDEX, "rows of a cache", false, true},
    sink_variant{"sink", ATTEST_SINK, "sinks"}, softcap_variant{"softcap", ATTEST_SOFTCAP, "capped scores"},
    dropout_variant{"dropout", ATTEST_DROPOUT, "dropped weights"}, alibi_variant{"alibi", ATTEST_ALIBI, "ALiBi slopes"},
    chunk_variant{"chunk", ATTEST_CHUNK, "chunks of keys"},
    descale_variant{"descale", ATTEST_DESCALE, "factors of q, k or v"};
/// As a word beside variants where a law says with which it holds: a gradient by the log-sum-exp, which belongs to
/// none.
inline constexpr std::string_view by_lse = "d_lse";
/// Those that ask where a row's position counts from (sight.h).
inline constexpr std::array positional_variants{window_variant, chunk_variant, alibi_variant};
[[nodiscard]] constexpr bool is_positional(std::string_view variant) {
  return std::ranges::any_of(positional_variants, [&](const Variant& one) { return one.name == variant; });
}

struct TensorField {
  Slot slot;
  Content content;
  Axes attention, multihead;
  attest_tensor attest_problem::* in_attention;
  attest_tensor attest_multihead_problem::* in_multihead;
  /// Without a name: of the first version of the contract.
  Variant variant{};
  /// What the numbers of a length or a start count.
  Axis counted{};

  [[nodiscard]] constexpr std::string_view name() const { return name_of(slot); }
  [[nodiscard]] constexpr bool is_original() const { return variant.name.empty(); }
  [[nodiscard]] constexpr const Axes& axes(Operation operation) const {
    return operation == Operation::attention ? attention : multihead;
  }
};

namespace fields_detail {

constexpr Axes axes(bool required, int shared, std::initializer_list<Axis> list) {
  Axes result{.axis = {}, .rank = static_cast<int>(list.size()), .shared = shared, .required = required};
  std::size_t i = 0;
  for (const Axis axis : list) result.axis[i++] = axis;
  return result;
}
constexpr Axes required(std::initializer_list<Axis> list) {
  return axes(true, 0, list);
}
constexpr Axes optional(std::initializer_list<Axis> list) {
  return axes(false, 0, list);
}

}  // namespace fields_detail

/// By Slot.
inline constexpr std::array<TensorField, slot_count> tensor_fields = [] {
  using enum Axis;
  using fields_detail::optional, fields_detail::required;
  using P = attest_problem;
  using H = attest_multihead_problem;
  constexpr Content input = Content::input, weight = Content::weight, length = Content::length, start = Content::start,
                    place = Content::place, logit = Content::logit, choice = Content::choice, slope = Content::slope,
                    factor = Content::factor;
  // The first two axes may be 1, the form of both operations.
  constexpr Axes mask = fields_detail::axes(false, 2, {batch, heads, queries, keys});
  constexpr Axes of_keys = fields_detail::axes(false, 3, {batch, kv_heads, kv_blocks});
  return std::array<TensorField, slot_count>{{
      {Slot::q, input, required({batch, heads, queries, dk}), required({batch, queries, c_q}), &P::q, &H::q},
      {Slot::k, input, required({batch, kv_heads, keys, dk}), required({batch, keys, c_k}), &P::k, &H::k},
      {Slot::v, input, required({batch, kv_heads, keys, dv}), required({batch, keys, c_v}), &P::v, &H::v},
      {Slot::mask, Content::mask, mask, mask, &P::mask, &H::mask},
      {Slot::w_q, weight, {}, required({c_q, key_columns}), nullptr, &H::w_q},
      {Slot::w_k, weight, {}, required({c_k, key_columns}), nullptr, &H::w_k},
      {Slot::w_v, weight, {}, required({c_v, value_columns}), nullptr, &H::w_v},
      {Slot::b_q, weight, {}, optional({key_columns}), nullptr, &H::b_q},
      {Slot::b_k, weight, {}, optional({key_columns}), nullptr, &H::b_k},
      {Slot::b_v, weight, {}, optional({value_columns}), nullptr, &H::b_v},
      {Slot::w_o, weight, {}, optional({value_columns, d_o}), nullptr, &H::w_o},
      {Slot::b_o, weight, {}, optional({d_o}), nullptr, &H::b_o},
      {Slot::bias_k, weight, {}, optional({key_columns}), nullptr, &H::bias_k},
      {Slot::bias_v, weight, {}, optional({value_columns}), nullptr, &H::bias_v},
      {Slot::q_lengths, length, optional({batch}), {}, &P::q_lengths, nullptr, lengths_variant, queries},
      {Slot::kv_lengths, length, optional({batch}), {}, &P::kv_lengths, nullptr, lengths_variant, keys},
      {Slot::q_starts, start, optional({starts}), {}, &P::q_starts, nullptr, packed_variant, queries},
      {Slot::kv_starts, start, optional({starts}), {}, &P::kv_starts, nullptr, packed_variant, keys},
      {Slot::left_pad, length, optional({batch}), {}, &P::left_pad, nullptr, left_pad_variant, keys},
      {Slot::page_table, place, optional({batch, columns}), {}, &P::page_table, nullptr, paged_variant},
      {Slot::page_table_v, place, optional({batch, columns}), {}, &P::page_table_v, nullptr, paged_variant},
      {Slot::cache_index, place, optional({batch}), {}, &P::cache_index, nullptr, cache_index_variant},
      {Slot::k_new, input, optional({batch, kv_heads, appended, dk}), {}, &P::k_new, nullptr, append_variant},
      {Slot::v_new, input, optional({batch, kv_heads, appended, dv}), {}, &P::v_new, nullptr, append_variant},
      {Slot::sink, logit, optional({heads}), {}, &P::sink, nullptr, sink_variant},
      {Slot::keep, choice, mask, {}, &P::keep, nullptr, dropout_variant},
      {Slot::alibi_slopes,
       slope,
       fields_detail::axes(false, 1, {batch, heads}),
       {},
       &P::alibi_slopes,
       nullptr,
       alibi_variant},
      {Slot::q_descale,
       factor,
       fields_detail::axes(false, 3, {batch, heads, q_blocks}),
       {},
       &P::q_descale,
       nullptr,
       descale_variant},
      {Slot::k_descale, factor, of_keys, {}, &P::k_descale, nullptr, descale_variant},
      {Slot::v_descale, factor, of_keys, {}, &P::v_descale, nullptr, descale_variant},
      // No members of the forward pass's problem.
      {Slot::d_out, input, optional({batch, heads, queries, dv}), {}, nullptr, nullptr},
      {Slot::d_lse, input, optional({batch, heads, queries}), {}, nullptr, nullptr},
  }};
}();

/// The operations that have an argument.
enum class Operations : std::uint8_t { attention, multihead, both };

/// From `least` to `most`; words have none.
template <class Value>
struct Range {
  Value least{}, most{};
};
template <class Value>
  requires std::is_enum_v<Value>
struct Range<Value> {};

/// An argument that is one number or word.
template <class Value>
struct ScalarField {
  /// As it stands in the C structures. An argument of a variant that is not there is 0.
  using InC = std::conditional_t<std::is_enum_v<Value>, std::int32_t, Value>;

  std::string_view name;
  Operations of = Operations::both;
  Value Problem::* member;
  /// Asks nothing of a kernel; what a violation that does not need the argument is shrunk to.
  Value neutral;
  /// A word it may be, for who left it out of a case file that must state it; "": it may be left out, and is neutral.
  std::string_view example = {};
  InC attest_problem::* in_attention = nullptr;
  InC attest_multihead_problem::* in_multihead = nullptr;
  /// The least and the largest that it may be, of a number.
  Range<Value> range{};
  /// How long an axis is, which changes with the tensors that have it.
  bool is_extent = false;
  /// Without a name: of the first version of the contract, in which every case states it and every kernel knows it.
  Variant variant{};
  /// Says how its variant's other arguments are meant, and nothing by itself.
  bool is_detail = false;
  /// A detail of these, its own variant among them.
  std::span<const Variant> shared{};
  /// The axes near whose lengths a number is worth drawing.
  std::array<Axis, 2> near{};
  int near_count = 0;
  /// Where a number is worth drawing, of a wide range; as its range, where they are empty.
  Range<Value> usual{};

  [[nodiscard]] constexpr bool is_original() const { return variant.name.empty(); }

  /// Does it belong to the variant?
  [[nodiscard]] constexpr bool is_of(std::string_view asked) const {
    return variant.name == asked ||
           std::ranges::any_of(shared, [&](const Variant& other) { return other.name == asked; });
  }
  /// In attest_problem.variants, of its variant and of those that share it.
  [[nodiscard]] constexpr std::uint32_t bits() const {
    std::uint32_t all = variant.bit;
    for (const Variant& other : shared) all |= other.bit;
    return all;
  }
  [[nodiscard]] constexpr bool is_of(Operation operation) const {
    return of == Operations::both || (of == Operations::attention) == (operation == Operation::attention);
  }
};

inline constexpr std::tuple scalar_fields{
    ScalarField<double>{.name = "scale",
                        .member = &Problem::scale,
                        .neutral = 1.0,
                        .example = "0.125",
                        .in_attention = &attest_problem::scale,
                        .in_multihead = &attest_multihead_problem::scale,
                        .range = {0x1p-1074, 0x1.fffffffffffffp1023}},
    ScalarField<Causal>{.name = "causal",
                        .member = &Problem::causal,
                        .neutral = Causal::none,
                        .in_attention = &attest_problem::causal,
                        .in_multihead = &attest_multihead_problem::causal},
    ScalarField<MaskConvention>{.name = "mask_convention",
                                .member = &Problem::mask_convention,
                                .neutral = MaskConvention::post_scale,
                                .in_attention = &attest_problem::mask_convention,
                                .in_multihead = &attest_multihead_problem::mask_convention},
    ScalarField<std::int32_t>{.name = "heads",
                              .of = Operations::multihead,
                              .member = &Problem::heads,
                              .neutral = 1,
                              .example = "8",
                              .in_multihead = &attest_multihead_problem::heads,
                              .range = {1, 0x7fffffff},
                              .is_extent = true},
    ScalarField<std::int64_t>{.name = "window_left",
                              .of = Operations::attention,
                              .member = &Problem::window_left,
                              .neutral = -1,
                              .in_attention = &attest_problem::window_left,
                              .range = {0, 0x7fffffff},
                              .variant = window_variant,
                              .near = {Axis::keys, Axis::queries},
                              .near_count = 2},
    ScalarField<std::int64_t>{.name = "window_right",
                              .of = Operations::attention,
                              .member = &Problem::window_right,
                              .neutral = -1,
                              .in_attention = &attest_problem::window_right,
                              .range = {0, 0x7fffffff},
                              .variant = window_variant,
                              .near = {Axis::keys, Axis::queries},
                              .near_count = 2},
    ScalarField<std::int64_t>{.name = "attention_chunk",
                              .of = Operations::attention,
                              .member = &Problem::attention_chunk,
                              .neutral = 0,
                              .in_attention = &attest_problem::attention_chunk,
                              .range = {1, 0x7fffffff},
                              .variant = chunk_variant,
                              .near = {Axis::keys, Axis::queries},
                              .near_count = 2},
    ScalarField<Causal>{.name = "alignment",
                        .of = Operations::attention,
                        .member = &Problem::alignment,
                        .neutral = Causal::none,
                        .in_attention = &attest_problem::alignment,
                        .variant = window_variant,
                        .is_detail = true,
                        .shared = positional_variants},
    ScalarField<double>{.name = "softcap",
                        .of = Operations::attention,
                        .member = &Problem::softcap,
                        .neutral = 0.0,
                        .in_attention = &attest_problem::softcap,
                        .range = {0x1p-1074, 0x1.fffffffffffffp1023},
                        .variant = softcap_variant,
                        .usual = {0.25, 256}},
    ScalarField<double>{.name = "dropout_p",
                        .of = Operations::attention,
                        .member = &Problem::dropout_p,
                        .neutral = 0.0,
                        .in_attention = &attest_problem::dropout_p,
                        .range = {0x1p-1074, 0x1.fffffffffffffp-1},
                        .variant = dropout_variant,
                        .usual = {0x1p-6, 0.75}},
    ScalarField<std::int64_t>{.name = "dropout_seed",
                              .of = Operations::attention,
                              .member = &Problem::dropout_seed,
                              .neutral = 0,
                              .in_attention = &attest_problem::dropout_seed,
                              .range = {0, 0x1fffffffffffff},
                              .variant = dropout_variant,
                              .is_detail = true},
    ScalarField<std::int64_t>{.name = "q_descale_block",
                              .of = Operations::attention,
                              .member = &Problem::q_descale_block,
                              .neutral = 0,
                              .in_attention = &attest_problem::q_descale_block,
                              .range = {1, 0x7fffffff},
                              .variant = descale_variant,
                              .is_detail = true},
    ScalarField<std::int64_t>{.name = "kv_descale_block",
                              .of = Operations::attention,
                              .member = &Problem::kv_descale_block,
                              .neutral = 0,
                              .in_attention = &attest_problem::kv_descale_block,
                              .range = {1, 0x7fffffff},
                              .variant = descale_variant,
                              .is_detail = true},
};
inline constexpr std::size_t scalar_count = std::tuple_size_v<decltype(scalar_fields)>;

/// Arguments of later versions of the contract.
inline constexpr std::size_t later_count = std::apply(
    [](const auto&... field) { return (std::size_t{0} + ... + (field.is_original() ? 0U : 1U)); }, scalar_fields);

/// visit(field) for each scalar that the operation has, in the order of the rows.
template <class Visit>
constexpr void for_each_scalar(Operation operation, Visit&& visit) {
  std::apply([&](const auto&... field) { (void(field.is_of(operation) ? (visit(field), 0) : 0), ...); }, scalar_fields);
}

/// Every scalar of a problem as a number, by row: enumerators by their values. A whole number is exact up to 2^53.
using ArgumentValues = std::array<double, scalar_count>;
[[nodiscard]] ArgumentValues argument_values(const Problem& c);
void set_arguments(Problem& c, const ArgumentValues& values);
/// Each once, in the order of the rows: those of numbers and words, then those of tensors.
[[nodiscard]] const std::vector<Variant>& variants();
/// Those that a problem has.
[[nodiscard]] std::vector<Variant> variants_of(const Problem& c);
[[nodiscard]] bool has_variant(const Problem& c, std::string_view name);
/// Has it a variant that says where k and v lie in a cache, or what of them comes to it?
[[nodiscard]] bool is_in_cache(const Problem& c);
/// Does the kernel draw what it drops? Nobody else knows what its answer is to be.
[[nodiscard]] bool draws_own_dropout(const Problem& c);
/// Makes every argument of the variant neutral, and leaves its tensors out.
void drop_variant(Problem& c, std::string_view name);
/// attest_problem.variants.
[[nodiscard]] std::uint32_t variant_bits(const Problem& c);

/// The C structure of an operation over a problem's memory, which must outlive it: attest_problem or
/// attest_multihead_problem.
template <class Packed>
[[nodiscard]] Packed pack(const Problem& c) {
  constexpr bool attention = std::same_as<Packed, attest_problem>;
  Packed problem{};
  problem.size = sizeof(Packed);
  for (const TensorField& field : tensor_fields) {
    if constexpr (attention) {
      if (field.in_attention != nullptr && (field.is_original() || c[field.slot].present()))
        problem.*field.in_attention = c[field.slot].view();
    } else {
      if (field.in_multihead != nullptr) problem.*field.in_multihead = c[field.slot].view();
    }
  }
  std::uint32_t bits = 0;
  if constexpr (attention) {
    bits = problem.variants = variant_bits(c);
    // As the contract's first version knew it, byte for byte.
    if (bits == 0) problem.size = offsetof(attest_problem, variants);
  }
  for_each_scalar(attention ? Operation::attention : Operation::multihead,
                  [&]<class Value>(const ScalarField<Value>& field) {
                    using InC = typename ScalarField<Value>::InC;
                    if (!field.is_original() && (field.bits() & bits) == 0) return;
                    if constexpr (attention) {
                      problem.*field.in_attention = static_cast<InC>(c.*field.member);
                    } else {
                      problem.*field.in_multihead = static_cast<InC>(c.*field.member);
                    }
                  });
  return problem;
}

/// How long each axis of a problem is, by Axis: as its first tensor that has the axis for itself says. 0 where none
/// does, or where the tensor has another rank than it must.
using AxisExtents = std::array<std::int64_t, axis_count>;
[[nodiscard]] AxisExtents axis_extents(const Problem& c);

/// "[batch or 1, heads or 1, M, N]".
[[nodiscard]] std::string form_of(const Axes& axes);

}  // namespace attest
