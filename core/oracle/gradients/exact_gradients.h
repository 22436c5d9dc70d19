// The gradients of the heads that share one head of k and v as balls: the definition on Arb's arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/definition/gradients.h"
#include "core/oracle/gradients/group_pass.h"
#include "core/scalars/arb.h"

namespace attest::detail {

/// Pages of the heads in order; those of k and v are in the first. At least `bits` of precision.
[[nodiscard]] std::vector<Gradients<Arb>> exact_gradients(const GradientTask& task, const Sequence& s, std::int64_t kv,
                                                          long bits);

/// Gradients by q, row by row; what was made of the inputs of the last head is kept. One problem's.
class ExactQueryRows {
 public:
  /// That of row i of head h of the problem, [dk]. At least `bits` of precision.
  [[nodiscard]] const Vector<Arb>& row(const GradientTask& task, const Sequence& s, std::int64_t h, std::int64_t i,
                                       long bits);

 private:
  struct Inputs;
  struct Asked {
    Sequence s;
    std::int64_t h, i;
    long bits;
    [[nodiscard]] bool operator==(const Asked&) const = default;
  };
  std::shared_ptr<const Inputs> inputs_;
  std::optional<Asked> asked_;  ///< what `row_` is of
  Vector<Arb> row_;
};

/// Those by arguments that heads and sequences may share, row-major; empty where the problem has no such argument.
struct ExactSharedGradients {
  std::vector<Arb> mask, sink;
};
[[nodiscard]] ExactSharedGradients exact_shared_gradients(const GradientTask& task, long bits);

}  // namespace attest::detail
