// Problems as matrices of a core scalar, and its numbers as any reader's: what the core's kernels and its functions by
// name share.
#pragma once

#include <optional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "core/call/gathered_keys.h"
#include "core/call/row_factors.h"
#include "core/definition/attention.h"
#include "core/definition/gradients.h"
#include "core/definition/multihead.h"
#include "core/kernel/formal.h"
#include "core/scalars/every_scalar.h"
#include "core/scalars/wide.h"

namespace attest {

/// Sets the precision of scalars that have one at run time, for the time of a call.
template <class T>
struct CallPrecision {};
template <class T>
  requires requires { typename ScalarTraits<T>::Call; }
struct CallPrecision<T> : ScalarTraits<T>::Call {};

inline DType dtype_of(const attest_tensor& t) {
  return static_cast<DType>(t.dtype);
}

/// A number of a case. On expressions it is what the double stands for.
template <class T>
T input(double value) {
  return ScalarTraits<T>::from_double(value);
}
template <>
inline Expression input<Expression>(double value) {
  return GenericInputs::current().at(value);
}

template <class T>
T load(const attest_tensor& t, std::int64_t offset) {
  return input<T>(load_element(t.data, dtype_of(t), offset));
}

/// An enclosure so loose that its middle says nothing of the number in it.
class LooseEnclosure : public std::runtime_error {
 public:
  LooseEnclosure() : std::runtime_error(std::string(why_loose)) {}
};

/// Throws LooseEnclosure where an interval's middle is no answer. Every number of another scalar passes.
template <class T>
void refuse_loose([[maybe_unused]] const T& x) {
  if constexpr (requires { ScalarTraits<T>::enclosure(x); }) {
    if (ScalarTraits<T>::rounding().unit == 0 && is_loose(ScalarTraits<T>::enclosure(x))) throw LooseEnclosure();
  }
}

/// One rounding from T to the tensor's format: f32 not by way of double, the 16-bit formats only from scalars that
/// double holds exactly (no kernel pairs another scalar with them).
template <class T>
void store(const attest_tensor& t, std::int64_t offset, const T& x) {
  if (dtype_of(t) == DType::f32) {
    static_cast<float*>(t.data)[offset] = ScalarTraits<T>::to_float(x);
  } else {
    store_element(t.data, dtype_of(t), offset, ScalarTraits<T>::to_double(x));
  }
}

/// The last two axes of a tensor of rank 2 to 4, at indices a and b of those before them.
template <class T>
Matrix<T> matrix_at(const attest_tensor& t, std::int64_t a = 0, std::int64_t b = 0) {
  const int row = t.rank - 2, column = t.rank - 1;
  const std::int64_t start = offset_in(t, t.rank > 2 ? a : 0, t.rank > 3 ? b : 0);
  Matrix<T> m(t.shape[row], t.shape[column]);
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j) m(i, j) = load<T>(t, start + i * t.stride[row] + j * t.stride[column]);
  return m;
}

template <class T>
std::optional<Vector<T>> vector_of(const attest_tensor& t) {
  if (t.data == nullptr) return std::nullopt;
  Vector<T> v(t.shape[0]);
  for (Index i = 0; i < v.size(); ++i) v(i) = load<T>(t, i * t.stride[0]);
  return v;
}

[[nodiscard]] inline SightRule positions_of(const attest_multihead_problem& p) {
  return {.causal = static_cast<Causal>(p.causal)};
}
[[nodiscard]] inline SightRule positions_of(const attest_problem& p) {
  SightRule rule{.causal = static_cast<Causal>(p.causal)};
  if ((p.variants & ATTEST_WINDOW) != 0) {
    rule.window_left = p.window_left, rule.window_right = p.window_right;
  }
  if ((p.variants & ATTEST_CHUNK) != 0) rule.chunk = p.attention_chunk;
  if ((p.variants & (ATTEST_WINDOW | ATTEST_CHUNK | ATTEST_ALIBI)) != 0)
    rule.alignment = static_cast<Causal>(p.alignment);
  return rule;
}

