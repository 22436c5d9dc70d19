#include "properties/arrangement/arrange.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/arrangement/sequences.h"
#include "properties/language/result.h"

namespace attest {
namespace {

constexpr double hidden_entry = -std::numeric_limits<double>::infinity();

}  // namespace

Case with_queries(const Case& c, const Indices& rows) {
  Selection s = everything(c);
  s.queries = rows;
  return select(c, s);
}

Case with_keys(const Case& c, const Indices& keys) {
  Selection s = everything(c);
  s.keys = keys;
  return select(c, s);
}

Case with_batch(const Case& c, const Indices& entries) {
  Selection s = everything(c);
  s.batch = entries;
  return select(c, s);
}

Case with_heads(const Case& c, const Indices& heads) {
  const Extents e = extents_of(c);
  Selection s = everything(c);
  s.heads = heads;
  if (e.kv_heads > 0) {
    s.kv_heads.clear();
    for (const std::int64_t h : heads) s.kv_heads.push_back(h / (e.heads / e.kv_heads));
  }
  return select(c, s);
}

Case with_kv_heads(const Case& c, const std::function<std::int64_t(std::int64_t head)>& kv_head) {
  const std::int64_t heads = heads_of(c);
  Case expanded = c;
  for (const Slot slot : {Slot::k, Slot::v}) {
    const Tensor& narrow = c[slot];
    const Shape shape = narrow.shape();
    const std::int64_t page = shape[2] * shape[3];
    Tensor wide(narrow.dtype(), shape.with(1, heads));
    for (std::int64_t e = 0; e < wide.elements(); ++e) {
      const std::int64_t head = e / page;
      wide.set(e, narrow[(head / heads * shape[1] + kv_head(head % heads)) * page + e % page]);
    }
    expanded[slot] = std::move(wide);
    // A head's factors go with it.
    const Tensor& factors = c[descale_of(slot)];
    if (!factors.present() || factors.shape()[1] == 1) continue;
    const Shape of_heads = factors.shape().with(1, heads);
    expanded[descale_of(slot)] = mapped(Tensor(factors.dtype(), of_heads), [&](std::int64_t e, double) {
      const std::int64_t head = e / of_heads[2];
      return factors.at(head / heads, kv_head(head % heads), e % of_heads[2]);
    });
  }
  return expanded;
}

Case without_query(const Case& c, std::int64_t i) {
  return with_queries(c, all_but(queries_of(c), i));
}

Case without_key(const Case& c, std::int64_t s) {
  return with_keys(c, all_but(keys_of(c), s));
}

void drop_positions(Case& c) {
  c.causal = Causal::none;
  for (const Variant& variant : {window_variant, chunk_variant}) drop_variant(c, variant.name);
}

Case without_mask(Case c) {
  c[Slot::mask] = Tensor();
  drop_positions(c);
  return c;
}

Case with_additive_mask(Case c) {
  Tensor& mask = c[Slot::mask];
  if (!mask.present()) {
    mask = Tensor(c.dtype(), {1, 1, queries_of(c), keys_of(c)});
  } else if (mask.dtype() == DType::boolean) {
    Tensor additive(c.dtype(), mask.shape());
    for (std::int64_t e = 0; e < mask.elements(); ++e)
      if (mask[e] == 0) additive.set(e, hidden_entry);
    mask = std::move(additive);
  }
  return c;
}

Case with_convention_of_numbers(Case c) {
  if (!c.mask().present() || c.mask().dtype() == DType::boolean) c.mask_convention = MaskConvention::post_scale;
  return c;
}

Case with_causal_written_out(Case c) {
  c = with_additive_mask(std::move(c));
  if (has_sequences(c)) return with_positions_as_mask(c, /*boolean=*/false);
  Tensor& mask = c[Slot::mask];
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    if (!sight(sight_rule(c), i, queries_of(c), keys_of(c)).sees(j)) mask.set(e, hidden_entry);
  }
  drop_positions(c);
  return c;
}

Case with_mask_entry(Case c, std::int64_t i, std::int64_t s, double value) {
  c = with_additive_mask(std::move(c));
  const std::int64_t M = queries_of(c), N = keys_of(c);
  Tensor& mask = c[Slot::mask];
  for (std::int64_t e = s; e < mask.elements(); e += N)
    if (i < 0 || e / N % M == i) mask.set(e, value);
  return c;
}

Tensor first_row(const Tensor& tensor) {
  return mapped(Tensor(tensor.dtype(), tensor.shape().with(0, 1)), [&](std::int64_t e, double) { return tensor[e]; });
}

Tensor of_first_head(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const std::int64_t inner = shape.rank() > 2 ? shape[2] : 1;
  return mapped(Tensor(tensor.dtype(), shape.with(1, 1)),
                [&](std::int64_t e, double) { return tensor[e / inner * shape[1] * inner + e % inner]; });
}

Tensor mapped(Tensor tensor, const std::function<double(std::int64_t, double)>& value) {
  for (std::int64_t e = 0; e < tensor.elements(); ++e) tensor.set(e, value(e, tensor[e]));
  return tensor;
}

}  // namespace attest
