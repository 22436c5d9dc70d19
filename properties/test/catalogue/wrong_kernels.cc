#include "properties/test/catalogue/wrong_kernels.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

/// The log-sum-exp alone.
Spoilt::Fault lse_answered(std::function<double(const Case&, double old)> value) {
  return [value = std::move(value)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (reply.status == CallStatus::ok && reply.lse.present())
      reply.lse = mapped(reply.lse, [&](std::int64_t, double old) { return value(c, old); });
    return reply;
  };
}

std::vector<WrongKernel> with_wrong_lse() {
  return {
      {"lse above", lse_answered([](const Case&, double old) { return old + 9; })},
      {"lse below", lse_answered([](const Case&, double old) { return old - 9; })},
      {"lse of-its-call", lse_answered([](const Case& c, double old) { return old + noise_of(hash_of_call(c)); })},
      {"lse of-no-key", lse_answered([](const Case&, double old) { return std::isfinite(old) ? old : 3; })},
      {"lse a-little-above", lse_answered([](const Case&, double old) { return old + 0.25; })},
      {"lse a-little-below", lse_answered([](const Case&, double old) { return old - 0.25; })},
      {"lse its-size", lse_answered([](const Case&, double old) { return std::fabs(old); })},
      {"lse above-after-row-0",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (reply.status == CallStatus::ok && reply.lse.present())
           reply.lse = mapped(reply.lse, [](std::int64_t e, double old) { return e > 0 ? old + 9 : old; });
         return reply;
       }},
  };
}

std::vector<WrongKernel> made() {
  std::vector<WrongKernel> all = noisy_kernels();
  for (const auto& group :
       {with_wrong_lse(), mistaken_kernels(), mistaken_windows(), mistaken_sinks(), mistaken_softcaps(),
        mistaken_dropouts(), mistaken_alibi(), mistaken_sequences(), mistaken_caches(), mistaken_pages()})
    all.insert(all.end(), group.begin(), group.end());
  return all;
}

}  // namespace

const std::vector<WrongKernel>& wrong_kernels() {
  static const std::vector<WrongKernel> all = made();
  return all;
}

const WrongKernel& wrong_kernel(std::string_view name) {
  const auto found = std::ranges::find(wrong_kernels(), name, &WrongKernel::name);
  if (found == wrong_kernels().end()) throw std::out_of_range(std::string(name));
  return *found;
}

}  // namespace attest