/// What all masks of a problem have, attest_problem or attest_multihead_problem.
template <class T, class Packed>
Mask<T> common_mask(const Packed& p) {
  Mask<T> common;
  common.positions = positions_of(p);
  common.convention = static_cast<MaskConvention>(p.mask_convention);
  if constexpr (std::same_as<Packed, attest_problem>) {
    if ((p.variants & ATTEST_SOFTCAP) != 0) common.softcap = input<T>(p.softcap);
    if ((p.variants & ATTEST_DROPOUT) != 0 && p.dropout_p != 0)
      common.kept_share = T(ScalarTraits<T>::from_double(1) - input<T>(p.dropout_p));
  }
  return common;
}

[[nodiscard]] inline BoolMatrix flags_at(const attest_tensor& t, std::int64_t b, std::int64_t h) {
  return matrix_at<double>(t, b, h).unaryExpr([](double x) { return x != 0.0; });
}

template <class T>
MaskStack<T> masks_of(const attest_tensor& t, const Mask<T>& common) {
  if (t.data == nullptr) return MaskStack<T>::two_d(common);
  std::vector<Mask<T>> pages;
  for (std::int64_t b = 0; b < t.shape[0]; ++b) {
    for (std::int64_t h = 0; h < t.shape[1]; ++h) {
      Mask<T> page = common;
      if (dtype_of(t) == DType::boolean) {
        page.allowed = flags_at(t, b, h);
      } else {
        page.additive = matrix_at<T>(t, b, h);
      }
      pages.push_back(std::move(page));
    }
  }
  return MaskStack<T>::four_d(std::move(pages), t.shape[0], t.shape[1]);
}

template <class T>
MaskStack<T> masks_of(const attest_multihead_problem& p) {
  return masks_of<T>(p.mask, common_mask<T>(p));
}
/// The masks with the sink and the slope of each head, and with what is dropped.
template <class T>
MaskStack<T> with_heads(const MaskStack<T>& masks, const attest_problem& p) {
  const bool sinks = (p.variants & ATTEST_SINK) != 0, drops = (p.variants & ATTEST_DROPOUT) != 0,
             slopes = (p.variants & ATTEST_ALIBI) != 0;
  if (!sinks && !drops && !slopes) return masks;
  if (drops && p.keep.data == nullptr) throw UsageError("what is dropped is not given, and the core draws nothing");
  const Index batch = p.q.shape[0], heads = p.q.shape[1];
  std::vector<Mask<T>> pages;
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      Mask<T>& page = pages.emplace_back(masks(b, h));
      if (sinks) page.sink = load<T>(p.sink, h * p.sink.stride[0]);
      if (slopes) {
        page.slope = load<T>(p.alibi_slopes, offset_in(p.alibi_slopes, p.alibi_slopes.shape[0] == 1 ? 0 : b, h));
        page.convention = MaskConvention::post_scale;
      }
      if (drops) page.kept = flags_at(p.keep, p.keep.shape[0] == 1 ? 0 : b, p.keep.shape[1] == 1 ? 0 : h);
    }
  }
  return MaskStack<T>::four_d(std::move(pages), batch, heads);
}
template <class T>
MaskStack<T> masks_of(const attest_problem& p) {
  return with_heads(masks_of<T>(p.mask, common_mask<T>(p)), p);
}

/// Rows and keys of one of the sequences of a problem (kernel-interface.md, section 1), in its tensors.
struct Part {
  std::int64_t entry = 0, first_query = 0, queries = 0, first_key = 0, keys = 0;
};
[[nodiscard]] inline std::vector<Part> parts_of(const attest_problem& p) {
  const auto number = [](const attest_tensor& t, std::int64_t at) {
    return static_cast<std::int64_t>(load_element(t.data, DType::i32, at * t.stride[0]));
  };
  std::vector<Part> parts;
  if ((p.variants & ATTEST_PACKED) != 0) {
    for (std::int64_t s = 0; s + 1 < p.q_starts.shape[0]; ++s) {
      const std::int64_t query = number(p.q_starts, s), key = number(p.kv_starts, s);
      parts.push_back({0, query, number(p.q_starts, s + 1) - query, key, number(p.kv_starts, s + 1) - key});
    }
    return parts;
  }
  const bool lengths = (p.variants & ATTEST_LENGTHS) != 0, left_pad = (p.variants & ATTEST_LEFT_PAD) != 0;
  for (std::int64_t b = 0; b < p.q.shape[0]; ++b) {
    Part part{.entry = b, .queries = p.q.shape[2], .keys = p.k.shape[2]};
    if (lengths && p.q_lengths.data != nullptr) part.queries = number(p.q_lengths, b);
    if (lengths && p.kv_lengths.data != nullptr) part.keys = number(p.kv_lengths, b);
    if (left_pad) part.first_key = number(p.left_pad, b);
    part.keys -= part.first_key;
    parts.push_back(part);
  }
  return parts;
}

