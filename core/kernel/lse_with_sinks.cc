#include "core/kernel/lse_with_sinks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/kernel/forwarding_kernel.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

class WithSinksInLse final : public ForwardingKernel {
 public:
  using ForwardingKernel::ForwardingKernel;
  using Kernel::run;
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<WithSinksInLse>(inner().clone());
  }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = inner().run(c, output, want_lse);
    const Tensor& sinks = c[Slot::sink];
    if (reply.status != CallStatus::ok || !reply.lse.present() || !sinks.present()) return reply;
    Tensor& lse = reply.lse.tensor();
    for (std::int64_t row = 0; row < lse.elements(); ++row) {
      const long double keys = lse[row], sink = sinks[row / queries_of(c) % heads_of(c)];
      const long double most = std::max(keys, sink);
      // NaN stays NaN, and nothing in the sum is none.
      if (!std::isfinite(sink) || std::isnan(keys) || keys == std::numeric_limits<double>::infinity()) continue;
      lse.set(row, static_cast<double>(most + std::log1p(std::exp(std::min(keys, sink) - most))));
    }
    return reply;
  }
};

}  // namespace

std::unique_ptr<Kernel> with_sinks_in_lse(std::unique_ptr<Kernel> kernel) {
  const auto& variants = kernel->manifest().variants;
  const auto found = variants.find(sink_variant.name);
  if (found == variants.end() || found->second.lse_has_sink) return kernel;
  return std::make_unique<WithSinksInLse>(std::move(kernel));
}

}  // namespace attest
