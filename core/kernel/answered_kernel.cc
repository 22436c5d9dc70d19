#include "core/kernel/answered_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/support/names.h"

namespace attest {

AnsweredKernel::AnsweredKernel(std::string id, Manifest manifest, Calls calls)
    : id_(std::move(id)), manifest_(std::move(manifest)), calls_(std::move(calls)) {
  manifest_.lse = false;
  manifest_.out_dtypes.clear();
  manifest_.claims.clear();
}

Reply AnsweredKernel::run(const Case& c, std::optional<DType> output, [[maybe_unused]] bool want_lse) {
  const auto asked = [&](const AnsweredCase& call) {
    return call.value.provenance.k == c.provenance.k &&
           static_cast<const Problem&>(call.value) == static_cast<const Problem&>(c);
  };
  const auto call = std::ranges::find_if(*calls_, asked);
  if (call == calls_->end()) return {CallStatus::unsupported, "no such call is known", {}, {}};
  if (output && call->found.dtype() != *output) {
    return {CallStatus::malformed,
            fmt::format("the answer is in {}, not {}", name_of(call->found.dtype()), name_of(*output)),
            {},
            {}};
  }
  return {CallStatus::ok, {}, call->found, {}};
}

std::unique_ptr<Kernel> AnsweredKernel::clone() const {
  return std::make_unique<AnsweredKernel>(id_, manifest_, calls_);
}

}  // namespace attest
