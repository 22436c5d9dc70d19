#include "core/problem/problem.h"

#include <cmath>
#include <cstdint>

#include "core/problem/fields.h"

namespace attest {

attest_problem Problem::problem() const {
  return pack<attest_problem>(*this);
}

attest_multihead_problem Problem::multihead_problem() const {
  return pack<attest_multihead_problem>(*this);
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

Shape Problem::out_shape() const {
  const Shape& rows = q().shape();
  if (operation == Operation::attention) return {rows[0], rows[1], rows[2], v().shape()[3]};
  // Without w_o the heads stand side by side as they are.
  const Tensor& w_o = (*this)[Slot::w_o];
  return {rows[0], rows[1], (w_o.present() ? w_o : (*this)[Slot::w_v]).shape()[1]};
}

}  // namespace attest
