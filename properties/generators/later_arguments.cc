#include "properties/generators/later_arguments.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <type_traits>

namespace attest {
namespace {

/// Words as often as one another; small whole numbers more often than large ones; numbers by their octave.
template <class Value>
double any_value(const ScalarField<Value>& field, Stream& stream) {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<double>(stream.below(static_cast<std::int64_t>(Words<Value>::names.size())));
  } else {
    const double least = static_cast<double>(field.range.least), most = static_cast<double>(field.range.most);
    if constexpr (std::is_integral_v<Value>) {
      const double reach = stream.one_in(4) ? most - least : std::min(most - least, 8.0);
      return least + std::floor(stream.unit() * (reach + 1));
    } else {
      const double low = std::log2(std::max(least, 0x1p-100)), high = std::log2(most);
      return std::clamp(std::exp2(std::floor(stream.uniform(low, high))) * (1 + stream.unit()), least, most);
    }
  }
}

}  // namespace

ArgumentValues neutral_arguments() {
  ArgumentValues values{};
  std::size_t row = 0;
  std::apply([&](const auto&... field) { ((values[row++] = static_cast<double>(field.neutral)), ...); }, scalar_fields);
  return values;
}

void change_later_argument(ArgumentValues& values, Operation operation, Stream& stream) {
  std::int64_t count = 0;
  for_each_later_argument(values, [&](const auto& field, double&) { count += field.is_of(operation) ? 1 : 0; });
  if (count == 0) return;
  std::int64_t which = stream.below(count);
  for_each_later_argument(values, [&](const auto& field, double& value) {
    if (!field.is_of(operation) || which-- != 0) return;
    const bool is_neutral = value == static_cast<double>(field.neutral);
    value = is_neutral || stream.one_in(2) ? any_value(field, stream) : static_cast<double>(field.neutral);
  });
}

void limit_arguments(ArgumentValues& values) {
  for_each_later_argument(values, [&]<class Value>(const ScalarField<Value>& field, double& value) {
    const double neutral = static_cast<double>(field.neutral);
    if (value == neutral) return;
    if constexpr (std::is_enum_v<Value>) {
      const auto words = static_cast<double>(Words<Value>::names.size());
      value = value >= 0 && value < words ? std::floor(value) : neutral;
    } else {
      value = value == value
                  ? std::clamp(value, static_cast<double>(field.range.least), static_cast<double>(field.range.most))
                  : neutral;
      if constexpr (std::is_integral_v<Value>) value = std::floor(value);
    }
  });
}

void set_later_arguments(Problem& c, const ArgumentValues& values) {
  ArgumentValues all = argument_values(c), later = values;
  for_each_later_argument(later, [&](const auto& field, double& value) {
    if (field.is_of(c.operation)) all[static_cast<std::size_t>(&value - later.data())] = value;
  });
  set_arguments(c, all);
}

}  // namespace attest
