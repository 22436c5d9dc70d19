#include "attest/case.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace attest {
namespace {

constexpr std::array<std::string_view, 2> convention_names{"post-scale", "pre-scale"};
constexpr std::array<std::string_view, 3> causal_names{"none", "top-left", "bottom-right"};
constexpr std::array<std::string_view, 2> operation_names{"attention", "multihead"};
constexpr std::array<std::string_view, slot_count> slot_names{"q",   "k",   "v",   "mask", "w_q", "w_k",    "w_v",
                                                              "b_q", "b_k", "b_v", "w_o",  "b_o", "bias_k", "bias_v"};

/// The enumerator at the position of `name`, the enumerators being 0, 1, ….
template <class Enum>
std::optional<Enum> find(std::span<const std::string_view> names, std::string_view name) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(MaskConvention convention) noexcept {
  return convention_names[static_cast<std::size_t>(convention)];
}
std::string_view name_of(Causal causal) noexcept {
  return causal_names[static_cast<std::size_t>(causal)];
}
std::string_view name_of(Operation operation) noexcept {
  return operation_names[static_cast<std::size_t>(operation)];
}
std::string_view name_of(Slot slot) noexcept {
  return slot_names[static_cast<std::size_t>(slot)];
}

std::optional<MaskConvention> mask_convention_named(std::string_view name) noexcept {
  return find<MaskConvention>(convention_names, name);
}
std::optional<Causal> causal_named(std::string_view name) noexcept {
  return find<Causal>(causal_names, name);
}
std::optional<Operation> operation_named(std::string_view name) noexcept {
  return find<Operation>(operation_names, name);
}
std::optional<Slot> slot_named(std::string_view name) noexcept {
  return find<Slot>(slot_names, name);
}

attest_problem Case::problem() const {
  attest_problem problem{};
  problem.size = sizeof(problem);
  problem.q = q().view();
  problem.k = k().view();
  problem.v = v().view();
  problem.mask = mask().view();
  problem.scale = scale;
  problem.mask_convention = static_cast<std::int32_t>(mask_convention);
  problem.causal = static_cast<std::int32_t>(causal);
  return problem;
}

attest_multihead_problem Case::multihead_problem() const {
  const Case& c = *this;
  attest_multihead_problem problem{};
  problem.size = sizeof(problem);
  problem.q = q().view();
  problem.k = k().view();
  problem.v = v().view();
  problem.w_q = c[Slot::w_q].view();
  problem.w_k = c[Slot::w_k].view();
  problem.w_v = c[Slot::w_v].view();
  problem.b_q = c[Slot::b_q].view();
  problem.b_k = c[Slot::b_k].view();
  problem.b_v = c[Slot::b_v].view();
  problem.w_o = c[Slot::w_o].view();
  problem.b_o = c[Slot::b_o].view();
  problem.bias_k = c[Slot::bias_k].view();
  problem.bias_v = c[Slot::bias_v].view();
  problem.mask = mask().view();
  problem.scale = scale;
  problem.mask_convention = static_cast<std::int32_t>(mask_convention);
  problem.causal = static_cast<std::int32_t>(causal);
  problem.heads = heads;
  return problem;
}

double inverse_root(std::int64_t dk) {
  return 1.0 / std::sqrt(static_cast<double>(dk));
}

bool is_inverse_root(double scale, std::int64_t dk) {
  // scale^2 dk - 1, whose parts a double holds, is twice the relative error and its square.
  const double d = static_cast<double>(dk), square = scale * scale, product = square * d;
  const double beyond = std::fma(scale, scale, -square) * d + std::fma(square, d, -product);
  return scale > 0.0 && std::abs((product - 1.0) + beyond) <= 0x1p-51 + 0x1p-104;
}

Shape Case::out_shape() const {
  const Shape& rows = q().shape();
  if (operation == Operation::attention) return {rows[0], rows[1], rows[2], v().shape()[3]};
  // Without w_o the heads stand side by side as they are.
  const Tensor& w_o = (*this)[Slot::w_o];
  return {rows[0], rows[1], (w_o.present() ? w_o : (*this)[Slot::w_v]).shape()[1]};
}

}  // namespace attest
