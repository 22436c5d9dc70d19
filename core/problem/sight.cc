#include "core/problem/sight.h"

#include <limits>

namespace attest {

void settle_alignment(Problem& c) {
  if (c.window_left < 0 && c.window_right < 0)
    c.alignment = Causal::none;
  else if (c.causal != Causal::none)
    c.alignment = c.causal;
  else if (c.alignment == Causal::none)
    c.alignment = Causal::top_left;
}

std::int64_t batch_of(const Problem& c) {
  return c.q().shape()[0];
}

std::int64_t heads_of(const Problem& c) {
  return c.operation == Operation::attention ? c.q().shape()[1] : c.heads;
}

std::int64_t kv_head_of(const Problem& c, std::int64_t h) {
  return h / (c.q().shape()[1] / c.k().shape()[1]);
}

std::int64_t queries_of(const Problem& c) {
  return c.q().shape()[c.operation == Operation::attention ? 2 : 1];
}

std::int64_t keys_of(const Problem& c) {
  return c.k().shape()[c.operation == Operation::attention ? 2 : 1];
}

double mask_entry(const Tensor& mask, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  return mask.at(mask.shape()[0] == 1 ? 0 : batch, mask.shape()[1] == 1 ? 0 : head, i, j);
}

bool hidden(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  if (!sight(sight_rule(c), i, queries_of(c), keys_of(c)).sees(j)) return true;
  const Tensor& mask = c.mask();
  if (!mask.present()) return false;
  const double entry = mask_entry(mask, batch, head, i, j);
  return mask.dtype() == DType::boolean ? entry == 0.0 : entry == -std::numeric_limits<double>::infinity();
}

double bias_of(const Problem& c, std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) {
  const Tensor& mask = c.mask();
  return mask.present() && mask.dtype() != DType::boolean ? mask_entry(mask, batch, head, i, j) : 0.0;
}

bool has_fully_masked_row(const Problem& c) {
  if (c[Slot::bias_k].present()) return false;
  const std::int64_t keys = keys_of(c);
  for (std::int64_t b = 0; b < batch_of(c); ++b) {
    for (std::int64_t h = 0; h < heads_of(c); ++h) {
      for (std::int64_t i = 0; i < queries_of(c); ++i) {
        std::int64_t j = 0;
        while (j < keys && hidden(c, b, h, i, j)) ++j;
        if (j == keys) return true;
      }
    }
  }
  return false;
}

}  // namespace attest
