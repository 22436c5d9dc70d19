// Arguments of later versions of the contract (fields.h), drawn and changed by what their rows say of them.
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

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

/// The value of a scalar argument, by its member.
template <class Value>
[[nodiscard]] double& argument_in(ArgumentValues& values, Value Problem::* member) {
  std::size_t found = scalar_count;
  std::size_t row = 0;
  const auto look = [&]<class Of>(const ScalarField<Of>& field) {
    if constexpr (std::is_same_v<Of, Value>)
      if (field.member == member) found = row;
    ++row;
  };
  std::apply([&](const auto&... field) { (look(field), ...); }, scalar_fields);
  return values.at(found);
}

/// Gives values from their ranges to the arguments of a variant of the operation: to one for certain, to the others two
/// times in three. `extents`: of the problem, near which some are drawn.
void give_variant(ArgumentValues& values, std::string_view name, const AxisExtents& extents, Stream& stream);

/// Whether one of the arguments of a variant says something.
[[nodiscard]] bool has_variant(const ArgumentValues& values, std::string_view name);
/// Makes the arguments of a variant neutral.
void drop_variant(ArgumentValues& values, std::string_view name);

/// Brings numbers of anywhere into the ranges of their rows; NaN is neutral.
void limit_arguments(ArgumentValues& values);

/// The later arguments of `values` in a problem whose others are set, which stay as they are but for the convention of
/// a mask (convention_of); those of dropout where it is given what is dropped, and where positions count from where it
/// has a window or slopes.
void set_later_arguments(Problem& c, const ArgumentValues& values);

}  // namespace attest
