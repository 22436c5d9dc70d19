// The road of a run that compares kernels with another one instead of judging their answers by themselves.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "core/kernel/kernel_under_test.h"
#include "reports/run/engine.h"

namespace attest {

/// The kernel of --against: every thread its own.
class OtherKernel {
 public:
  explicit OtherKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  [[nodiscard]] const Kernel& original() const { return *kernel_; }
  /// The calling thread's. Throws KernelLoadError where another cannot be started.
  [[nodiscard]] Kernel& mine();

 private:
  std::mutex mutex_;
  std::unique_ptr<Kernel> kernel_;
  std::map<std::thread::id, std::unique_ptr<Kernel>> clones_;
};

/// The one kernel that `spec` names (open_kernels). Throws UsageError where it names several.
[[nodiscard]] std::unique_ptr<Kernel> open_other_kernel(const std::string& spec, const KernelOptions& options);

/// Cases as every property draws them, within the limits of both manifests; check_against for every property.
[[nodiscard]] Road road_against(const std::shared_ptr<OtherKernel>& other);

}  // namespace attest
