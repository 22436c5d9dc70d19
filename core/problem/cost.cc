#include "core/problem/cost.h"

namespace attest {

Cost cost_of(Operation operation, const Extents& e) {
  const auto d = [](std::int64_t extent) { return static_cast<double>(extent); };
  const double batch = d(e.batch), heads = d(e.heads), m = d(e.queries), n = d(e.keys), dk = d(e.dk), dv = d(e.dv);
  Cost cost{.numbers = batch * heads * m * n, .products = batch * heads * m * n * (dk + dv)};
  if (operation == Operation::attention) {
    cost.numbers += batch * (heads * m * (dk + dv) + d(e.kv_heads) * n * (dk + dv));
    return cost;
  }
  const double c_q = d(e.c_q), c_k = d(e.c_k), c_v = d(e.c_v), d_o = d(e.d_o);
  const double key_width = heads * dk, value_width = heads * dv;
  const double weights_of_keys = c_k * key_width + c_v * value_width;
  cost.numbers += batch * (m * (c_q + d_o) + n * (c_k + c_v)) + c_q * key_width + weights_of_keys + value_width * d_o;
  cost.products += batch * (m * (c_q * key_width + value_width * d_o) + n * weights_of_keys);
  return cost;
}

double cost_of(const Case& c) {
  const Cost cost = cost_of(c.operation, extents_of(c));
  return cost.products + 4 * cost.numbers + 0x1p15;
}

double flops_of(const Case& c) {
  return 2 * cost_of(c.operation, extents_of(c)).products;
}

}  // namespace attest
