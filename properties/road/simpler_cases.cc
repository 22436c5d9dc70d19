#include "properties/road/simpler_cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "core/problem/descale.h"
#include "core/problem/edge.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"
#include "properties/road/simplify.h"

namespace attest {
namespace {

/// What may be neutral on its own: no extent, and no number that every problem has, which is tried after all else.
template <class Value>
bool is_form(const ScalarField<Value>& field) {
  return !field.is_extent && !field.is_detail && !(field.is_original() && std::is_floating_point_v<Value>);
}

/// value = to, where it was not.
template <class Value>
bool set(Value& value, const Value& to) {
  return std::exchange(value, to) != to;
}

/// A number of a row, where it is no other and may be.
template <class Value>
bool set_within(Case& c, const ScalarField<Value>& field, const Value& to) {
  return to >= field.range.least && to <= field.range.most && set(c.*field.member, to);
}

/// The argument says nothing any more, and neither do the details of its variant where nothing is left of that.
template <class Value>
bool make_neutral(Case& c, const ScalarField<Value>& field) {
  if (!set(c.*field.member, field.neutral)) return false;
  if (!field.is_original() && !has_variant(c, field.variant.name)) drop_variant(c, field.variant.name);
  settle_alignment(c);
  return true;
}

/// Without one of the tensors of a variant that may be without it, or without the variant.
bool leave_out(Case& c, const TensorField& field) {
  if (!c[field.slot].present()) return false;
  // Pages need them.
  if (field.slot == Slot::kv_lengths && c[Slot::page_table].present()) return false;
  if (field.content == Content::length || field.content == Content::factor || field.slot == Slot::page_table_v)
    c[field.slot] = Tensor();
  else
    drop_variant(c, field.variant.name);
  settle_blocks(c);
  return true;
}

bool remove(Case& c, std::initializer_list<Slot> slots) {
  if (!c[*slots.begin()].present()) return false;
  for (const Slot slot : slots) c[slot] = Tensor();
  return true;
}

/// One entry's slopes for all of a batch.
bool share_slopes(Case& c) {
  if (!c[Slot::alibi_slopes].present() || c[Slot::alibi_slopes].shape()[0] == 1) return false;
  return set(c[Slot::alibi_slopes], first_row(c[Slot::alibi_slopes]));
}

/// The first head's slope for all.
bool level_slopes(Case& c) {
  const Tensor& slopes = c[Slot::alibi_slopes];
  if (!slopes.present()) return false;
  const std::int64_t heads = slopes.shape()[1];
  return set(c[Slot::alibi_slopes], mapped(slopes, [&](std::int64_t e, double) { return slopes[e / heads * heads]; }));
}

/// Without blocks of factors, then one for all heads and entries, then 1.
bool join_blocks(Case& c) {
  const bool had = c.q_descale_block != 0 || c.kv_descale_block != 0;
  set_block(c, true, 0), set_block(c, false, 0);
  return had;
}
bool share_factors(Case& c) {
  bool changed = false;
  for (const Slot slot : {Slot::q_descale, Slot::k_descale, Slot::v_descale})
    if (c[slot].present() && c[slot].shape()[0] * c[slot].shape()[1] > 1)
      changed = true, c[slot] = of_first_head(first_row(c[slot]));
  return changed;
}
bool round_factors(Case& c) {
  bool changed = false;
  for (const Slot slot : {Slot::q_descale, Slot::k_descale, Slot::v_descale})
    if (c[slot].present())
      changed |=
          set(c[slot], mapped(c[slot], [](std::int64_t, double x) { return std::exp2(std::round(std::log2(x))); }));
  return changed;
}

/// Without packed sequences of no token.
bool without_empty_sequences(Case& c) {
  if (!c[Slot::q_starts].present()) return false;
  Indices kept;
  for (std::int64_t s = 0; s < sequence_count(c); ++s)
    if (const Sequence own = sequence_of(c, s); own.queries + own.keys > 0) kept.push_back(s);
  if (kept.empty() || std::ssize(kept) == sequence_count(c)) return false;
  c = with_sequences(c, kept);
  return true;
}

Step plain_layout(auto part) {
  return [part](Case& c) {
    Layouts layouts = layouts_of(c);
    if (!set(part(layouts), MemoryLayout::row_major)) return false;
    set_layouts(c, layouts);
    return true;
  };
}

std::vector<Step> made_form_steps(Operation operation) {
  std::vector<Step> steps;
  steps.reserve(slot_count);
  for (int slot = 0; slot < slot_count; ++slot)
    steps.push_back(
        plain_layout([slot](Layouts& layouts) -> MemoryLayout& { return layouts[static_cast<Slot>(slot)]; }));
  steps.push_back(plain_layout([](Layouts& layouts) -> MemoryLayout& { return layouts.out; }));
  steps.push_back(plain_layout([](Layouts& layouts) -> MemoryLayout& { return layouts.lse; }));
  steps.emplace_back([](Case& c) {
    if (edge_of(c) == Edge::none) return false;
    set_edge(c, Edge::none);
    return true;
  });
  steps.emplace_back([](Case& c) { return remove(c, {Slot::mask}); });
  for_each_scalar(operation, [&]<class Value>(const ScalarField<Value>& field) {
    if (!is_form(field)) return;
    steps.emplace_back([&field](Case& c) { return make_neutral(c, field); });
    if constexpr (std::is_integral_v<Value>) {
      steps.emplace_back([&field](Case& c) {
        Value& value = c.*field.member;
        return value != field.neutral && set(value, field.range.least + (value - field.range.least) / 2);
      });
    }
  });
  for (const TensorField& field : tensor_fields) {
    if (field.is_original() || field.axes(operation).rank == 0) continue;
    steps.emplace_back([&field](Case& c) { return leave_out(c, field); });
  }
  if (operation == Operation::attention)
    for (const auto step :
         {without_empty_sequences, share_slopes, level_slopes, join_blocks, share_factors, round_factors})
      steps.emplace_back(step);
  steps.emplace_back([](Case& c) { return remove(c, {Slot::d_lse}); });
  steps.emplace_back([](Case& c) { return remove(c, {Slot::bias_k, Slot::bias_v}); });
  steps.emplace_back([](Case& c) { return remove(c, {Slot::b_q, Slot::b_k, Slot::b_v, Slot::b_o}); });
  for_each_scalar(operation, [&]<class Value>(const ScalarField<Value>& field) {
    if constexpr (std::is_floating_point_v<Value>) {
      steps.emplace_back([&field](Case& c) { return make_neutral(c, field); });
      steps.emplace_back([&field](Case& c) {
        // The nearest power of two, of those that it may be.
        const Value value = c.*field.member, most = std::floor(std::log2(field.range.most));
        return value > 0 && set_within(c, field, std::exp2(std::min(std::round(std::log2(value)), most)));
      });
    }
  });
  return steps;
}

std::int64_t elements_of(const Case& c) {
  std::int64_t elements = 0;
  for (const Tensor& tensor : c.tensors) elements += tensor.present() ? tensor.elements() : 0;
  return elements;
}

/// What is selected; false where that is no less: widths that are tied to others come back (keep_widths).
bool keep_only(Case& c, const Selection& kept) {
  Case smaller = select(c, kept);
  if (elements_of(smaller) >= elements_of(c)) return false;
  c = std::move(smaller);
  return true;
}

/// Fewer heads: each alone, then the first and the last.
void add_head_steps(const Case& c, std::vector<Step>& steps) {
  const Extents e = extents_of(c);
  const auto keep = [&](const Selection& kept) {
    steps.emplace_back([kept](Case& smaller) { return keep_only(smaller, kept); });
  };
  for (std::int64_t head = 0; e.heads > 1 && head < e.heads; ++head) {
    Selection s = everything(c);
    keep_head(e, s, head);
    keep_widths(c, s);
    keep(s);
  }
  if (e.heads < 3) return;
  Selection s = everything(c);
  s.heads = {0, e.heads - 1};
  if (e.kv_heads > 0) s.kv_heads = {0, e.kv_heads - 1};
  keep_widths(c, s);
  keep(s);
}

/// The axis of tensors whose indices a part of a selection picks, of those near whose lengths numbers are drawn.
std::optional<Axis> axis_of(Indices Selection::* part) {
  if (part == &Selection::keys) return Axis::keys;
  if (part == &Selection::queries) return Axis::queries;
  return std::nullopt;
}

template <class Value>
bool is_near(const ScalarField<Value>& field, const AxisGroup& axis) {
  const auto near = std::span(field.near).first(static_cast<std::size_t>(field.near_count));
  return std::ranges::any_of(axis, [&](const auto part) {
    const std::optional<Axis> one = axis_of(part);
    return one && std::ranges::count(near, *one) > 0;
  });
}

/// The first 1, 2, 3, then a half, three quarters and so on of its indices, then all but a half, a quarter and so on
/// from each place. Behind each the same with the numbers near that axis.
void add_axis_steps(const Case& c, const AxisGroup& axis, std::vector<Step>& steps) {
  const Selection all = everything(c);
  const auto extent = static_cast<std::int64_t>((all.*axis.front()).size());
  for (const auto part : axis) {
    if (static_cast<std::int64_t>((all.*part).size()) != extent) return;
  }
  const bool near_it = has_near(c, axis);
  const auto keep = [&](std::int64_t without, std::int64_t count) {
    for (const bool near : {false, true}) {
      if (near && !near_it) return;
      steps.emplace_back([&axis, without, count, near](Case& smaller) {
        Selection s = everything(smaller);
        for (const auto part : axis) {
          const auto first = (s.*part).begin() + without;
          (s.*part).erase(first, first + count);
        }
        keep_widths(smaller, s);
        if (!keep_only(smaller, s)) return false;
        if (near) shorten_near(smaller, axis, count);
        return true;
      });
    }
  };
  for (std::int64_t few = 1; few <= 3 && few < extent; ++few) keep(few, extent - few);
  for (std::int64_t gone = extent / 2; gone > 0 && extent - gone > 3; gone /= 2) keep(extent - gone, gone);
  for (std::int64_t chunk = extent / 2; chunk > 0; chunk /= 2) {
    // What is left without the last chunk was tried above.
    for (std::int64_t from = 0; from + chunk < extent; from += chunk) keep(from, chunk);
  }
}

void add_number_steps(const Case& c, std::vector<Step>& steps) {
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    if constexpr (std::is_floating_point_v<Value>) {
      if (field.is_original() || c.*field.member == field.neutral) return;
      for (const Simplification to : simplifications) {
        if (to == Simplification::zero) continue;
        steps.emplace_back([&field, to](Case& changed) {
          const double value = simpler(changed.*field.member, to);
          return complexity(DType::f64, value) < complexity(DType::f64, changed.*field.member) &&
                 set_within(changed, field, value);
        });
      }
    }
  });
  for (int index = 0; index < slot_count; ++index) {
    const auto slot = static_cast<Slot>(index);
    if (!c[slot].present()) continue;
    for (const Simplification simpler : simplifications)
      steps.emplace_back([slot, simpler](Case& changed) { return simplify_all(changed, slot, simpler); });
    for (std::int64_t element = 0; c[slot].elements() <= 64 && element < c[slot].elements(); ++element) {
      for (const Simplification simpler : simplifications)
        steps.emplace_back(
            [slot, element, simpler](Case& changed) { return simplify_one(changed, slot, element, simpler); });
    }
  }
}

}  // namespace

