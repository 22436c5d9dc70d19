// The generic core on a scalar as a kernel under test: "core:float", "core:half", "core:mpfr", …
#pragma once

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/call/drawn_keep.h"
#include "core/call/guarded_memory.h"
#include "core/call/problem_in_memory.h"
#include "core/kernel/forwarding_kernel.h"
#include "core/kernels/core_problem.h"
#include "core/problem/fields.h"
#include "core/problem/kv_cache.h"

namespace attest::detail {

template <class T>
int run_attention(const attest_problem& given, attest_result& result, std::string& message) try {
  [[maybe_unused]] const CallPrecision<T> precision;
  const DrawnKeep drawn(given);
  const attest_problem& p = drawn.problem;
  const Index batch = p.q.shape[0], heads = p.q.shape[1];
  const std::vector<AttentionResult<T>> results = attention_results<T>(p);
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) {
      const AttentionResult<T>& page = results[static_cast<std::size_t>(b * heads + h)];
      for (Index i = 0; i < page.out.rows(); ++i) {
        for (Index c = 0; c < page.out.cols(); ++c) {
          refuse_loose(page.out(i, c));
          store(result.out, offset_in(result.out, b, h, i, c), page.out(i, c));
        }
        if (result.lse.data == nullptr) continue;
        refuse_loose(page.lse(i));
        store(result.lse, offset_in(result.lse, b, h, i), page.lse(i));
      }
    }
  }
  return ATTEST_OK;
} catch (const UsageError& error) {
  message = error.what();
  return ATTEST_REJECTED;
} catch (const LooseEnclosure& loose) {
  message = loose.what();
  return ATTEST_UNSUPPORTED;
}

template <class T>
int run_multihead(const attest_multihead_problem& p, attest_result& result, std::string& message) try {
  [[maybe_unused]] const CallPrecision<T> precision;
  store_entries(multihead_outputs<T>(p), result.out);
  return ATTEST_OK;
} catch (const UsageError& error) {
  message = error.what();
  return ATTEST_REJECTED;
} catch (const LooseEnclosure& loose) {
  message = loose.what();
  return ATTEST_UNSUPPORTED;
}

/// Those of the definition at the exact answers, whatever the forward pass returned.
template <class T>
int run_backward(const attest_backward_problem& given, attest_gradients& result, std::string& message) try {
  [[maybe_unused]] const CallPrecision<T> precision;
  const DrawnKeep drawn(*given.forward);
  const attest_problem& p = drawn.problem;
  constexpr std::uint32_t taken = ATTEST_WINDOW | ATTEST_CHUNK | ATTEST_LENGTHS | ATTEST_PACKED | ATTEST_LEFT_PAD |
                                  ATTEST_SINK | ATTEST_SOFTCAP | ATTEST_DROPOUT | ATTEST_ALIBI;
  if ((p.variants & ~taken) != 0) {
    message = "its backward pass has no caches and no factors";
    return ATTEST_UNSUPPORTED;
  }
  const Index batch = p.q.shape[0], heads = p.q.shape[1], kv_heads = p.k.shape[1];
  const std::vector<Gradients<T>> all = gradients_of<T>(p, {given.d_out, given.d_lse});
  const auto write = [](const Matrix<T>& page, const attest_tensor& to, Index b, Index h) {
    for (Index i = 0; to.data != nullptr && i < page.rows(); ++i)
      for (Index c = 0; c < page.cols(); ++c) {
        refuse_loose(page(i, c));
        store(to, offset_in(to, b, h, i, c), page(i, c));
      }
  };
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < heads; ++h) write(all[static_cast<std::size_t>(b * heads + h)].q, result.dq, b, h);
    for (Index h = 0; h < kv_heads; ++h) {
      const Gradients<T>& first = all[static_cast<std::size_t>(b * heads + h * (heads / kv_heads))];
      write(first.k, result.dk, b, h), write(first.v, result.dv, b, h);
    }
  }
  const SharedSums<T> shared = shared_sums(p, all);
  for (std::size_t page = 0; result.dmask.data != nullptr && page < shared.mask.size(); ++page) {
    const Index kinds = p.mask.shape[1], at = static_cast<Index>(page);
    write(shared.mask[page], result.dmask, at / kinds, at % kinds);
  }
  for (std::size_t h = 0; result.dsink.data != nullptr && h < shared.sink.size(); ++h) {
    refuse_loose(shared.sink[h]);
    store(result.dsink, static_cast<std::int64_t>(h) * result.dsink.stride[0], shared.sink[h]);
  }
  return ATTEST_OK;
} catch (const UsageError& error) {
  message = error.what();
  return ATTEST_REJECTED;
} catch (const LooseEnclosure& loose) {
  message = loose.what();
  return ATTEST_UNSUPPORTED;
}

/// `inner` is the format every operation of the scalar rounds to, or f64 where the scalar is wider than that: then one
/// rounding to the output is all there is, and f64 is the loosest true statement the manifest has words for.
inline Arithmetic core_arithmetic(DType dtype, DType inner) {
  Arithmetic a;
  a.input = a.output = dtype;
  a.score_sums = a.accumulate = a.weights = inner;
  a.exp_ulp = 1.0;
  a.tanh = {TanhMeasure::ulp, 2.5};
  a.base2 = false;
  a.folded_exp2 = false;
  a.split_merge = false;
  a.normalise_first = true;
  a.max = MaxPolicy::running;
  a.block = 0;
  a.bias_in_sum = false;
  a.division_roundings = 1;
  return a;
}

