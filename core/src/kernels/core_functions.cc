#include "attest/core_functions.h"

#include <array>
#include <cstring>

#include "attest/columns.h"
#include "attest/layout.h"
#include "attest/position.h"
#include "core_problem.h"
#include "documents/module.h"

namespace attest {
namespace {

template <class T>
constexpr DType own_dtype = DType::f64;
template <>
constexpr DType own_dtype<float> = DType::f32;
template <>
constexpr DType own_dtype<Eigen::half> = DType::f16;
template <>
constexpr DType own_dtype<Eigen::bfloat16> = DType::bf16;

/// The matrices one after another, as one array of that shape.
template <class T>
CoreNumbers numbers_of(const std::vector<Matrix<T>>& pages, const Shape& shape) {
  CoreNumbers numbers{.shape = shape, .native = {}, .wide = {}, .formal = {}, .unit = unit_of<T>()};
  constexpr bool formal = std::is_same_v<T, Expression>;
  if constexpr (!formal && !is_wide_scalar<T>) numbers.native = Tensor(own_dtype<T>, shape);
  std::int64_t at = 0;
  for (const Matrix<T>& page : pages) {
    for (Index i = 0; i < page.rows(); ++i) {
      for (Index j = 0; j < page.cols(); ++j, ++at) {
        if constexpr (formal) {
          numbers.formal.push_back(page(i, j));
        } else if constexpr (is_wide_scalar<T>) {
          numbers.wide.push_back(wide_interval(page(i, j)));
        } else {
          numbers.native.set(at, ScalarTraits<T>::to_double(page(i, j)));
        }
      }
    }
  }
  return numbers;
}
template <class T>
CoreNumbers numbers_of(const Matrix<T>& a) {
  return numbers_of<T>(std::vector<Matrix<T>>{a}, {a.rows(), a.cols()});
}

template <class T>
Matrix<T> matrix_of(const Tensor& a) {
  return matrix_at<T>(a.view());
}

template <class T>
T scale_of(const Case& c) {
  return input<T>(c.scale);
}

BoolMatrix bools_of(const Tensor& a) {
  return matrix_of<double>(a).unaryExpr([](double x) { return x != 0.0; });
}

template <class T>
CoreNumbers core_softmax_rows(const Tensor& a) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(softmax_rows(matrix_of<T>(a)));
}
template <class T>
CoreNumbers core_softmax_columns(const Tensor& a) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(softmax_columns(matrix_of<T>(a)));
}
template <class T>
CoreNumbers core_product(const Tensor& a, const Tensor& b) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(product(matrix_of<T>(a), matrix_of<T>(b)));
}

/// page(q, k, v, scale, mask) of every batch entry and head.
template <class T, class Page>
CoreNumbers per_head(const Case& c, Page&& page) {
  [[maybe_unused]] const CallPrecision<T> precision;
  const attest_problem p = c.problem();
  const Index batch = p.q.shape[0], heads = p.q.shape[1], group = heads / p.k.shape[1];
  const MaskStack<T> masks = masks_of<T>(p.mask, p.mask_convention, p.causal);
  std::vector<Matrix<T>> pages;
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      pages.push_back(page(matrix_at<T>(p.q, b, h), matrix_at<T>(p.k, b, h / group), matrix_at<T>(p.v, b, h / group),
                           scale_of<T>(c), masks(b, h)));
    }
  }
  return numbers_of(pages, c.out_shape());
}
template <class T>
CoreNumbers core_attention(const Case& c) {
  return per_head<T>(c, mattn<T>);
}
template <class T>
CoreNumbers core_attention_renormalised(const Case& c) {
  return per_head<T>(c, mattn_renormalised<T>);
}
template <class T>
CoreNumbers core_attention_columns(const Case& c, const Tensor& allowed) {
  std::optional<BoolMatrix> mask;
  if (allowed.present()) mask = bools_of(allowed);
  return per_head<T>(c,
                     [&](const Matrix<T>& q, const Matrix<T>& k, const Matrix<T>& v, const T& scale, const Mask<T>&) {
                       return transposed(attention_columns(transposed(q), transposed(k), transposed(v), scale, mask));
                     });
}

