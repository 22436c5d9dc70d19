#include "core/problem/fields.h"

#include <algorithm>

namespace attest {

AxisExtents axis_extents(const Problem& c) {
  AxisExtents extents{};
  std::array<bool, axis_count> known{};
  const auto learn = [&](Axis axis, std::int64_t extent) {
    const auto i = static_cast<std::size_t>(axis);
    if (!known[i]) extents[i] = extent;
    known[i] = true;
  };
  if (c.operation == Operation::multihead) learn(Axis::heads, c.heads);
  for (const TensorField& field : tensor_fields) {
    const Axes& axes = field.axes(c.operation);
    const Tensor& tensor = c[field.slot];
    // Without an output projection the heads stand side by side as they are.
    if (field.slot == Slot::w_o && !tensor.present())
      learn(Axis::d_o, extents[static_cast<std::size_t>(Axis::value_columns)]);
    if (!tensor.present() || tensor.shape().rank() != axes.rank || field.content == Content::factor) continue;
    for (int i = axes.shared; i < axes.rank; ++i) learn(axes[i], tensor.shape()[i]);
  }
  const auto blocks = [&](Axis of, std::int64_t block, Axis axis) {
    const std::int64_t extent = extents[static_cast<std::size_t>(of)];
    extents[static_cast<std::size_t>(axis)] = block > 0 ? std::max<std::int64_t>((extent + block - 1) / block, 1) : 1;
  };
  blocks(Axis::queries, c.q_descale_block, Axis::q_blocks);
  blocks(Axis::keys, c.kv_descale_block, Axis::kv_blocks);
  // Multi-head columns belong to the heads in equal shares.
  if (c.operation == Operation::multihead && c.heads > 0) {
    learn(Axis::dk, extents[static_cast<std::size_t>(Axis::key_columns)] / c.heads);
    learn(Axis::dv, extents[static_cast<std::size_t>(Axis::value_columns)] / c.heads);
  }
  return extents;
}

ArgumentValues argument_values(const Problem& c) {
  ArgumentValues values{};
  std::size_t row = 0;
  std::apply([&](const auto&... field) { ((values[row++] = static_cast<double>(c.*field.member)), ...); },
             scalar_fields);
  return values;
}

void set_arguments(Problem& c, const ArgumentValues& values) {
  std::size_t row = 0;
  const auto set = [&]<class Value>(const ScalarField<Value>& field) {
    c.*field.member = static_cast<Value>(static_cast<typename ScalarField<Value>::InC>(values[row++]));
  };
  std::apply([&](const auto&... field) { (set(field), ...); }, scalar_fields);
}

const std::vector<Variant>& variants() {
  static const std::vector<Variant> known = [] {
    std::vector<Variant> all;
    const auto add = [&](const auto& field) {
      if (!field.is_original() && std::ranges::find(all, field.variant) == all.end()) all.push_back(field.variant);
    };
    std::apply([&](const auto&... field) { (add(field), ...); }, scalar_fields);
    for (const TensorField& field : tensor_fields) add(field);
    return all;
  }();
  return known;
}

std::uint32_t variant_bits(const Problem& c) {
  std::uint32_t bits = c.append > 0 ? append_variant.bit : 0;
  for (const TensorField& field : tensor_fields)
    if (c[field.slot].present()) bits |= field.variant.bit;
  const auto add = [&](const auto& field) {
    if (!field.is_detail && c.*field.member != field.neutral) bits |= field.variant.bit;
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, scalar_fields);
  return bits;
}

bool has_variant(const Problem& c, std::string_view name) {
  const auto known = std::ranges::find(variants(), name, &Variant::name);
  return known != variants().end() && (variant_bits(c) & known->bit) != 0;
}

namespace {

bool is_in_a_pool(const Problem& c) {
  return c[Slot::page_table].present() || c[Slot::page_table_v].present() || c[Slot::cache_index].present();
}

}  // namespace

bool draws_own_dropout(const Problem& c) {
  return c.dropout_p != 0 && !c[Slot::keep].present();
}

bool is_in_cache(const Problem& c) {
  return c.append > 0 || is_in_a_pool(c);
}

std::vector<Variant> variants_of(const Problem& c) {
  const std::uint32_t bits = variant_bits(c);
  std::vector<Variant> all = variants();
  std::erase_if(all, [&](const Variant& variant) { return (bits & variant.bit) == 0; });
  return all;
}

void drop_variant(Problem& c, std::string_view name) {
  // What another variant asks for as well stays with that.
  const auto drop = [&](const auto& field) {
    const auto asks = [&](const Variant& other) { return other.name != name && has_variant(c, other.name); };
    if (field.is_of(name) && std::ranges::none_of(field.shared, asks)) c.*field.member = field.neutral;
  };
  std::apply([&](const auto&... field) { (drop(field), ...); }, scalar_fields);
  for (const TensorField& field : tensor_fields)
    if (field.variant.name == name) c[field.slot] = Tensor();
  if (name == append_variant.name) c.append = 0;
  if (!is_in_a_pool(c)) c.pool = 0;
}

std::string form_of(const Axes& axes) {
  std::string form;
  for (int i = 0; i < axes.rank; ++i) {
    form += i == 0 ? "[" : ", ";
    form += name_of(axes[i]);
    if (i < axes.shared) form += " or 1";
  }
  return form + "]";
}

}  // namespace attest
