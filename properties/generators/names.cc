#include <algorithm>
#include <array>

#include "generators/recipe.h"

namespace attest {
namespace {

template <class Kind, std::size_t n>
std::string_view lookup(const std::array<std::string_view, n>& names, Kind kind) {
  static_assert(n == static_cast<std::size_t>(Kind::count));
  return kind < Kind::count ? names[static_cast<std::size_t>(kind)] : "?";
}

constexpr std::array<std::string_view, 18> score_names{
    "gaussian-0.1",    "gaussian",        "gaussian-10",     "heavy",        "integers", "powers-of-two",
    "exact-ties",      "near-ties",       "duplicate-keys",  "dominant",     "offset",   "spread",
    "below-sentinels", "underflow-edges", "ill-conditioned", "zero-queries", "huge",     "bit-classes"};
constexpr std::array<std::string_view, 13> value_names{
    "gaussian",     "heavy",     "integers",   "powers-of-two", "ones", "one-hot",    "low-weight-one-hot",
    "zero-visible", "half-ones", "cancelling", "huge-offset",   "huge", "bit-classes"};
constexpr std::array<std::string_view, 12> mask_names{"none",       "random",  "first-block", "middle-block",
                                                      "last-block", "padding", "whole-row",   "whole-head",
                                                      "causal",     "bias",    "alibi",       "finite-sentinel"};
constexpr std::array<std::string_view, 10> matrix_names{"gaussian", "gaussian-10", "integers",     "powers-of-two",
                                                        "identity", "one-hot",     "equal-tokens", "zeros",
                                                        "heavy",    "huge"};
constexpr std::array<std::string_view, 4> scale_names{"inverse-root", "one", "power-of-two", "uniform"};

}  // namespace

std::string_view name_of(ScoreKind kind) {
  return lookup(score_names, kind);
}
std::string_view name_of(ValueKind kind) {
  return lookup(value_names, kind);
}
std::string_view name_of(MaskKind kind) {
  return lookup(mask_names, kind);
}
std::string_view name_of(MatrixKind kind) {
  return lookup(matrix_names, kind);
}
std::string_view name_of(ScaleKind kind) {
  return lookup(scale_names, kind);
}

std::string_view shape_name(std::int64_t queries, std::int64_t keys, std::int64_t dk, std::int64_t dv) {
  if (queries == 0 || keys == 0) return "empty";
  const std::int64_t largest = std::max({queries, keys, dk, dv});
  return largest <= 8 ? "small" : largest <= 256 ? "large" : "long";
}

std::vector<std::string> all_kinds(Operation operation) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& group, const auto& names) {
    for (const std::string_view name : names) words.push_back(group + std::string(name));
  };
  if (operation == Operation::attention) {
    add("scores:", score_names);
    add("values:", value_names);
  } else {
    add("matrices:", matrix_names);
  }
  add("mask:", mask_names);
  add("causal:", std::array{name_of(Causal::none), name_of(Causal::top_left), name_of(Causal::bottom_right)});
  add("scale:", scale_names);
  add("shape:", std::array<std::string_view, 4>{"empty", "small", "large", "long"});
  if (operation == Operation::attention) add("overrides:", std::array<std::string_view, 1>{"yes"});
  const auto add_layouts = [&](std::string_view tensor) {
    for (int i = 1; i < static_cast<int>(MemoryLayout::count); ++i)
      words.push_back(std::string(tensor) + "-strides:" + std::string(name_of(static_cast<MemoryLayout>(i))));
  };
  const int last = operation == Operation::attention ? static_cast<int>(Slot::mask) : slot_count - 1;
  for (int i = 0; i <= last; ++i) add_layouts(name_of(static_cast<Slot>(i)));
  add_layouts("out");
  return words;
}

void add_kind(Case& c, std::string_view group, std::string_view name) {
  const auto kinds = c.metadata.find("kinds");
  if (kinds != c.metadata.end()) kinds->second.append(" ").append(group).append(name);
}

void drop_kinds(Case& c, std::string_view group) {
  const auto kinds = c.metadata.find("kinds");
  if (kinds == c.metadata.end()) return;
  std::string kept;
  for (std::size_t at = 0; at < kinds->second.size();) {
    const std::size_t end = std::min(kinds->second.find(' ', at), kinds->second.size());
    const std::string_view word = std::string_view(kinds->second).substr(at, end - at);
    if (!word.starts_with(group)) kept.append(kept.empty() ? "" : " ").append(word);
    at = end + 1;
  }
  kinds->second = std::move(kept);
}

}  // namespace attest
