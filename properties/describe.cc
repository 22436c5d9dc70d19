#include "describe.h"

#include <fmt/format.h>

#include <iterator>

#include "attest/printed.h"
#include "attest/strides.h"

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
  std::string text = fmt::format("{}: scale {}, causal {}, mask {}", name_of(c.operation), c.scale, name_of(c.causal),
                                 c.mask().present() ? name_of(c.mask_convention) : "none");
  if (c.operation == Operation::multihead) text += fmt::format(", heads {}", c.heads);
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
