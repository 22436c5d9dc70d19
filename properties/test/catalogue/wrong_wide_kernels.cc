#include <memory>
#include <utility>
#include <vector>

#include "core/kernel/forwarding_kernel.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

class SpoiltWide : public ForwardingKernel {
 public:
  explicit SpoiltWide(const WrongWide& wrong) : ForwardingKernel(registered("core:cpp_bin_float_50")), wrong_(wrong) {}
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    const auto* const right = reply.out.as<Enclosures>();
    if (right == nullptr) return reply;
    std::vector<WideInterval> wrong;
    for (std::int64_t e = 0; e < right->elements(); ++e) {
      const Wide number = wrong_.change(c, (*right)[e].lower);
      wrong.push_back({number, number});
    }
    reply.out = Enclosures(right->shape(), std::move(wrong), right->rounding());
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<SpoiltWide>(wrong_); }

 private:
  WrongWide wrong_;
};

}  // namespace

const std::vector<WrongWide>& wrong_wide_kernels() {
  static const std::vector<WrongWide> all{
      {"of-its-call", [](const Case& c, const Wide& right) -> Wide { return right + noise_of(hash_of_call(c)); }},
      {"zero", [](const Case&, const Wide&) -> Wide { return 0; }},
      {"other-sign", [](const Case&, const Wide& right) -> Wide { return -right; }}};
  return all;
}

std::unique_ptr<Kernel> with_wide_fault(const WrongWide& wrong) {
  return std::make_unique<SpoiltWide>(wrong);
}

}  // namespace attest