/// Entries from `first` on of an axis, in the place of all.
[[nodiscard]] inline attest_tensor cut(attest_tensor t, int axis, std::int64_t first, std::int64_t count) {
  if (t.data == nullptr) return t;
  if (count < t.shape[axis]) {
    const std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype_of(t)));
    if (count > 0) t.data = static_cast<std::byte*>(t.data) + first * t.stride[axis] * bytes;
    t.shape[axis] = count;
  }
  return t;
}

/// The part as a problem of its own, without the variants that say where it lies.
[[nodiscard]] inline attest_problem alone(const attest_problem& p, const Part& part) {
  attest_problem one = p;
  one.variants &= ~static_cast<std::uint32_t>(ATTEST_LENGTHS | ATTEST_PACKED | ATTEST_LEFT_PAD);
  one.q = cut(cut(p.q, 0, part.entry, 1), 2, part.first_query, part.queries);
  for (attest_tensor attest_problem::* const t : {&attest_problem::k, &attest_problem::v})
    one.*t = cut(cut(p.*t, 0, part.entry, 1), 2, part.first_key, part.keys);
  for (attest_tensor attest_problem::* const t : {&attest_problem::mask, &attest_problem::keep}) {
    one.*t = cut(cut(p.*t, 0, (p.*t).shape[0] == 1 ? 0 : part.entry, 1), 2, part.first_query, part.queries);
    one.*t = cut(one.*t, 3, part.first_key, part.keys);
  }
  one.alibi_slopes = cut(p.alibi_slopes, 0, p.alibi_slopes.shape[0] == 1 ? 0 : part.entry, 1);
  return one;
}

/// The definition on T of a problem whose sequences are its batch entries, a result per batch entry and head. `in`,
/// `place`: of which it is a part, and where; factors stand there.
template <class T>
std::vector<AttentionResult<T>> results_of_entries(const attest_problem& p, const MaskStack<T>& masks,
                                                   const attest_problem& in, const Part& place = {}) {
  const Index batch = p.q.shape[0], heads = p.q.shape[1], kv_heads = p.k.shape[1];
  const auto pages = [&](attest_tensor attest_problem::* tensor, std::int64_t first_row) {
    const attest_tensor& t = p.*tensor;
    const RowFactors factors = row_factors(in, tensor);
    std::vector<Matrix<T>> all;
    for (Index b = 0; b < t.shape[0]; ++b) {
      for (Index h = 0; h < t.shape[1]; ++h) {
        all.push_back(matrix_at<T>(t, b, h));
        for (Index i = 0; factors.present() && i < t.shape[2]; ++i) {
          const T factor = load<T>(factors.factors, factors.at(place.entry + b, h, first_row + i));
          for (Index c = 0; c < t.shape[3]; ++c) all.back()(i, c) = T(all.back()(i, c) * factor);
        }
      }
    }
    return all;
  };
  return grouped_attention(pages(&attest_problem::q, place.first_query), pages(&attest_problem::k, place.first_key),
                           pages(&attest_problem::v, place.first_key), batch, heads, kv_heads, input<T>(p.scale),
                           masks);
}

/// Of one sequence. The rows of one without keys among others that have some are fully masked.
template <class T>
std::vector<AttentionResult<T>> results_of(const attest_problem& p, Part part) {
  if (part.keys > 0 || p.k.shape[2] == 0) {
    const attest_problem one = alone(p, part);
    return results_of_entries<T>(one, masks_of<T>(one), p, part);
  }
  part.first_key = 0, part.keys = 1;
  const Mask<T> nothing = boolean_mask<T>(BoolMatrix::Constant(part.queries, part.keys, false));
  const attest_problem one = alone(p, part);
  return results_of_entries<T>(one, with_heads(MaskStack<T>::two_d(nothing), one), p, part);
}

