// How long a kernel takes for each cell of a contract, told from calls that it cannot tell from judged ones: they stand
// among them, have numbers of their own, and some of their answers are judged.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "reports/judge/contract.h"

namespace attest {

/// Of a cell: seconds as the judge sees them, the way of the tensors to the kernel's process and back included.
struct CellTime {
  std::int64_t calls = 0;
  double median = 0.0, low = 0.0, high = 0.0;  ///< quartiles
  double flops = 0.0;                          ///< of a call: two for each multiplication with a visible key
};

/// Thread-safe.
class TimedCalls {
 public:
  /// `calls` for each cell. `contract` must outlive it; what is asked follows from the seed.
  TimedCalls(const Contract& contract, std::int64_t calls, std::uint64_t seed)
      : contract_(contract), calls_(calls), seed_(seed) {}

  /// To be called when a case was judged: times its cell by it, if it is of one that was not timed yet. What one of the
  /// answers violates; nothing where none does.
  [[nodiscard]] std::optional<Verdict> add(Kernel& kernel, const Case& c);

  [[nodiscard]] std::map<ContractCell, CellTime> times() const;

 private:
  [[nodiscard]] bool begins(const ContractCell& cell);

  const Contract& contract_;
  std::int64_t calls_;
  std::uint64_t seed_;
  mutable std::mutex mutex_;
  std::map<ContractCell, CellTime> times_;
};

}  // namespace attest
