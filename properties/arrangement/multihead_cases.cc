#include "properties/arrangement/multihead_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "properties/arrangement/any_number.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/masks.h"

namespace attest {
namespace {

constexpr double hidden_entry = -std::numeric_limits<double>::infinity();

/// Longer extents are left: they are rare, and there because something changes at 15 to 17.
void shorten(std::int32_t& extent, std::int32_t most) {
  if (extent >= 1 && extent <= 12) extent = 1 + (extent - 1) % most;
}

/// Rows of B that see no key, or none but s, see the key after s; per plane of the mask.
void keep_a_key(Tensor& mask, std::int64_t s) {
  const std::int64_t N = mask.shape()[3], rows = N > 0 ? mask.elements() / N : 0;
  const bool boolean = mask.dtype() == DType::boolean;
  for (std::int64_t row = 0; row < rows; ++row) {
    bool sees = false;
    for (std::int64_t j = 0; j < N; ++j) sees = sees || (j != s && mask[row * N + j] != (boolean ? 0 : hidden_entry));
    if (!sees && N >= 2) mask.set(row * N + (s + 1) % N, boolean ? 1 : 0);
  }
}

}  // namespace

DrawnMultihead small_multihead(Draw& draw, std::int32_t least_heads) {
  DrawnMultihead drawn = draw.multihead();
  drawn.where([least_heads](Recipe& r) {
    r.heads = r.kv_heads = std::max(least_heads, 1 + (r.heads - 1) % 3);
    r.batch = 1 + (r.batch - 1) % 2;
    shorten(r.queries, 4);
    shorten(r.keys, 5);
    for (std::int32_t* extent : {&r.dk, &r.dv}) shorten(*extent, 3);
    for (std::int32_t* extent : {&r.c_q, &r.c_k, &r.c_v, &r.d_o}) shorten(*extent, 4);
    const std::uint64_t rare = (r.seed >> 20) % 64;
    if (rare == 0) r.queries = 0;
    if (rare == 1) r.keys = 0;
  });
  bool torch = false;
  drawn.where([&](Recipe& r) { torch = (r.seed >> 12) % 2 == 0; });
  if (torch) drawn.torch_case();
  return drawn;
}

DrawnMultihead whole_numbers(Draw& draw) {
  return small_multihead(draw).where([](Recipe& r) { r.matrices = MatrixKind::integers; });
}

Case one_head(DrawnMultihead drawn) {
  bool stated = false;
  drawn.where([&](Recipe& r) {
    r.heads = r.kv_heads = 1;
    r.key_value_bias = r.output_projection = false;
    stated = (r.seed >> 12) % 2 == 0;
    if (!stated) return;
    const bool packed = r.c_k == r.c_q && r.c_v == r.c_q;
    r.dv = r.c_q = r.dk;
    if (packed) r.c_k = r.c_v = r.dk;
  });
  Case c = drawn;
  c[Slot::b_o] = Tensor();
  if (stated) c[Slot::w_o] = identity_tensor(c.dtype(), c[Slot::w_v].shape()[1]);
  return c;
}

DrawnMultihead without_biases(DrawnMultihead drawn) {
  return drawn.where([](Recipe& r) { r.biases = false; });
}

DrawnMultihead self_attention(DrawnMultihead drawn, std::int32_t tokens) {
  return drawn.self_attention().at_least(tokens, tokens);
}

DrawnMultihead two_keys(DrawnMultihead drawn) {
  return drawn.where([](Recipe& r) {
    r.keys = std::max(r.keys, 2);
    if (r.self_attention) r.queries = std::max(r.queries, 2);
  });
}

DrawnMultihead with_output(DrawnMultihead drawn) {
  return drawn.where([](Recipe& r) { r.output_projection = true; });
}

bool is_identity(const Tensor& matrix) {
  if (matrix.shape().rank() != 2 || matrix.shape()[0] != matrix.shape()[1]) return false;
  const std::int64_t n = matrix.shape()[0];
  for (std::int64_t e = 0; e < matrix.elements(); ++e)
    if (matrix[e] != (e / n == e % n ? 1 : 0)) return false;
  return true;
}

bool is_self_attention(const Case& c) {
  return c.q() == c.k() && c.q() == c.v();
}

Tensor identity_tensor(DType dtype, std::int64_t size) {
  Tensor matrix(dtype, {size, size});
  for (std::int64_t i = 0; i < size; ++i) matrix.set(i * size + i, 1);
  return matrix;
}

Tensor projected(const Tensor& x, const Tensor& w, const Tensor& b, bool& exact) {
  const Shape& from = x.shape();
  const std::int64_t inner = w.shape()[0], columns = w.shape()[1];
  Tensor out(x.dtype(), {from[0], from[1], columns});
  for (std::int64_t row = 0; row < from[0] * from[1]; ++row) {
    for (std::int64_t c = 0; c < columns; ++c) {
      double sum = 0;
      if (in_a_proof()) {
        for (std::int64_t l = 0; l < inner; ++l) sum = sum_of(sum, product_of(x[row * inner + l], w[l * columns + c]));
        out.set(row * columns + c, b.present() ? sum_of(sum, b[c]) : sum);
        continue;
      }
      // An addition in double is exact where both of its parts come back.
      const auto add = [&](double term) {
        const double next = sum + term;
        exact = exact && next - term == sum && next - sum == term;
        sum = next;
      };
      for (std::int64_t l = 0; l < inner; ++l) {
        const double a = x[row * inner + l], e = w[l * columns + c], product = a * e;
        exact = exact && std::fma(a, e, -product) == 0;
        add(product);
      }
      if (b.present()) add(b[c]);
      out.set(row * columns + c, sum);
      exact = exact && out[row * columns + c] == sum;
    }
  }
  return out;
}

Case with_tokens_projected(const Case& c) {
  Case p = c;
  bool exact = true;
  p[Slot::q] = projected(c.q(), c[Slot::w_q], c[Slot::b_q], exact);
  p[Slot::k] = projected(c.k(), c[Slot::w_k], c[Slot::b_k], exact);
  p[Slot::v] = projected(c.v(), c[Slot::w_v], c[Slot::b_v], exact);
  for (const Slot w : {Slot::w_q, Slot::w_k, Slot::w_v}) p[w] = identity_tensor(c.dtype(), c[w].shape()[1]);
  p[Slot::b_q] = p[Slot::b_k] = p[Slot::b_v] = Tensor();
  return p;
}

Case with_tokens(Case c, const Tensor& x) {
  c[Slot::q] = c[Slot::k] = c[Slot::v] = x;
  return c;
}

Tensor with_row(Tensor tokens, std::int64_t s, const std::function<double(std::int64_t, double)>& value) {
  const std::int64_t rows = tokens.shape()[1], columns = tokens.shape()[2];
  for (std::int64_t e = 0; e < tokens.elements(); ++e)
    if (e / columns % rows == s) tokens.set(e, value(e, tokens[e]));
  return tokens;
}

Case first_entry_of_values(const Case& c) {
  Case zeros = c;
  for (Tensor& tensor : zeros.tensors)
    if (tensor.present()) tensor = Tensor(c.dtype(), tensor.shape());
  const Extents e = extents_of(c);
  for (std::int64_t h = 0; h < e.heads; ++h) {
    zeros[Slot::w_v].set(h * e.dv, 1);
    if (zeros[Slot::w_o].present()) zeros[Slot::w_o].set(h * e.dv * e.d_o, 1);
  }
  return zeros;
}

Case hidden_key(const Case& c, From from, std::int64_t i, std::int64_t s) {
  // A boolean mask stays one: a kernel may know no other. Where there is none, both forms are tried.
  const bool boolean = c.mask().present() ? c.mask().dtype() == DType::boolean : argument(c, "boolean", 2) == 1;
  Case hidden = with_causal_as_mask(c, boolean);
  Tensor& mask = hidden[Slot::mask];
  const double hides = mask.dtype() == DType::boolean ? 0 : hidden_entry;
  const std::int64_t M = queries_of(c), N = keys_of(c);
  for (std::int64_t e = s; e < mask.elements(); e += N) {
    const std::int64_t row = e / N % M;
    if (from == From::every_row || (from == From::row) == (row == i)) mask.set(e, hides);
  }
  if (!c[Slot::bias_k].present()) keep_a_key(mask, s);
  return hidden;
}

}  // namespace attest
