#include "core/problem/describe.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/support/printed.h"

namespace attest {
namespace {

/// Nested brackets by shape, row-major.
void write_numbers(std::string& text, const Tensor& t, int axis, std::int64_t& next) {
  if (axis == t.shape().rank()) {
    const double value = t[next++];
    if (t.dtype() == DType::f32) {
      fmt::format_to(std::back_inserter(text), "{}", static_cast<float>(printed(value)));
    } else {
      fmt::format_to(std::back_inserter(text), "{}", printed(value));
    }
    return;
  }
  text += '[';
  for (std::int64_t i = 0; i < t.shape()[axis]; ++i) {
    if (i > 0) text += ", ";
    write_numbers(text, t, axis + 1, next);
  }
  text += ']';
}

}  // namespace

std::string describe(const Case& c, std::int64_t most) {
  std::string text = fmt::format("{}:", name_of(c.operation));
  std::string_view comma = " ";
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    if (c.*field.member == field.neutral && !field.is_original()) return;
    text += fmt::format("{}{} ", std::exchange(comma, ", "), field.name);
    if constexpr (std::is_enum_v<Value>)
      text += name_of(c.*field.member);
    else
      text += fmt::format("{}", c.*field.member);
  });
  if (c.append > 0) text += fmt::format(", append {}", c.append);
  if (const Layouts layouts = layouts_of(c); layouts != Layouts())
    text += fmt::format(", strides {}", to_string(layouts));
  text += '\n';
  for (int index = 0; index < slot_count; ++index) {
    const auto slot = static_cast<Slot>(index);
    const Tensor& tensor = c[slot];
    if (!tensor.present()) continue;
    text += fmt::format("{} {} {}: ", name_of(slot), name_of(tensor.dtype()), tensor.shape().to_string());
    if (tensor.elements() <= most) {
      std::int64_t next = 0;
      write_numbers(text, tensor, 0, next);
      text += '\n';
    } else {
      text += fmt::format("{} numbers\n", tensor.elements());
    }
  }
  return text;
}

}  // namespace attest