/// The definition on T, a result per batch entry and head. Rows of no sequence are 0, and so is their lse.
template <class T>
std::vector<AttentionResult<T>> attention_results(const attest_problem& given) {
  const GatheredKeys gathered(given);
  const attest_problem& p = gathered.problem;
  constexpr std::uint32_t of_sequences = ATTEST_LENGTHS | ATTEST_PACKED | ATTEST_LEFT_PAD;
  if ((p.variants & of_sequences) == 0) return results_of_entries<T>(p, masks_of<T>(p), p);
  const Index batch = p.q.shape[0], heads = p.q.shape[1], queries = p.q.shape[2], width = p.v.shape[3];
  const T zero = ScalarTraits<T>::from_double(0);
  std::vector<AttentionResult<T>> all(static_cast<std::size_t>(batch * heads),
                                      {Matrix<T>::Constant(queries, width, zero), Vector<T>::Constant(queries, zero)});
  for (const Part& part : parts_of(p)) {
    if (part.queries == 0) continue;
    const std::vector<AttentionResult<T>> own = results_of<T>(p, part);
    for (Index h = 0; h < heads; ++h) {
      AttentionResult<T>& to = all[static_cast<std::size_t>(part.entry * heads + h)];
      const AttentionResult<T>& from = own[static_cast<std::size_t>(h)];
      for (Index i = 0; i < part.queries; ++i) {
        for (Index c = 0; c < width; ++c) to.out(part.first_query + i, c) = from.out(i, c);
        to.lse(part.first_query + i) = from.lse(i);
      }
    }
  }
  return all;
}

/// A loss's gradients by the output, and by the log-sum-exp where that has some.
struct LossGradients {
  attest_tensor out, lse;
};

/// The definition's gradients on T, pages as grouped_gradients has them, of a problem whose sequences are its batch
/// entries.
template <class T>
std::vector<Gradients<T>> gradients_of_entries(const attest_problem& p, const LossGradients& loss) {
  const auto pages = [](const attest_tensor& t) {
    std::vector<Matrix<T>> all;
    for (Index b = 0; b < t.shape[0]; ++b)
      for (Index h = 0; h < t.shape[1]; ++h) all.push_back(matrix_at<T>(t, b, h));
    return all;
  };
  std::vector<AnswerGradients<T>> of;
  for (Matrix<T>& page : pages(loss.out)) of.push_back({std::move(page), std::nullopt});
  if (loss.lse.data != nullptr) {
    const Index heads = loss.lse.shape[1], rows = loss.lse.shape[2];
    for (std::size_t page = 0; page < of.size(); ++page) {
      Vector<T>& by = of[page].lse.emplace(rows);
      const auto at = static_cast<Index>(page);
      for (Index i = 0; i < rows; ++i) by(i) = load<T>(loss.lse, offset_in(loss.lse, at / heads, at % heads, i));
    }
  }
  return grouped_gradients(pages(p.q), pages(p.k), pages(p.v), p.q.shape[0], p.q.shape[1], p.k.shape[1],
                           input<T>(p.scale), masks_of<T>(p), of);
}

