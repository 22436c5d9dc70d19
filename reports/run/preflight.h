// Before a run: one call of a kernel on a plain problem, which tells at once what would else be seen case by case: no
// answer, one of another shape, NaN, the axes in another order, minutes a call. It changes no verdict and no record.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"
#include "core/problem/case.h"

namespace attest {

/// A small problem without a mask whose extents all differ as far as the manifest's limits let them, so that axes that
/// are mixed up show; always the same one. Nothing where no such problem lies within the limits and the
/// budget of a case (case_budget.h).
[[nodiscard]] std::optional<Case> plain_problem(const Manifest& manifest, DType dtype);

/// What the first answer was like.
struct Preflight {
  std::string
      trouble;  ///< what is wrong with it and what it looks like, in one line; empty: nothing that would be seen
  CallStatus status = CallStatus::ok;
  double seconds = 0;  ///< of a call; of the second one where the first took long, as it may have loaded something
};
/// Calls the kernel once; again, where it took long, and on a problem of other extents, where the answer was wrong
/// in a way that the first did not explain. `c` is a plain_problem of the kernel's manifest.
[[nodiscard]] Preflight preflight(Kernel& kernel, const Case& c);

/// How much a run is to ask, for whoever has to wait for it.
struct Amount {
  std::int64_t cases = 0;  ///< in one dtype of one kernel; 0: not known
  int jobs = 1;
};
/// Preflights of every kernel that is not the project's own in each of its dtypes that is wanted (empty: all). Prints a
/// line for each kind of trouble and for a kernel whose calls make the run long, on standard error. Returns the trouble
/// as notes for the journal. An interrupt ends it early.
[[nodiscard]] std::vector<MetaRecord> look_before_the_run(std::span<const std::unique_ptr<Kernel>> kernels,
                                                          std::span<const DType> wanted, const Amount& amount);

}  // namespace attest
