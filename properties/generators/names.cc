#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/problem/fields.h"
#include "properties/generators/recipe.h"

namespace attest {
namespace {

bool is_of_tensors(const Variant& variant) {
  return std::ranges::any_of(tensor_fields, [&](const TensorField& field) { return field.variant == variant; });
}

/// A variant of tensors, and the group of its kind: "sink:".
struct Group {
  Variant variant;
  std::string name;
};
const std::vector<Group>& groups_of_variants() {
  static const std::vector<Group> all = [] {
    std::vector<Group> groups;
    for (const Variant& variant : variants())
      if (is_of_tensors(variant)) groups.push_back({variant, std::string(variant.name) + ":"});
    return groups;
  }();
  return all;
}

}  // namespace

std::string_view shape_name(std::int64_t queries, std::int64_t keys, std::int64_t dk, std::int64_t dv) {
  if (queries == 0 || keys == 0) return "empty";
  const std::int64_t longest = std::max(queries, keys);
  if (longest <= 8) return std::max(dk, dv) <= 8 ? "small" : "wide";
  return longest <= 256 ? "large" : "long";
}

std::vector<std::string> all_kinds(Operation operation) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& group, const auto& names) {
    for (const std::string_view name : names) words.push_back(group + std::string(name));
  };
  if (operation == Operation::attention) {
    add("scores:", Words<ScoreKind>::names);
    add("values:", Words<ValueKind>::names);
    add("loss:", std::span(Words<LossKind>::names).subspan<1>());
  } else {
    add("matrices:", Words<MatrixKind>::names);
  }
  add("mask:", Words<MaskKind>::names);
  add("causal:", Words<Causal>::names);
  add("scale:", Words<ScaleKind>::names);
  add("shape:", std::array<std::string_view, 5>{"empty", "small", "wide", "large", "long"});
  for_each_scalar(operation, [&](const auto& field) {
    if (!field.is_original() && !field.is_detail) words.push_back(std::string(field.name) + ":given");
  });
  if (operation == Operation::attention)
    for (const Variant& variant : variants())
      if (is_of_tensors(variant)) words.push_back(std::string(variant.name) + ":given");
  if (operation == Operation::attention) add("overrides:", std::array<std::string_view, 1>{"yes"});
  const auto add_layouts = [&](std::string_view tensor) {
    const bool may_be_aliased = operation == Operation::multihead && (tensor == "k" || tensor == "v");
    for (int i = 1; i < static_cast<int>(MemoryLayout::count); ++i)
      if (const auto layout = static_cast<MemoryLayout>(i); layout != MemoryLayout::aliased || may_be_aliased)
        words.push_back(std::string(tensor) + "-strides:" + std::string(name_of(layout)));
  };
  const int last = operation == Operation::attention ? static_cast<int>(Slot::mask) : original_slots - 1;
  for (int i = 0; i <= last; ++i) add_layouts(name_of(static_cast<Slot>(i)));
  add_layouts("out");
  return words;
}

void add_kind(Case& c, std::string_view group, std::string_view name) {
  if (auto& kinds = c.provenance.kinds) kinds->append(" ").append(group).append(name);
}

void drop_kinds(Case& c, std::string_view group) {
  auto& kinds = c.provenance.kinds;
  if (!kinds || kinds->find(group) == kinds->npos) return;
  std::string kept;
  for (std::size_t at = 0; at < kinds->size();) {
    const std::size_t end = std::min(kinds->find(' ', at), kinds->size());
    const std::string_view word = std::string_view(*kinds).substr(at, end - at);
    if (!word.starts_with(group)) kept.append(kept.empty() ? "" : " ").append(word);
    at = end + 1;
  }
  kinds = std::move(kept);
}

void restate_variants(Case& c) {
  if (!c.provenance.kinds) return;
  const std::uint32_t bits = variant_bits(c);
  for (const auto& [variant, group] : groups_of_variants()) {
    drop_kinds(c, group);
    if ((bits & variant.bit) != 0) add_kind(c, group, "given");
  }
}

}  // namespace attest
