#include "reports/judge/judged_kernel.h"

#include <fmt/format.h>

#include <utility>

namespace attest {

JudgedKernel::JudgedKernel(std::unique_ptr<Kernel> kernel, std::shared_ptr<const Contract> contract)
    : ForwardingKernel(std::move(kernel)), contract_(std::move(contract)), law_(contract_->law) {
  law_.name = inner().manifest().name;
  law_.version = inner().manifest().version;
  law_.source = inner().manifest().source;
}

Reply JudgedKernel::run(const Case& c, std::optional<DType> output, bool want_lse) {
  Reply reply = inner().run(c, output, want_lse);
  if (reply.status == CallStatus::unsupported) {
    const std::string words = reply.message.empty() ? "" : fmt::format(": {}", reply.message);
    reply.status = CallStatus::failed;
    reply.message = fmt::format("it refuses what the contract {} asks for{}", contract_->name, words);
  } else if (reply.status == CallStatus::late || reply.status == CallStatus::too_slow) {
    reply.status = CallStatus::timed_out;
  }
  return reply;
}

std::unique_ptr<Kernel> JudgedKernel::clone() const {
  return std::make_unique<JudgedKernel>(inner().clone(), contract_);
}

std::string JudgedKernel::load_finding() const {
  std::string own = inner().load_finding();
  return own.empty() ? asks_beyond(*contract_, inner().manifest()) : own;
}

}  // namespace attest
