#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

class SpoiltWide : public Kernel {
 public:
  explicit SpoiltWide(std::function<void(const Case&, WideReply&)> change)
      : kernel_(registered("core:cpp_bin_float_50")), change_(std::move(change)) {}
  [[nodiscard]] const std::string& id() const override { return kernel_->id(); }
  [[nodiscard]] const Manifest& manifest() const override { return kernel_->manifest(); }
  Reply run(const Case& c, DType output, bool want_lse) override { return kernel_->run(c, output, want_lse); }
  [[nodiscard]] bool is_wide() const override { return true; }
  WideReply run_wide(const Case& c) override {
    WideReply reply = kernel_->run_wide(c);
    if (reply.status == CallStatus::ok) change_(c, reply);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<SpoiltWide>(change_); }

 private:
  std::unique_ptr<Kernel> kernel_;
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
