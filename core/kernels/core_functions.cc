#include "core/kernels/core_functions.h"

#include <array>
#include <cmath>
#include <vector>

#include "core/kernels/core_numbers.h"
#include "core/kernels/documents/module.h"

namespace attest {
namespace {

const detail::CoreTable& own_functions() {
  static const detail::CoreTable table = [] {
    detail::CoreTable all{};
    detail::for_each_scalar(all, []<class T>(CoreFunctions& f) { f.scalar = ScalarTraits<T>::name; });
    detail::set_matrix_functions(all);
    detail::set_attention_functions(all);
    detail::set_score_functions(all);
    detail::set_weighted_functions(all);
    detail::set_multihead_functions(all);
    return all;
  }();
  return table;
}

bool same_end(const Wide& a, const Wide& b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b && signbit(a) == signbit(b);
}

/// Where element e of the transpose comes from.
std::int64_t before_transposing(const Shape& shape, std::int64_t e) {
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  const std::int64_t page = e / (rows * columns), in_page = e % (rows * columns);
  return page * rows * columns + in_page % rows * columns + in_page / rows;
}

Shape turned(const Shape& shape) {
  std::array<std::int64_t, 4> extents{};
  for (int axis = 0; axis < shape.rank(); ++axis) extents[static_cast<std::size_t>(axis)] = shape[axis];
  const auto last = static_cast<std::size_t>(shape.rank() - 1);
  std::swap(extents[last], extents[last - 1]);
  return Shape(std::span<const std::int64_t>(extents.data(), last + 1));
}

std::vector<const CoreFunctions*>& added_functions() {
  static std::vector<const CoreFunctions*> added;
  return added;
}

}  // namespace

const CoreFunctions* core_functions(std::string_view kernel_id) {
  constexpr std::string_view family = "core:";
  if (!kernel_id.starts_with(family)) return nullptr;
  const std::string_view scalar = kernel_id.substr(family.size());
  for (const CoreFunctions& functions : own_functions())
    if (scalar == functions.scalar) return &functions;
  for (const CoreFunctions* functions : added_functions())
    if (scalar == functions->scalar) return functions;
  return nullptr;
}

CoreNumbers (*returned_weights(std::string_view kernel_id))(const Case&) {
  if (const CoreFunctions* const core = core_functions(kernel_id)) return core->multihead_weights;
  return weights_of_document(kernel_id);
}

void add_core_functions(const CoreFunctions& functions) {
  added_functions().push_back(&functions);
}

bool same_bits(const CoreNumbers& a, const CoreNumbers& b) {
  if (a.shape != b.shape || a.native.present() != b.native.present()) return false;
  for (std::size_t e = 0; e < a.formal.size(); ++e) {
    const bool defined = a.formal[e].kind() != ProofKind::undefined, other = b.formal[e].kind() != ProofKind::undefined;
    if (defined != other || (defined && !GenericInputs::current().identical(a.formal[e], b.formal[e]))) return false;
  }
  for (std::size_t e = 0; e < a.wide.size(); ++e)
    if (!same_end(a.wide[e].lower, b.wide[e].lower) || !same_end(a.wide[e].upper, b.wide[e].upper)) return false;
  for (std::int64_t e = 0; e < a.native.elements(); ++e) {
    const double x = a.native[e], y = b.native[e];
    const bool same = std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
    if (!same) return false;
  }
  return true;
}

Tensor transposed(const Tensor& a) {
  Tensor b(a.dtype(), turned(a.shape()));
  for (std::int64_t e = 0; e < b.elements(); ++e) b.set(e, a[before_transposing(a.shape(), e)]);
  return b;
}

CoreNumbers transposed(const CoreNumbers& a) {
  CoreNumbers b{.shape = turned(a.shape), .native = {}, .wide = {}, .formal = {}, .unit = a.unit};
  for (std::int64_t e = 0; e < static_cast<std::int64_t>(a.formal.size()); ++e)
    b.formal.push_back(a.formal[static_cast<std::size_t>(before_transposing(a.shape, e))]);
  if (a.native.present()) b.native = transposed(a.native);
  for (std::int64_t e = 0; e < static_cast<std::int64_t>(a.wide.size()); ++e)
    b.wide.push_back(a.wide[static_cast<std::size_t>(before_transposing(a.shape, e))]);
  return b;
}

}  // namespace attest