/// A multihead case as matrices.
template <class T>
struct Entries {
  explicit Entries(const Case& c) : problem(c.multihead_problem()), weights(weights_of<T>(problem)) {
    masks = masks_of<T>(problem.mask, problem.mask_convention, problem.causal);
  }
  attest_multihead_problem problem;
  MultiheadWeights<T> weights;
  MaskStack<T> masks;
  [[nodiscard]] Matrix<T> q(Index b) const { return matrix_at<T>(problem.q, b); }
  [[nodiscard]] Matrix<T> k(Index b) const { return matrix_at<T>(problem.k, b); }
  [[nodiscard]] Matrix<T> v(Index b) const { return matrix_at<T>(problem.v, b); }
  [[nodiscard]] Index batch() const { return problem.q.shape[0]; }
  /// Masks of the heads of one batch entry.
  [[nodiscard]] HeadMasks<T> masks_of_entry(Index b) const {
    std::vector<Mask<T>> pages;
    pages.reserve(static_cast<std::size_t>(weights.heads));
    for (Index h = 0; h < weights.heads; ++h) pages.push_back(masks(b, h));
    return HeadMasks<T>::four_d(std::move(pages), 1, weights.heads);
  }
};

/// page(entries, b) of every batch entry, one below the other: [batch, rows, columns].
template <class T, class Page>
CoreNumbers per_entry(const Case& c, Page&& page) {
  [[maybe_unused]] const CallPrecision<T> precision;
  const Entries<T> entries(c);
  std::vector<Matrix<T>> pages;
  pages.reserve(static_cast<std::size_t>(entries.batch()));
  for (Index b = 0; b < entries.batch(); ++b) pages.push_back(page(entries, b));
  return numbers_of(pages, {entries.batch(), pages[0].rows(), pages[0].cols()});
}
/// page(entries, b, m) of every batch entry and head: [batch, heads, rows, columns].
template <class T, class Page>
CoreNumbers per_entry_and_head(const Case& c, Page&& page) {
  [[maybe_unused]] const CallPrecision<T> precision;
  const Entries<T> entries(c);
  std::vector<Matrix<T>> pages;
  for (Index b = 0; b < entries.batch(); ++b)
    for (Index m = 0; m < entries.weights.heads; ++m) pages.push_back(page(entries, b, m));
  return numbers_of(pages, {entries.batch(), entries.weights.heads, pages[0].rows(), pages[0].cols()});
}

template <class T>
CoreNumbers core_scores(const Case& c) {
  return per_entry_and_head<T>(c, [&](const Entries<T>& e, Index b, Index m) {
    const Weights<T> w = head_of(e.weights, m);
    return masked_scores(project(e.q(b), w.q), project(e.k(b), w.k), scale_of<T>(c));
  });
}
template <class T>
CoreNumbers core_bilinear_scores(const Case& c) {
  return per_entry_and_head<T>(c, [&](const Entries<T>& e, Index b, Index m) {
    const Weights<T> w = head_of(e.weights, m);
    return bilinear_scores(e.q(b), w.q.weight, w.k.weight, scale_of<T>(c));
  });
}
template <class T>
CoreNumbers core_multihead(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhattn(e.q(b), e.k(b), e.v(b), e.weights, scale_of<T>(c), e.masks_of_entry(b));
  });
}
template <class T>
CoreNumbers core_multihead_weights(const Case& c) {
  return per_entry_and_head<T>(c, [&](const Entries<T>& e, Index b, Index m) {
    const Weights<T> w = head_of(e.weights, m);
    Matrix<T> keys = project(e.k(b), w.k);
    Mask<T> mask = e.masks(b, m);
    if (e.weights.bias_k) {
      const Index dk = keys.cols();
      keys = above<T>({keys, e.weights.bias_k->transpose().middleCols(m * dk, dk)});
      mask.appended_keys = 1;
    }
    return attention_weights(project(e.q(b), w.q), keys, scale_of<T>(c), mask);
  });
}
template <class T>
TorchMultihead<T> torch_of(const MultiheadWeights<T>& w, bool packed) {
  TorchMultihead<T> torch;
  const Index d = w.q.weight.cols();
  if (packed) {
    torch.in_proj_weight = Matrix<T>(3 * d, w.q.weight.rows());
    *torch.in_proj_weight << w.q.weight.transpose(), w.k.weight.transpose(), w.v.weight.transpose();
  } else {
    torch.q_proj_weight = w.q.weight.transpose();
    torch.k_proj_weight = w.k.weight.transpose();
    torch.v_proj_weight = w.v.weight.transpose();
  }
  if (w.q.bias) {
    torch.in_proj_bias = Vector<T>(3 * d);
    *torch.in_proj_bias << *w.q.bias, *w.k.bias, *w.v.bias;
  }
  torch.out_proj_weight = w.w_o->transpose();
  torch.out_proj_bias = w.b_o;
  torch.bias_k = w.bias_k;
  torch.bias_v = w.bias_v;
  torch.heads = w.heads;
  return torch;
}
template <class T>
CoreNumbers core_multihead_torch(const Case& c, bool packed) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhattn(e.q(b), e.k(b), e.v(b), from_torch(torch_of(e.weights, packed)), scale_of<T>(c),
                   e.masks_of_entry(b));
  });
}
template <class T>
CoreNumbers core_multihead_as_sum(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhattn_as_sum(e.q(b), e.k(b), e.v(b), e.weights, scale_of<T>(c), e.masks_of_entry(b));
  });
}
template <class T>
CoreNumbers core_multihead_unmasked(const Case& c) {
  return per_entry<T>(
      c, [&](const Entries<T>& e, Index b) { return mhattn(e.q(b), e.k(b), e.v(b), e.weights, scale_of<T>(c)); });
}
template <class T>
CoreNumbers core_multihead_self(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mmhsattn(e.q(b), e.weights, scale_of<T>(c), e.masks_of_entry(b));
  });
}
template <class T>
CoreNumbers core_multihead_self_unmasked(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) { return mhsattn(e.q(b), e.weights, scale_of<T>(c)); });
}
template <class T>
CoreNumbers core_weighted(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return mattn_w(e.q(b), e.k(b), e.v(b), head_of(e.weights, 0), scale_of<T>(c), e.masks(b, 0));
  });
}
template <class T>
CoreNumbers core_weighted_unmasked(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return attn_w(e.q(b), e.k(b), e.v(b), head_of(e.weights, 0), scale_of<T>(c));
  });
}
template <class T>
CoreNumbers core_weighted_self(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    return msattn(e.q(b), head_of(e.weights, 0), scale_of<T>(c), e.masks(b, 0));
  });
}
template <class T>
CoreNumbers core_weighted_self_unmasked(const Case& c) {
  return per_entry<T>(
      c, [&](const Entries<T>& e, Index b) { return sattn(e.q(b), head_of(e.weights, 0), scale_of<T>(c)); });
}
template <class T>
CoreNumbers core_unscaled_self(const Case& c) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) { return unscaled_sattn(e.q(b), head_of(e.weights, 0)); });
}

