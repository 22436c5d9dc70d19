#include "properties/generators/later_arguments.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "core/problem/descale.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

/// Words as often as one another; small whole numbers more often than large ones, and those near the lengths that the
/// row names as often as others; numbers by their octave.
template <class Value>
double any_value(const ScalarField<Value>& field, const AxisExtents& extents, Stream& stream) {
  if constexpr (std::is_enum_v<Value>) {
    return static_cast<double>(stream.below(static_cast<std::int64_t>(Words<Value>::names.size())));
  } else {
    const double least = static_cast<double>(field.range.least), most = static_cast<double>(field.range.most);
    if constexpr (std::is_integral_v<Value>) {
      if (field.near_count > 0 && stream.one_in(2)) {
        const Axis axis = field.near[static_cast<std::size_t>(stream.below(field.near_count))];
        const auto length = static_cast<double>(extents[static_cast<std::size_t>(axis)]);
        // Around the length itself, or anywhere below it: windows that end within the keys are those that hide some.
        const double near =
            stream.one_in(2) ? length + static_cast<double>(stream.between(-3, 2)) : std::floor(stream.unit() * length);
        return std::clamp(near, least, most);
      }
      const bool far = stream.one_in(16);
      const double unit = stream.unit();
      // The largest one stands for "without an end" in many a program.
      if (far && unit < 0.5) return std::max(most - std::floor(4 * unit), least);
      const double reach = far ? most - least : std::min(most - least, 8.0);
      return least + std::floor(unit * (reach + 1));
    } else {
      // A quarter of them beyond what is usual; half are whole multiples of a power of two near them.
      const bool any = !(field.usual.most > 0) || stream.one_in(16);
      const double reach = any && field.usual.most > 0 ? 0x1p20 : 1;
      const double first = field.usual.most > 0 ? field.usual.least / reach : std::max(least, 0x1p-100);
      const double last = field.usual.most > 0 ? field.usual.most * reach : most;
      const double octave = std::exp2(std::floor(stream.uniform(std::log2(first), std::log2(last))));
      const double part = stream.one_in(2) ? std::floor(8 * stream.unit()) / 8 : stream.unit();
      return std::clamp(octave * (1 + part), least, most);
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

void give_variant(ArgumentValues& values, std::string_view name, const AxisExtents& extents, Stream& stream) {
  std::int64_t count = 0;  // of the arguments that say something by themselves
  for_each_later_argument(values,
                          [&](const auto& field, double&) { count += field.is_of(name) && !field.is_detail ? 1 : 0; });
  std::int64_t certain = stream.below(std::max<std::int64_t>(count, 1));
  for_each_later_argument(values, [&](const auto& field, double& value) {
    if (!field.is_of(name)) return;
    const bool given = field.is_detail || certain-- == 0 || !stream.one_in(3);
    value = given ? any_value(field, extents, stream) : static_cast<double>(field.neutral);
  });
}

bool has_variant(const ArgumentValues& values, std::string_view name) {
  bool found = false;
  ArgumentValues looked = values;
  for_each_later_argument(looked, [&](const auto& field, const double& value) {
    found = found || (field.variant.name == name && !field.is_detail && value != static_cast<double>(field.neutral));
  });
  return found;
}

void drop_variant(ArgumentValues& values, std::string_view name) {
  for_each_later_argument(values, [&](const auto& field, double& value) {
    // What others share is settled where the problem is there (settle_alignment).
    if (field.variant.name == name && field.shared.empty()) value = static_cast<double>(field.neutral);
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
  settle_alignment(c);
  // What is added to a capped product, or beside slopes, is added after the scale.
  c.mask_convention = convention_of(c);
  // Its rate comes with what says which weights are dropped (fill_dropout).
  if (!c[Slot::keep].present()) drop_variant(c, dropout_variant.name);
  // So do blocks of factors with these (fill_descale).
  settle_blocks(c);
}

}  // namespace attest
