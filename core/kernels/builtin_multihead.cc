// The multihead entry of the built-in kernels: projections, one of them on the heads, and W_o, in the kernel's dtype.
#include <cstdint>
#include <vector>

#include "core/definition/mask.h"
#include "core/kernels/builtin.h"
#include "core/value/tensor.h"

namespace attest {
namespace {

DType dtype_of(const attest_tensor& t) {
  return static_cast<DType>(t.dtype);
}

/// Element (b, i, c) of tokens, (i, c) of a matrix, (c) of a row.
double at(const attest_tensor& t, std::int64_t c, std::int64_t i = 0, std::int64_t b = 0) {
  const std::int64_t index[] = {b, i, c};
  std::int64_t offset = 0;
  for (int axis = 0; axis < t.rank; ++axis) offset += index[axis + 3 - t.rank] * t.stride[axis];
  return load_element(t.data, dtype_of(t), offset);
}

bool present(const attest_tensor& t) {
  return t.data != nullptr;
}

/// XW + 1b^T with sums in Real from the first column to the last, rounded once to x's dtype. Row 0 of every batch entry
/// is `first` where that is there: the appended key comes first, so that the others keep their places whatever stands
/// behind them.
template <class Real>
Tensor projected(const attest_tensor& x, const attest_tensor& w, const attest_tensor& bias,
                 const attest_tensor& first) {
  const std::int64_t batch = x.shape[0], rows = x.shape[1], inner = w.shape[0], columns = w.shape[1];
  const std::int64_t before = present(first) ? 1 : 0;
  Tensor out(dtype_of(x), {batch, before + rows, columns});
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t c = 0; before == 1 && c < columns; ++c) out.set(b * (rows + 1) * columns + c, at(first, c));
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t c = 0; c < columns; ++c) {
        Real sum = 0;
        for (std::int64_t l = 0; l < inner; ++l)
          sum += static_cast<Real>(at(x, l, i, b)) * static_cast<Real>(at(w, c, l));
        if (present(bias)) sum += static_cast<Real>(at(bias, c));
        out.set((b * (before + rows) + before + i) * columns + c, static_cast<double>(sum));
      }
    }
  }
  return out;
}

/// Tokens [batch, rows, heads*width] as [batch, heads, rows, width].
attest_tensor by_head(Tensor& tokens, std::int64_t heads) {
  attest_tensor view = tokens.view();
  const std::int64_t rows = view.shape[1], columns = view.shape[2], width = columns / heads;
  const std::int64_t shape[] = {view.shape[0], heads, rows, width}, stride[] = {rows * columns, width, columns, 1};
  view.rank = 4;
  for (int axis = 0; axis < 4; ++axis) view.shape[axis] = shape[axis], view.stride[axis] = stride[axis];
  return view;
}

/// The last key that row i sees by the causal form.
std::int64_t last_seen(const attest_multihead_problem& p, std::int64_t i) {
  const std::int64_t M = p.q.shape[1], N = p.k.shape[1];
  if (p.causal == ATTEST_CAUSAL_NONE) return N - 1;
  return p.causal == ATTEST_CAUSAL_TOP_LEFT ? i : i + N - M;
}

/// The mask with a column for the appended key in front, which nothing hides; the causal form is written into it.
Tensor with_appended_key(const attest_multihead_problem& p) {
  const std::int64_t M = p.q.shape[1], N = p.k.shape[1];
  const bool masked = present(p.mask);
  const DType dtype = masked ? dtype_of(p.mask) : DType::boolean;
  const std::int64_t batch = masked ? p.mask.shape[0] : 1, heads = masked ? p.mask.shape[1] : 1;
  const double shown = dtype == DType::boolean ? 1 : 0;
  const double hides = dtype == DType::boolean ? 0 : -std::numeric_limits<double>::infinity();
  Tensor wider(dtype, {batch, heads, M, N + 1});
  for (std::int64_t e = 0; e < wider.elements(); ++e) {
    const std::int64_t j = e % (N + 1) - 1, i = e / (N + 1) % M, h = e / (N + 1) / M % heads;
    const std::int64_t b = e / (N + 1) / M / heads;
    double entry = shown;
    if (j >= 0 && masked) {
      const auto& s = p.mask.stride;
      entry = load_element(p.mask.data, dtype, b * s[0] + h * s[1] + i * s[2] + j * s[3]);
    }
    // Nothing hides the appended key, not even from a row that sees no other.
    if (j >= 0 && j > last_seen(p, i)) entry = hides;
    wider.set(e, entry);
  }
  return wider;
}

template <class Real>
int run(const BuiltinKernel& kernel, const attest_multihead_problem& p, attest_result& result, std::string& message) {
  const attest_tensor none{};
  Tensor q = projected<Real>(p.q, p.w_q, p.b_q, none), k = projected<Real>(p.k, p.w_k, p.b_k, p.bias_k),
         v = projected<Real>(p.v, p.w_v, p.b_v, p.bias_v);
  const std::int64_t batch = p.q.shape[0], M = p.q.shape[1], columns = p.w_v.shape[1];
  Tensor heads(q.dtype(), {batch, M, columns}), mask;
  attest_problem inner{};
  inner.q = by_head(q, p.heads), inner.k = by_head(k, p.heads), inner.v = by_head(v, p.heads);
  inner.mask = p.mask, inner.causal = p.causal;
  inner.scale = p.scale, inner.mask_convention = p.mask_convention;
  if (present(p.bias_k) && (present(p.mask) || p.causal != ATTEST_CAUSAL_NONE)) {
    mask = with_appended_key(p);
    inner.mask = mask.view();
    inner.causal = ATTEST_CAUSAL_NONE;
  }
  attest_result of_heads{};
  of_heads.out = by_head(heads, p.heads);
  if (const int status = run_builtin(kernel, inner, of_heads, message); status != ATTEST_OK) return status;
  const attest_tensor o = heads.view();
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t i = 0; i < M; ++i) {
      for (std::int64_t c = 0; c < result.out.shape[2]; ++c) {
        Real sum = present(p.w_o) ? 0 : static_cast<Real>(at(o, c, i, b));
        for (std::int64_t l = 0; present(p.w_o) && l < columns; ++l)
          sum += static_cast<Real>(at(o, l, i, b)) * static_cast<Real>(at(p.w_o, c, l));
        if (present(p.b_o)) sum += static_cast<Real>(at(p.b_o, c));
        const auto& s = result.out.stride;
        store_element(result.out.data, dtype_of(result.out), b * s[0] + i * s[1] + c * s[2], static_cast<double>(sum));
      }
    }
  }
  return ATTEST_OK;
}

}  // namespace

int run_builtin_multihead(const BuiltinKernel& kernel, const attest_multihead_problem& problem, attest_result& result,
                          std::string& message) {
  return dtype_of(problem.q) == DType::f64 ? run<double>(kernel, problem, result, message)
                                           : run<float>(kernel, problem, result, message);
}

}  // namespace attest