/// Those by arguments that heads and sequences may share, summed up: a page for each of the mask's, and a number for
/// each head that has a sink. Empty where the problem has no such argument.
template <class T>
struct SharedSums {
  std::vector<Matrix<T>> mask;
  std::vector<T> sink;
};
/// In the order of `all`, pages by batch entry and head.
template <class T>
SharedSums<T> shared_sums(const attest_problem& p, const std::vector<Gradients<T>>& all) {
  SharedSums<T> sums;
  const Index heads = p.q.shape[1];
  const T zero = ScalarTraits<T>::from_double(0);
  if (p.mask.data != nullptr && static_cast<DType>(p.mask.dtype) != DType::boolean)
    sums.mask.assign(static_cast<std::size_t>(p.mask.shape[0] * p.mask.shape[1]),
                     Matrix<T>::Constant(p.mask.shape[2], p.mask.shape[3], zero));
  if ((p.variants & ATTEST_SINK) != 0) sums.sink.assign(static_cast<std::size_t>(heads), zero);
  std::vector<bool> any(sums.mask.size(), false), any_sink(sums.sink.size(), false);
  const auto add = [](auto& sum, const auto& term, std::vector<bool>::reference begun) {
    if (begun)
      sum = sum + term;
    else
      sum = term;
    begun = true;
  };
  for (std::size_t page = 0; page < all.size(); ++page) {
    const Index b = static_cast<Index>(page) / heads, h = static_cast<Index>(page) % heads;
    if (!sums.mask.empty() && all[page].mask) {
      const auto at = static_cast<std::size_t>(b % p.mask.shape[0] * p.mask.shape[1] + h % p.mask.shape[1]);
      add(sums.mask[at], *all[page].mask, any[at]);
    }
    if (const auto at = static_cast<std::size_t>(h); !sums.sink.empty() && all[page].sink)
      add(sums.sink[at], *all[page].sink, any_sink[at]);
  }
  return sums;
}

/// A sequence without keys: the log-sum-exp of each row is its sink.
template <class T>
void add_to_sinks_alone(const attest_problem& p, const attest_tensor& of_lse, const Part& part,
                        std::vector<Gradients<T>>& all) {
  const Index heads = p.q.shape[1];
  if (of_lse.data == nullptr || (p.variants & ATTEST_SINK) == 0) return;
  for (Index h = 0; h < heads; ++h) {
    if (ScalarTraits<T>::is_minus_infinity(load<T>(p.sink, h * p.sink.stride[0]))) continue;
    T& sum = *all[static_cast<std::size_t>(part.entry * heads + h)].sink;
    for (Index i = part.first_query; i < part.first_query + part.queries; ++i)
      sum = T(sum + load<T>(of_lse, offset_in(of_lse, part.entry, h, i)));
  }
}

/// The definition's gradients on T. Those of rows and keys of no sequence are 0.
template <class T>
std::vector<Gradients<T>> gradients_of(const attest_problem& p, const LossGradients& loss) {
  constexpr std::uint32_t of_sequences = ATTEST_LENGTHS | ATTEST_PACKED | ATTEST_LEFT_PAD;
  if ((p.variants & of_sequences) == 0) return gradients_of_entries<T>(p, loss);
  const Index batch = p.q.shape[0], heads = p.q.shape[1], group = heads / p.k.shape[1];
  const auto zeros = [](const attest_tensor& t) {
    return Matrix<T>::Constant(t.shape[2], t.shape[3], ScalarTraits<T>::from_double(0));
  };
  const T zero = ScalarTraits<T>::from_double(0);
  const bool has_mask = p.mask.data != nullptr && static_cast<DType>(p.mask.dtype) != DType::boolean;
  std::vector<Gradients<T>> all(static_cast<std::size_t>(batch * heads));
  for (std::size_t page = 0; page < all.size(); ++page) {
    all[page].q = zeros(p.q);
    if (has_mask) all[page].mask = zeros(p.mask);
    if ((p.variants & ATTEST_SINK) != 0) all[page].sink = zero;
    if (static_cast<Index>(page) % group == 0) all[page].k = zeros(p.k), all[page].v = zeros(p.v);
  }
  for (const Part& part : parts_of(p)) {
    if (part.queries == 0) continue;
    if (part.keys == 0) {
      add_to_sinks_alone(p, loss.lse, part, all);
      continue;
    }
    const auto own_rows = [&](const attest_tensor& t) {
      return t.data == nullptr ? t : cut(cut(t, 0, part.entry, 1), 2, part.first_query, part.queries);
    };
    const std::vector<Gradients<T>> own =
        gradients_of_entries<T>(alone(p, part), {own_rows(loss.out), own_rows(loss.lse)});
    for (Index h = 0; h < heads; ++h) {
      Gradients<T>& to = all[static_cast<std::size_t>(part.entry * heads + h)];
      const Gradients<T>& from = own[static_cast<std::size_t>(h)];
      to.q.middleRows(part.first_query, part.queries) = from.q;
      for (Index i = 0; has_mask && i < part.queries; ++i)
        for (Index j = 0; j < part.keys; ++j) (*to.mask)(part.first_query + i, part.first_key + j) = (*from.mask)(i, j);
      if (to.sink) to.sink = T(*to.sink + *from.sink);
      if (h % group != 0) continue;
      to.k.middleRows(part.first_key, part.keys) = from.k;
      to.v.middleRows(part.first_key, part.keys) = from.v;
    }
  }
  return all;
}