/// Weights and D of its own, every operation in the one format.
inline void state_backward(Manifest& manifest, DType inner) {
  manifest.backward = true;
  BackwardTerms& terms = manifest.backward_terms;
  terms.dmask = terms.dsink = true;
  terms.uses_out = terms.uses_lse = false;
  terms.d_lse = true;
  terms.own_dropout = manifest.variants.find(dropout_variant.name)->second.own;
  terms.masked_row = MaskedGradient::zero;
  terms.weights = WeightsFrom::stored, terms.delta = DeltaFrom::weights;
  terms.claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values};
  for (const DType dtype : manifest.dtypes) {
    BackwardArithmetic a;
    a.output = dtype;
    a.dot = a.accumulate = a.weights = a.of_weights = a.of_scores = inner;
    manifest.arithmetic.backward.emplace(dtype, a);
  }
}

/// A kernel on a wide scalar: rounded to a dtype as any other, or as it is.
template <class T>
class WideKernel final : public ForwardingKernel {
 public:
  WideKernel(std::unique_ptr<Kernel> rounded, unsigned digits)
      : ForwardingKernel(std::move(rounded)), digits_(digits) {}
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<WideKernel<T>>(inner().clone(), digits_);
  }
  [[nodiscard]] unsigned digits() const override { return digits_; }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override try {
    const AskedPrecision asked(digits_);
    if (output) return ForwardingKernel::run(c, output, want_lse);
    [[maybe_unused]] const CallPrecision<T> precision;
    std::vector<Matrix<T>> pages;
    if (c.operation == Operation::attention) {
      const Case in_cache = is_in_cache(c) ? laid_out_in_cache(c) : Case();
      attest_problem problem = (is_in_cache(c) ? in_cache : c).problem();
      lay_out(problem, c);
      for (AttentionResult<T>& page : attention_results<T>(problem)) pages.push_back(std::move(page.out));
    } else {
      attest_multihead_problem problem = c.multihead_problem();
      lay_out(problem, c);
      pages = multihead_outputs<T>(problem);
    }
    return {CallStatus::ok, {}, numbers_of(pages, c.out_shape()), {}};
  } catch (const UsageError& error) {
    return {CallStatus::rejected, error.what(), {}, {}};
  }

 private:
  /// The problem's tensors in the layouts that the case names, if it names any.
  template <class Packed>
  void lay_out(Packed& problem, const Case& c) {
    const Layouts layouts = layouts_of(c);
    if (layouts == Layouts()) return;
    memory_.clear(manifest().alignment, GuardedMemory::Fill::signalling);
    add_inputs(memory_, problem, layouts);
    memory_.lay_out();
  }

  unsigned digits_;
  GuardedMemory memory_;
};

/// Has a precision that is chosen as it runs.
template <class T>
inline constexpr bool has_any_precision = requires { typename ScalarTraits<T>::Call; };

/// Decimal digits of a wide scalar.
template <class T>
unsigned digits_of() {
  if constexpr (has_any_precision<T>) return run_time_digits;
  const long double unit = ScalarTraits<T>::rounding().unit;
  return unit > 0 ? static_cast<unsigned>(std::lround(-std::log10(unit))) : run_time_digits;
}

template <class T>
Manifest core_manifest(const std::string& id) {
  DType inner = DType::f64;
  if constexpr (!is_wide_scalar<T>) inner = ScalarTraits<T>::dtype;
  std::vector<DType> dtypes{inner};
  if (inner == DType::f64) dtypes.push_back(DType::f32);
  Manifest manifest;
  manifest.name = id;
  manifest.version = "1";
  for (const DType dtype : dtypes) manifest.arithmetic.usual.emplace(dtype, core_arithmetic(dtype, inner));
  manifest.dtypes = std::move(dtypes);
  manifest.claims = {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant,
                     Claim::ignores_dead_values};
  manifest.fully_masked_row = core_fully_masked_row;
  manifest.multihead = true;
  manifest.mask_conventions = {MaskConvention::post_scale, MaskConvention::pre_scale};
  manifest.causal = {Causal::top_left, Causal::bottom_right};
  manifest.variants = every_variant();
  VariantTerms& dropout = manifest.variants.find(dropout_variant.name)->second;
  dropout.applied = DropoutPlace::weights;
  // A mask says nothing of a scalar: those of dtypes draw for all.
  dropout.own = !is_wide_scalar<T>;
  state_terms_in_arithmetic(manifest);
  manifest.promises = manifest.arithmetic;
  // Of 16 bits a scalar takes sinks of its own, as others may lie beyond its range.
  if (inner == DType::f16 || inner == DType::bf16) manifest.variants.find(sink_variant.name)->second.dtypes = {inner};
  manifest.grouped_query = true;
  manifest.strides = true;
  manifest.lse = true;
  state_backward(manifest, inner);
  return manifest;
}

template <class T>
KernelEntry core_entry() {
  const auto named = [](const std::string& id, [[maybe_unused]] unsigned digits) -> std::unique_ptr<Kernel> {
    std::unique_ptr<Kernel> rounded =
        function_kernel(id, core_manifest<T>(id), {run_attention<T>, run_multihead<T>, run_backward<T>});
    if constexpr (is_wide_scalar<T>) return std::make_unique<WideKernel<T>>(std::move(rounded), digits);
    return rounded;
  };
  KernelEntry entry;
  entry.id = "core:" + std::string(ScalarTraits<T>::name);
  entry.summary = std::string(ScalarTraits<T>::summary);
  if constexpr (is_wide_scalar<T>) {
    entry.digits = digits_of<T>();
  } else {
    entry.bits = format_of(ScalarTraits<T>::dtype).precision;
  }
  entry.any_digits = has_any_precision<T>;
  entry.make = [named, id = entry.id, digits = entry.digits] { return named(id, digits); };
  if constexpr (is_wide_scalar<T>) entry.make_as = named;
  return entry;
}

}  // namespace attest::detail
