#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/kernel/forwarding_kernel.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

class SpoiltWide : public ForwardingKernel {
 public:
  explicit SpoiltWide(std::function<void(const Case&, WideReply&)> change)
      : ForwardingKernel(registered("core:cpp_bin_float_50")), change_(std::move(change)) {}
  WideReply run_wide(const Case& c) override {
    WideReply reply = ForwardingKernel::run_wide(c);
    if (reply.status == CallStatus::ok) change_(c, reply);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<SpoiltWide>(change_); }

 private:
  std::function<void(const Case&, WideReply&)> change_;
};

}  // namespace

const std::vector<WrongWide>& wrong_wide_kernels() {
  static const std::vector<WrongWide> all{{"of-its-call",
                                           [](const Case& c, WideReply& reply) {
                                             for (WideInterval& x : reply.out)
                                               x.lower += noise_of(hash_of_call(c)), x.upper = x.lower;
                                           }},
                                          {"zero",
                                           [](const Case&, WideReply& reply) {
                                             for (WideInterval& x : reply.out) x.lower = x.upper = 0;
                                           }},
                                          {"other-sign", [](const Case&, WideReply& reply) {
                                             for (WideInterval& x : reply.out) x.lower = x.upper = -x.lower;
                                           }}};
  return all;
}

std::unique_ptr<Kernel> with_wide_fault(const WrongWide& wrong) {
  return std::make_unique<SpoiltWide>(wrong.change);
}

}  // namespace attest