template <class T>
MultiheadWeights<T> weights_of(const attest_multihead_problem& p) {
  MultiheadWeights<T> w;
  w.q = {.weight = matrix_at<T>(p.w_q), .bias = vector_of<T>(p.b_q)};
  w.k = {.weight = matrix_at<T>(p.w_k), .bias = vector_of<T>(p.b_k)};
  w.v = {.weight = matrix_at<T>(p.w_v), .bias = vector_of<T>(p.b_v)};
  if (p.w_o.data != nullptr) w.w_o = matrix_at<T>(p.w_o);
  w.b_o = vector_of<T>(p.b_o);
  w.bias_k = vector_of<T>(p.bias_k);
  w.bias_v = vector_of<T>(p.bias_v);
  w.heads = p.heads;
  return w;
}

/// The batch entries of a tensor [batch, rows, columns].
template <class T>
std::vector<Matrix<T>> entries_at(const attest_tensor& t) {
  std::vector<Matrix<T>> all;
  all.reserve(static_cast<std::size_t>(t.shape[0]));
  for (Index b = 0; b < t.shape[0]; ++b) all.push_back(matrix_at<T>(t, b));
  return all;
}

/// Writes an output per batch entry, [batch, M, d_o]. Throws as refuse_loose.
template <class T>
void store_entries(const std::vector<Matrix<T>>& outputs, const attest_tensor& out) {
  for (Index b = 0; b < static_cast<Index>(outputs.size()); ++b) {
    const Matrix<T>& entry = outputs[static_cast<std::size_t>(b)];
    for (Index i = 0; i < entry.rows(); ++i)
      for (Index c = 0; c < entry.cols(); ++c) {
        refuse_loose(entry(i, c));
        store(out, offset_in(out, b, i, c), entry(i, c));
      }
  }
}

/// The definition on T, an output per batch entry.
template <class T>
std::vector<Matrix<T>> multihead_outputs(const attest_multihead_problem& p) {
  return mmhattn_batch(entries_at<T>(p.q), entries_at<T>(p.k), entries_at<T>(p.v), weights_of<T>(p), input<T>(p.scale),
                       masks_of<T>(p));
}

/// Wider than every dtype.
template <class T>
inline constexpr bool is_wide_scalar = !requires { ScalarTraits<T>::dtype; };

/// The matrices one after another, as one array of that shape, in the scalar's own numbers.
template <class T>
Values numbers_of(const std::vector<Matrix<T>>& pages, const Shape& shape) {
  const auto for_each = [&](auto take) {
    for (const Matrix<T>& page : pages)
      for (Index i = 0; i < page.rows(); ++i)
        for (Index j = 0; j < page.cols(); ++j) take(page(i, j));
  };
  if constexpr (std::is_same_v<T, Expression>) {
    std::vector<Expression> formulas;
    for_each([&](const T& x) { formulas.push_back(x); });
    return Expressions(shape, std::move(formulas));
  } else if constexpr (is_wide_scalar<T>) {
    std::vector<WideInterval> wide;
    for_each([&](const T& x) { wide.push_back(ScalarTraits<T>::enclosure(x)); });
    return Enclosures(shape, std::move(wide), ScalarTraits<T>::rounding());
  } else {
    Tensor tensor(ScalarTraits<T>::dtype, shape);
    for_each([&, e = std::int64_t{0}](const T& x) mutable { tensor.set(e++, ScalarTraits<T>::to_double(x)); });
    return tensor;
  }
}
template <class T>
Values numbers_of(const Matrix<T>& a) {
  return numbers_of(std::vector<Matrix<T>>{a}, {a.rows(), a.cols()});
}

}  // namespace attest