template <class T>
CoreNumbers core_parameter_free(const Tensor& x) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(parameter_free(matrix_of<T>(x)));
}
template <class T>
CoreNumbers core_shared_projection(const Tensor& x, const Tensor& u) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(shared_projection(matrix_of<T>(x), matrix_of<T>(u)));
}
template <class T>
CoreNumbers core_with_positions(const Tensor& x, const Tensor& table) {
  [[maybe_unused]] const CallPrecision<T> precision;
  return numbers_of(with_positions(matrix_of<T>(x), matrix_of<T>(table)));
}
template <class T>
CoreNumbers core_multihead_v1(const Case& c, const std::vector<Tensor>& positions) {
  return per_entry<T>(c, [&](const Entries<T>& e, Index b) {
    std::vector<PositionedHead<T>> heads;
    for (Index m = 0; m < e.weights.heads; ++m) {
      heads.push_back({.weights = head_of(e.weights, m), .positions = std::nullopt});
      if (!positions.empty()) heads.back().positions = matrix_of<T>(positions.at(static_cast<std::size_t>(m)));
    }
    return multihead_v1(e.q(b), heads, e.weights.w_o, e.weights.b_o, scale_of<T>(c), e.masks(b, 0));
  });
}

template <class T>
constexpr CoreFunctions functions_on{.scalar = ScalarTraits<T>::name,
                                     .softmax_rows = core_softmax_rows<T>,
                                     .softmax_columns = core_softmax_columns<T>,
                                     .product = core_product<T>,
                                     .attention = core_attention<T>,
                                     .attention_renormalised = core_attention_renormalised<T>,
                                     .attention_columns = core_attention_columns<T>,
                                     .scores = core_scores<T>,
                                     .bilinear_scores = core_bilinear_scores<T>,
                                     .multihead = core_multihead<T>,
                                     .multihead_weights = core_multihead_weights<T>,
                                     .multihead_torch = core_multihead_torch<T>,
                                     .multihead_as_sum = core_multihead_as_sum<T>,
                                     .multihead_unmasked = core_multihead_unmasked<T>,
                                     .multihead_self = core_multihead_self<T>,
                                     .multihead_self_unmasked = core_multihead_self_unmasked<T>,
                                     .weighted = core_weighted<T>,
                                     .weighted_unmasked = core_weighted_unmasked<T>,
                                     .weighted_self = core_weighted_self<T>,
                                     .weighted_self_unmasked = core_weighted_self_unmasked<T>,
                                     .unscaled_self = core_unscaled_self<T>,
                                     .parameter_free = core_parameter_free<T>,
                                     .shared_projection = core_shared_projection<T>,
                                     .with_positions = core_with_positions<T>,
                                     .multihead_v1 = core_multihead_v1<T>};

