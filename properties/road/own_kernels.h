// The kernels of a run as one of its threads has them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/kernel/kernel_under_test.h"

namespace attest {

/// Clones, each made when it is first asked for; one thread takes the run's own kernels instead, so that a run of one
/// thread starts no process twice. Destroying it ends the clones' processes.
class OwnKernels {
 public:
  /// `of_run` must outlive it.
  OwnKernels(std::span<const std::unique_ptr<Kernel>> of_run, bool takes_originals)
      : of_run_(of_run), clones_(takes_originals ? 0 : of_run.size()), takes_originals_(takes_originals) {}

  /// Throws KernelLoadError where a further process cannot be started.
  [[nodiscard]] Kernel& operator[](std::size_t index) {
    if (takes_originals_) return *of_run_[index];
    std::unique_ptr<Kernel>& clone = clones_[index];
    if (!clone) clone = of_run_[index]->clone();
    return *clone;
  }

  void end_processes() { clones_.clear(); }

 private:
  std::span<const std::unique_ptr<Kernel>> of_run_;
  std::vector<std::unique_ptr<Kernel>> clones_;
  bool takes_originals_;
};

}  // namespace attest