const std::vector<AxisGroup>& axes_of(Operation operation) {
  using S = Selection;
  static const std::vector<AxisGroup> attention{{&S::batch}, {&S::keys}, {&S::queries},   {&S::queries, &S::keys},
                                                {&S::dk},    {&S::dv},   {&S::dk, &S::dv}};
  static const std::vector<AxisGroup> multihead{
      {&S::batch}, {&S::keys}, {&S::queries}, {&S::queries, &S::keys},     {&S::dk, &S::dv}, {&S::dk}, {&S::dv},
      {&S::c_q},   {&S::c_k},  {&S::c_v},     {&S::c_q, &S::c_k, &S::c_v}, {&S::d_o}};
  return operation == Operation::attention ? attention : multihead;
}

bool has_near(const Case& c, const AxisGroup& axis) {
  bool found = false;
  for_each_scalar(c.operation, [&](const auto& field) {
    found = found || (is_near(field, axis) && c.*field.member != field.neutral);
  });
  return found;
}

void shorten_near(Case& c, const AxisGroup& axis, std::int64_t gone) {
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    if constexpr (std::is_integral_v<Value>) {
      Value& value = c.*field.member;
      if (is_near(field, axis) && value != field.neutral)
        value = std::max(field.range.least, static_cast<Value>(value - gone));
    }
  });
}

