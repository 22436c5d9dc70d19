// A kernel of which nothing is known but some answers that it gave.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/case_file.h"

namespace attest {

/// Answers the problems that were asked, in the output dtype that was answered, and no others. Two equal problems are
/// told apart by their provenance's k.
class AnsweredKernel final : public Kernel {
 public:
  /// Shared by clones, as tensors are large.
  using Calls = std::shared_ptr<const std::vector<AnsweredCase>>;

  /// Of the manifest the log-sum-exp, further output dtypes and claims are left out: only outputs are known, and there
  /// is nobody to be asked twice.
  AnsweredKernel(std::string id, Manifest manifest, Calls calls);

  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  using Kernel::run;
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override;
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override;

 private:
  std::string id_;
  Manifest manifest_;
  Calls calls_;
};

}  // namespace attest
