#include "properties/language/weights.h"

#include <algorithm>
#include <cmath>

#include "core/kernel/limits.h"
#include "core/problem/fields.h"
#include "core/problem/score.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

/// [batch, heads, rows, columns] with 1 where row - first = column.
Tensor identity_columns(DType dtype, const Shape& shape, std::int64_t first) {
  Tensor t(dtype, shape);
  const std::int64_t rows = shape[2], columns = shape[3];
  for (std::int64_t page = 0; page < shape[0] * shape[1]; ++page)
    for (std::int64_t j = first; j < std::min(rows, first + columns); ++j)
      t.set((page * rows + j) * columns + (j - first), 1.0);
  return t;
}

/// Widest block of values that the manifest takes beside keys of width dk, no wider than N needs. At most 512: the
/// identity of thousands of keys would take more memory than the kernel.
std::int64_t block_width(const Manifest& m, std::int64_t dk, std::int64_t keys) {
  if (m.value_dim_equals_head_dim) return dk;
  const AllowedExtents widths = allowed_value_dims(m);
  if (!widths.list.empty()) return widths.nearest(std::min<std::int64_t>(keys, 512));
  const std::int64_t multiple = m.head_dim_multiple;
  const std::int64_t most =
      std::max<std::int64_t>(1, std::min<std::int64_t>(512, m.max_head_dim.value_or(512)) / multiple);
  return multiple * std::clamp<std::int64_t>((keys + multiple - 1) / multiple, 1, most);
}

}  // namespace

Case with_identity_keys(Case c) {
  const Shape q = c.q().shape();
  const Shape identity{q[0], q[1], q[3], q[3]};
  for (const Slot slot : {Slot::k, Slot::v}) c[slot] = identity_columns(c[slot].dtype(), identity, 0);
  c[Slot::mask] = Tensor();
  c.causal = Causal::none;
  for (const Variant& variant : {window_variant, chunk_variant}) drop_variant(c, variant.name);
  return c;
}

WeightBlocks read_weights(Kernel& kernel, const Case& c) {
  const Shape k = c.k().shape();
  WeightBlocks weights;
  weights.width = block_width(kernel.manifest(), k[3], k[2]);
  for (std::int64_t first = 0; first < k[2]; first += weights.width) {
    Case read = c;
    read[Slot::v] = identity_columns(c.v().dtype(), {k[0], k[1], k[2], weights.width}, first);
    weights.blocks.push_back(run(kernel, std::move(read)));
  }
  return weights;
}

void few_to_read(Recipe& r) {
  constexpr std::int32_t most_keys = 2048;
  constexpr double most_products = 0x1p27;
  r.keys = std::min(r.keys, most_keys);
  const double of_a_row = static_cast<double>(r.keys) * r.keys * r.heads * r.batch;
  const double rows = std::floor(most_products / std::max(of_a_row, 1.0));
  if (r.queries > rows) r.queries = std::max(1, static_cast<std::int32_t>(rows));
}

namespace {

/// q_i.k_j in double, and the sum of the sizes of its terms.
struct Product {
  double value = 0, size = 0;
};
Product product_of(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const std::int64_t kv = kv_head_of(c, h);
  Product sum;
  for (std::int64_t e = 0; e < c.q().shape()[3]; ++e) {
    const double product = c.q().at(b, h, i, e) * c.k().at(b, kv, j, e);
    sum.value += product;
    sum.size += std::fabs(product);
  }
  return sum;
}

/// Every term passes at most dk + 3 roundings (Higham 2002, 3.1), and `more`; twice that covers the sum of sizes, and
/// underflow.
double error_of(const Case& c, double size, int more) {
  const auto dk = static_cast<double>(c.q().shape()[3]);
  return 2 * (dk + 3 + more) * 0x1p-53 * size + dk * 0x1p-1070 * (1 + c.scale);
}

}  // namespace

Score scaled_product(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Product product = product_of(c, b, h, i, j);
  const double size = c.scale * product.size;
  return {.value = c.scale * product.value, .error = error_of(c, size, 0), .size = size};
}

Score score_of(const Case& c, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Product product = product_of(c, b, h, i, j);
  const double bias = bias_of(c, b, h, i, j);
  const double size = score(product.size, std::fabs(bias), c.scale, convention_of(c));
  // A cap, whose slope is at most 1, has less than 10 roundings.
  return {.value = score_in(c, product.value, bias), .error = error_of(c, size, c.softcap > 0 ? 10 : 0), .size = size};
}

}  // namespace attest
