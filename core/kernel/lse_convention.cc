#include "core/kernel/lse_convention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "core/problem/fields.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

constexpr long double no_sum = -std::numeric_limits<long double>::infinity();

/// What it says of one variant, and of rows without a key.
struct Form {
  bool lacks_sinks = false;
  LseConvention convention;
};
Form form_of(const Manifest& manifest) {
  const auto sinks = manifest.variants.find(sink_variant.name);
  return {.lacks_sinks = sinks != manifest.variants.end() && !sinks->second.lse_has_sink,
          .convention = manifest.lse_convention};
}

/// Row i of an entry of the batch and a head, which is of a sequence.
struct PlacedRow {
  std::int64_t b, h, i;
  const Sequence& sequence;
};

/// NaN, which has no other meaning, or +inf, where the row has no key and the kernel says so of one. A NaN and a +inf
/// in their own right stay.
bool says_empty(const Problem& c, const PlacedRow& row, EmptyLse stated, long double lse) {
  const bool as_stated = stated == EmptyLse::nan             ? std::isnan(lse)
                         : stated == EmptyLse::plus_infinity ? std::isinf(lse) && lse > 0
                                                             : false;
  if (!as_stated) return false;
  const Sequence& s = row.sequence;
  for (std::int64_t j = s.first_key; j < s.first_key + s.keys; ++j)
    if (!hidden(c, row.b, row.h, row.i, j)) return false;
  return true;
}

/// NaN stays NaN, and nothing in the sum is none.
long double with_sink(long double keys, long double sink) {
  if (!std::isfinite(sink) || std::isnan(keys) || keys == std::numeric_limits<long double>::infinity()) return keys;
  const long double most = std::max(keys, sink);
  return most + std::log1p(std::exp(std::min(keys, sink) - most));
}

long double of_contract(const Problem& c, const PlacedRow& row, const Form& form, long double lse) {
  if (says_empty(c, row, form.convention.empty, lse)) lse = no_sum;
  if (form.convention.of_columns && c.causal != Causal::none && std::isfinite(lse)) {
    const Sequence& s = row.sequence;
    lse -= static_cast<long double>(slope_of(c, row.b, row.h)) *
           static_cast<long double>(position(sight_rule(c), row.i - s.first_query, s.queries, s.keys));
  }
  const Tensor& sinks = c[Slot::sink];
  return form.lacks_sinks && sinks.present() ? with_sink(lse, sinks[row.h]) : lse;
}

class WithLseOfContract final : public ForwardingKernel {
 public:
  using ForwardingKernel::ForwardingKernel;
  using Kernel::run;
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<WithLseOfContract>(inner().clone());
  }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = inner().run(c, output, want_lse);
    if (reply.status != CallStatus::ok || !reply.lse.present()) return reply;
    const Form form = form_of(manifest());
    reply.own_lse = reply.lse;
    Tensor& lse = reply.lse.tensor();
    const std::int64_t heads = heads_of(c), queries = queries_of(c);
    for (const Sequence& s : sequences_of(c))
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = s.first_query; i < s.first_query + s.queries; ++i) {
          const std::int64_t at = (s.entry * heads + h) * queries + i;
          lse.set(at, static_cast<double>(of_contract(c, {s.entry, h, i, s}, form, lse[at])));
        }
    return reply;
  }
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    if (!call.own_lse.present()) throw std::logic_error("the log-sum-exp as the kernel returned it is not given");
    return inner().backward(c, {call.out, call.own_lse, call.wanted}, output);
  }
};

}  // namespace

std::unique_ptr<Kernel> with_lse_of_contract(std::unique_ptr<Kernel> kernel) {
  const Form form = form_of(kernel->manifest());
  if (!form.lacks_sinks && form.convention == LseConvention()) return kernel;
  return std::make_unique<WithLseOfContract>(std::move(kernel));
}

}  // namespace attest
