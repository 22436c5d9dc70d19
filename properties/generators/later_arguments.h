// Arguments of later versions of the contract (fields.h), drawn and changed by what their rows say of them.
#pragma once

#include <tuple>

#include "core/problem/fields.h"
#include "properties/generators/stream.h"

namespace attest {

/// visit(field, value) for each later argument, in the order of the rows.
template <class Visit>
void for_each_later_argument(ArgumentValues& values, Visit visit) {
  std::size_t row = 0;
  const auto one = [&](const auto& field) {
    double& value = values[row++];
    if (!field.is_original()) visit(field, value);
  };
  std::apply([&](const auto&... field) { (one(field), ...); }, scalar_fields);
}

/// Every argument neutral.
[[nodiscard]] ArgumentValues neutral_arguments();

/// Gives values from their ranges to the arguments of one variant of the operation, or makes them neutral again: each
/// variant as often as any other. Nothing where there are none. `extents`: of the problem, near which some are drawn.
void change_variant(ArgumentValues& values, Operation operation, const AxisExtents& extents, Stream& stream);

/// Brings numbers of anywhere into the ranges of their rows; NaN is neutral.
void limit_arguments(ArgumentValues& values);

/// The later arguments of `values` in a problem whose others are set, which stay as they are.
void set_later_arguments(Problem& c, const ArgumentValues& values);

}  // namespace attest