void keep_head(const Extents& e, Selection& selection, std::int64_t head) {
  selection.heads = {head};
  if (e.kv_heads > 0) selection.kv_heads = {head / (e.heads / e.kv_heads)};
}

void keep_group(const Extents& e, Selection& selection, std::int64_t kv_head) {
  const std::int64_t size = e.heads / e.kv_heads;
  selection.heads.resize(static_cast<std::size_t>(size));
  std::iota(selection.heads.begin(), selection.heads.end(), kv_head * size);
  selection.kv_heads = {kv_head};
}

void keep_first_of_groups(const Extents& e, Selection& selection, std::int64_t few) {
  const std::int64_t size = e.heads / e.kv_heads;
  std::erase_if(selection.heads, [&](std::int64_t head) { return head % size >= few; });
}

Selection first_of_all(const Case& c) {
  Selection first = everything(c);
  for (const AxisGroup& axis : axes_of(c.operation)) {
    for (const auto part : axis) {
      if (!(first.*part).empty()) first.*part = {0};
    }
  }
  keep_head(extents_of(c), first, 0);
  keep_widths(c, first);
  return first;
}

const std::vector<Step>& form_steps(Operation operation) {
  static const std::vector<Step> attention = made_form_steps(Operation::attention),
                                 multihead = made_form_steps(Operation::multihead);
  return operation == Operation::attention ? attention : multihead;
}

void make_plain(Case& c) {
  c[Slot::mask] = Tensor();
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    if (is_form(field) || field.is_detail) c.*field.member = field.neutral;
  });
  for (const TensorField& field : tensor_fields)
    if (!field.is_original()) c[field.slot] = Tensor();
  set_layouts(c, Layouts());
}

std::vector<Step> steps_from(const Case& c) {
  std::vector<Step> steps;
  add_head_steps(c, steps);
  for (const AxisGroup& axis : axes_of(c.operation)) add_axis_steps(c, axis, steps);
  steps.insert(steps.end(), form_steps(c.operation).begin(), form_steps(c.operation).end());
  add_number_steps(c, steps);
  return steps;
}

}  // namespace attest
