#include "reports/judge/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/problem/memory.h"
#include "properties/generators/draw.h"
#include "properties/generators/production.h"
#include "properties/generators/stream.h"
#include "reports/run/shape_options.h"

namespace attest {
namespace {

using Mask = ContractForm::Mask;

constexpr std::array hiding{MaskKind::random,     MaskKind::first_block, MaskKind::middle_block,
                            MaskKind::last_block, MaskKind::padding,     MaskKind::causal};
constexpr std::array biasing{MaskKind::bias, MaskKind::alibi, MaskKind::random, MaskKind::padding};

template <class Value, std::size_t count>
Value one_of(Stream& stream, const std::array<Value, count>& values) {
  return values[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(count)))];
}

void take_form(Recipe& recipe, const ContractForm& form, const Manifest& law, Stream& stream) {
  recipe.causal = form.causal;
  recipe.boolean_mask = form.mask == Mask::boolean;
  recipe.mask = form.mask == Mask::none      ? MaskKind::none
                : form.mask == Mask::boolean ? one_of(stream, hiding)
                                             : one_of(stream, biasing);
  const std::vector<MaskConvention>& conventions = law.mask_conventions;
  if (!conventions.empty())
    recipe.convention = conventions[static_cast<std::size_t>(stream.below(std::ssize(conventions)))];
  recipe.layouts = {};
  if (!form.strided) return;
  const auto drawn = [&] {
    return static_cast<MemoryLayout>(1 + stream.below(static_cast<int>(MemoryLayout::repeated) - 1));
  };
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) recipe.layouts[slot] = drawn();
  recipe.layouts.out = drawn();
}

/// Every form that the law knows of.
std::vector<ContractForm> forms_of(const Manifest& law) {
  std::vector<Mask> masks{Mask::none};
  if (law.additive_masks) masks.push_back(Mask::additive);
  if (law.bool_masks) masks.push_back(Mask::boolean);
  std::vector<Causal> causal{Causal::none};
  causal.insert(causal.end(), law.causal.begin(), law.causal.end());
  std::vector<ContractForm> forms;
  for (const Mask mask : masks) {
    for (const Causal one : causal) {
      forms.push_back({mask, one, false});
      if (law.strides) forms.push_back({mask, one, true});
    }
  }
  return forms;
}

}  // namespace

std::string text_of(const ContractForm& form) {
  std::vector<std::string_view> words;
  if (form.mask == Mask::additive) words.emplace_back("additive");
  if (form.mask == Mask::boolean) words.emplace_back("bool");
  if (form.causal != Causal::none) words.push_back(name_of(form.causal));
  if (form.strided) words.emplace_back("strided");
  return words.empty() ? "plain" : fmt::format("{}", fmt::join(words, ", "));
}

std::string why_ruled_out(const Manifest& law, const Extents& e, DType dtype, const ContractForm& form) {
  // Of one batch entry, as no rule is about how many there are, and of zeros, as none is about numbers.
  const KvDtypes kv = law.kv_dtypes_for(dtype).front();
  Case c;
  c.operation = Operation::attention;
  c[Slot::q] = Tensor(dtype, {1, e.heads, e.queries, e.dk});
  c[Slot::k] = Tensor(kv.k, {1, e.kv_heads, e.keys, e.dk});
  c[Slot::v] = Tensor(kv.v, {1, e.kv_heads, e.keys, e.dv});
  if (form.mask != Mask::none)
    c[Slot::mask] = Tensor(form.mask == Mask::boolean ? DType::boolean : dtype, {1, 1, e.queries, e.keys});
  if (!law.mask_conventions.empty()) c.mask_convention = law.mask_conventions.front();
  c.scale = inverse_root(e.dk);
  c.causal = form.causal;
  return why_unsupported(law, c);
}

std::vector<ContractCell> cells_of(const Manifest& law, std::span<const Extents> shapes) {
  const std::vector<ContractForm> forms = forms_of(law);
  std::vector<ContractCell> cells;
  for (std::size_t shape = 0; shape < shapes.size(); ++shape) {
    for (const ContractForm& form : forms) {
      const Extents& e = shapes[shape];
      if (form.mask != Mask::none && e.queries * e.keys > most_masked_of_large) continue;
      for (const DType dtype : law.dtypes)
        if (why_ruled_out(law, e, dtype, form).empty()) cells.push_back({dtype, shape, form});
    }
  }
  std::ranges::sort(cells);
  return cells;
}

Case case_of(const Manifest& law, const Extents& shape, DType dtype, const ContractForm& form, std::uint64_t seed) {
  const Shapes shapes{.large = LargeCases::all, .given = {shape}};
  Stream stream(seed);
  Draw draw(dtype, stream.next(), /*k=*/stream.below(1 << 12), shapes);
  Case c = draw.attention(period_of_definition).where([&](Recipe& r) { take_form(r, form, law, stream); });
  c.provenance.property = "attention.oracle";
  c.provenance.dtype = name_of(dtype);
  return c;
}

std::optional<ContractCell> cell_of(std::span<const Extents> shapes, const Case& c) {
  if (c.operation != Operation::attention) return std::nullopt;
  const auto shape = std::ranges::find(shapes, text_of(extents_of(c)), [](const Extents& e) { return text_of(e); });
  if (shape == shapes.end()) return std::nullopt;
  ContractForm form;
  if (c.mask().present()) form.mask = c.mask().dtype() == DType::boolean ? Mask::boolean : Mask::additive;
  form.causal = c.causal;
  form.strided = !(layouts_of(c) == Layouts{});
  return ContractCell{c.dtype(), static_cast<std::size_t>(shape - shapes.begin()), form};
}

}  // namespace attest