constexpr std::array<const CoreFunctions*, 10> all_functions{
    &functions_on<float>,      &functions_on<double>,      &functions_on<Eigen::half>, &functions_on<Eigen::bfloat16>,
    &functions_on<BinFloat50>, &functions_on<BinFloat100>, &functions_on<Mpfr>,        &functions_on<Interval>,
    &functions_on<Arb>,        &functions_on<Expression>};

bool same_end(const Wide& a, const Wide& b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return a == b && signbit(a) == signbit(b);
}

/// Where element e of the transpose comes from.
std::int64_t before_transposing(const Shape& shape, std::int64_t e) {
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  const std::int64_t page = e / (rows * columns), in_page = e % (rows * columns);
  return page * rows * columns + in_page % rows * columns + in_page / rows;
}

Shape turned(const Shape& shape) {
  std::array<std::int64_t, 4> extents{};
  for (int axis = 0; axis < shape.rank(); ++axis) extents[static_cast<std::size_t>(axis)] = shape[axis];
  const auto last = static_cast<std::size_t>(shape.rank() - 1);
  std::swap(extents[last], extents[last - 1]);
  return Shape(std::span<const std::int64_t>(extents.data(), last + 1));
}

}  // namespace

namespace {

std::vector<const CoreFunctions*>& added_functions() {
  static std::vector<const CoreFunctions*> added;
  return added;
}

}  // namespace

const CoreFunctions* core_functions(std::string_view kernel_id) {
  constexpr std::string_view family = "core:";
  if (!kernel_id.starts_with(family)) return nullptr;
  const std::string_view scalar = kernel_id.substr(family.size());
  for (const CoreFunctions* functions : all_functions)
    if (scalar == functions->scalar) return functions;
  for (const CoreFunctions* functions : added_functions())
    if (scalar == functions->scalar) return functions;
  return nullptr;
}

CoreNumbers (*returned_weights(std::string_view kernel_id))(const Case&) {
  if (const CoreFunctions* const core = core_functions(kernel_id)) return core->multihead_weights;
  return weights_of_document(kernel_id);
}

void add_core_functions(const CoreFunctions& functions) {
  added_functions().push_back(&functions);
}

bool same_bits(const CoreNumbers& a, const CoreNumbers& b) {
  if (a.shape != b.shape || a.native.present() != b.native.present()) return false;
  for (std::size_t e = 0; e < a.formal.size(); ++e) {
    const bool defined = a.formal[e].kind() != ProofKind::undefined, other = b.formal[e].kind() != ProofKind::undefined;
    if (defined != other || (defined && !GenericInputs::current().identical(a.formal[e], b.formal[e]))) return false;
  }
  for (std::size_t e = 0; e < a.wide.size(); ++e)
    if (!same_end(a.wide[e].lower, b.wide[e].lower) || !same_end(a.wide[e].upper, b.wide[e].upper)) return false;
  for (std::int64_t e = 0; e < a.native.elements(); ++e) {
    const double x = a.native[e], y = b.native[e];
    const bool same = std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
    if (!same) return false;
  }
  return true;
}

Tensor transposed(const Tensor& a) {
  Tensor b(a.dtype(), turned(a.shape()));
  for (std::int64_t e = 0; e < b.elements(); ++e) b.set(e, a[before_transposing(a.shape(), e)]);
  return b;
}

CoreNumbers transposed(const CoreNumbers& a) {
  CoreNumbers b{.shape = turned(a.shape), .native = {}, .wide = {}, .formal = {}, .unit = a.unit};
  for (std::int64_t e = 0; e < static_cast<std::int64_t>(a.formal.size()); ++e)
    b.formal.push_back(a.formal[static_cast<std::size_t>(before_transposing(a.shape, e))]);
  if (a.native.present()) b.native = transposed(a.native);
  for (std::int64_t e = 0; e < static_cast<std::int64_t>(a.wide.size()); ++e)
    b.wide.push_back(a.wide[static_cast<std::size_t>(before_transposing(a.shape, e))]);
  return b;
}

}  // namespace attest
