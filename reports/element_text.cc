#include "element_text.h"

#include <fmt/format.h>

#include "attest/json_writer.h"

namespace attest {

std::string index_text(std::int64_t element, const Shape& shape) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = fmt::format("{}{}{}", element % shape[axis], text.empty() ? "" : ", ", text);
    element /= shape[axis];
  }
  return "[" + text + "]";
}

std::string exact_text(double value) {
  return fmt::format("{} ({:a})", number_text(value), value);
}

}  // namespace attest
