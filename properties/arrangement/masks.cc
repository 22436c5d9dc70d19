#include "properties/arrangement/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/sequences.h"

namespace attest {
namespace {

constexpr double hidden_entry = -std::numeric_limits<double>::infinity();

bool has_infinity(DType dtype) {
  return dtype != DType::f8_e4m3;
}

bool hides(const Tensor& mask, std::int64_t e) {
  return mask.dtype() == DType::boolean ? mask[e] == 0 : mask[e] == hidden_entry;
}

}  // namespace

Case with_some_mask(Case c) {
  Tensor& mask = c[Slot::mask];
  if (mask.present()) return c;
  const Shape shape{1, 1, queries_of(c), keys_of(c)};
  if (has_infinity(c.dtype())) {
    mask = Tensor(c.dtype(), shape);
  } else {
    mask = Tensor(DType::boolean, shape, std::vector<double>(static_cast<std::size_t>(shape.elements()), 1.0));
  }
  return c;
}

Case hide(Case c, std::int64_t i, std::int64_t s) {
  c = with_some_mask(std::move(c));
  const std::int64_t M = queries_of(c), N = keys_of(c);
  Tensor& mask = c[Slot::mask];
  for (std::int64_t e = s; e < mask.elements(); e += N)
    if (i < 0 || e / N % M == i) mask.set(e, mask.dtype() == DType::boolean ? 0.0 : hidden_entry);
  return c;
}

Case hide_and_spare(Case c, std::int64_t i, std::int64_t s, std::int64_t l) {
  c = hide(std::move(c), i, s);
  const std::int64_t M = queries_of(c), N = keys_of(c);
  Tensor& mask = c[Slot::mask];
  for (std::int64_t row = 0; row * N < mask.elements(); ++row) {
    if (i >= 0 && row % M != i) continue;
    std::int64_t j = 0;
    while (j < N && hides(mask, row * N + j)) ++j;
    if (j == N) mask.set(row * N + l, mask.dtype() == DType::boolean ? 1.0 : 0.0);
  }
  return c;
}

Case with_boolean_mask(Case c) {
  const Tensor& old = c.mask();
  // Of sequences each entry hides keys of its own.
  const std::int64_t batch = has_sequences(c) ? batch_of(c)
                             : old.present()  ? old.shape()[0]
                                              : 1,
                     heads = old.present() ? old.shape()[1] : 1;
  Tensor mask(DType::boolean, {batch, heads, queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    mask.set(e, hidden(c, b, h, i, j) ? 0.0 : 1.0);
  }
  c[Slot::mask] = std::move(mask);
  drop_positions(c);
  return c;
}

Case with_causal_as_mask(const Case& c, bool boolean) {
  if ((boolean && only_hides(c)) || !has_infinity(c.dtype())) return with_boolean_mask(c);
  return with_causal_written_out(c);
}

Indices last_visible(const Case& c) {
  Indices last(static_cast<std::size_t>(queries_of(c)), -1);
  for (std::int64_t i = 0; i < queries_of(c); ++i) {
    std::int64_t& found = last[static_cast<std::size_t>(i)];
    for (std::int64_t b = 0; b < batch_of(c); ++b) {
      for (std::int64_t h = 0; h < heads_of(c); ++h) {
        std::int64_t j = keys_of(c) - 1;
        while (j > found && hidden(c, b, h, i, j)) --j;
        found = std::max(found, j);
      }
    }
  }
  return last;
}

bool only_hides(const Case& c) {
  const Tensor& mask = c.mask();
  if (!mask.present() || mask.dtype() == DType::boolean) return true;
  for (std::int64_t e = 0; e < mask.elements(); ++e)
    if (mask[e] != 0 && mask[e] != hidden_entry) return false;
  return true;
}

}  // namespace attest
