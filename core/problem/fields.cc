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
    if (!tensor.present() || tensor.shape().rank() != axes.rank) continue;
    for (int i = axes.shared; i < axes.rank; ++i) learn(axes[i], tensor.shape()[i]);
  }
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

std::vector<std::string_view> later_arguments() {
  std::vector<std::string_view> names;
  const auto add = [&](const auto& field) {
    if (!field.is_original) names.push_back(field.name);
  };
  std::apply([&](const auto&... field) { (add(field), ...); }, scalar_fields);
  return names;
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
