#include "core/problem/descale.h"

#include <algorithm>
#include <array>

#include "core/problem/fields.h"

namespace attest {
namespace {

std::int64_t block_of(const Problem& c, Slot tensor) {
  return tensor == Slot::q ? c.q_descale_block : c.kv_descale_block;
}

}  // namespace

Slot descale_of(Slot tensor) {
  return tensor == Slot::q ? Slot::q_descale : tensor == Slot::k ? Slot::k_descale : Slot::v_descale;
}

double factor_of(const Problem& c, Slot tensor, std::int64_t batch, std::int64_t head, std::int64_t row) {
  const Tensor& factors = c[descale_of(tensor)];
  if (!factors.present()) return 1;
  const Shape& shape = factors.shape();
  const std::int64_t b = shape[0] == 1 ? 0 : batch, h = shape[1] == 1 ? 0 : head;
  const std::int64_t block = shape[2] == 1 ? 0 : row / block_of(c, tensor);
  return factors[(b * shape[1] + h) * shape[2] + block];
}

Factors factors_of(const Problem& c, Slot tensor) {
  const Tensor& factors = c[descale_of(tensor)];
  if (!factors.present()) return {};
  Factors found{factors[0], factors[0]};
  for (std::int64_t e = 1; e < factors.elements(); ++e) {
    found.least = std::min(found.least, factors[e]);
    found.most = std::max(found.most, factors[e]);
  }
  return found;
}

bool has_blocks(const Problem& c, Slot tensor) {
  const Tensor& factors = c[descale_of(tensor)];
  return factors.present() && factors.shape()[2] > 1;
}

Tensor dequantised(const Problem& c, Slot tensor) {
  const Tensor& from = c[tensor];
  if (!c[descale_of(tensor)].present()) return from;
  const Shape& shape = from.shape();
  Tensor to(DType::f64, shape);
  std::int64_t e = 0;
  for (std::int64_t b = 0; b < shape[0]; ++b)
    for (std::int64_t h = 0; h < shape[1]; ++h)
      for (std::int64_t i = 0; i < shape[2]; ++i) {
        const double factor = factor_of(c, tensor, b, h, i);
        for (std::int64_t x = 0; x < shape[3]; ++x, ++e) to.set(e, from[e] * factor);
      }
  return to;
}

void set_block(Problem& c, bool of_rows, std::int64_t block) {
  std::array<Tensor, 3> all;
  constexpr std::array tensors{Slot::q, Slot::k, Slot::v};
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    const Slot tensor = tensors[at];
    if (!has_blocks(c, tensor) || (tensor == Slot::q) != of_rows) continue;
    const Shape& shape = c[descale_of(tensor)].shape();
    const std::int64_t rows = c[tensor].shape()[2],
                       blocks = block > 0 ? std::max((rows + block - 1) / block, std::int64_t{1}) : 1;
    Tensor each(DType::f32, shape.with(2, blocks));
    for (std::int64_t e = 0; e < each.elements(); ++e)
      each.set(e, factor_of(c, tensor, e / blocks / shape[1], e / blocks % shape[1], e % blocks * block));
    all[at] = std::move(each);
  }
  for (std::size_t at = 0; at < tensors.size(); ++at)
    if (all[at].present()) c[descale_of(tensors[at])] = std::move(all[at]);
  (of_rows ? c.q_descale_block : c.kv_descale_block) = block;
  settle_blocks(c);
}

void spread_factors(Problem& c, bool of_rows, bool of_keys) {
  if (of_rows && has_blocks(c, Slot::q)) set_block(c, true, 1);
  if (of_keys && (has_blocks(c, Slot::k) || has_blocks(c, Slot::v))) set_block(c, false, 1);
}

void settle_blocks(Problem& c) {
  const auto blocks = [&](Slot tensor) { return has_blocks(c, tensor); };
  if (!blocks(Slot::q)) c.q_descale_block = 0;
  if (!blocks(Slot::k) && !blocks(Slot::v)) c.kv_descale_block = 0;
}

}  // namespace attest
