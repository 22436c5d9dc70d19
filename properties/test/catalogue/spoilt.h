// The plain kernel with its problem or its answer spoilt, and how often a property finds it so.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "properties/catalogue/property.h"
#include "properties/test/catalogue/tampered.h"
#include "properties/test/toy_kernels.h"

namespace attest {

/// All claims that a right toy kernel may make.
inline std::vector<Claim> all_claims() {
  return {Claim::deterministic, Claim::batch_invariant, Claim::padding_invariant, Claim::ignores_dead_values};
}

/// The toy kernel, which multiplies hidden values by nothing: it claims everything and declares NaN for rows without a
/// key.
inline Manifest claiming_manifest() {
  Manifest manifest = toy_manifest();
  manifest.claims = all_claims();
  manifest.fully_masked_row = FullyMaskedRow::nan;
  return manifest;
}

using Tamper = std::function<void(const attest_problem&, attest_result&)>;

/// The toy kernel, its answer then spoilt.
inline std::unique_ptr<Kernel> spoilt(Tamper tamper, Manifest manifest = claiming_manifest()) {
  return function_kernel("toy", std::move(manifest),
                         [tamper = std::move(tamper)](const attest_problem& p, attest_result& r, std::string& m) {
                           const int status = toy_attention(Bug::none, p, r, m);
                           tamper(p, r);
                           return status;
                         });
}

/// Every element of row i of the output: value(i, old).
inline void each(attest_result& r, const std::function<double(std::int64_t i, double old)>& value) {
  const std::int64_t M = r.out.shape[2], dv = r.out.shape[3], cells = r.out.shape[0] * r.out.shape[1] * M * dv;
  const auto dtype = static_cast<DType>(r.out.dtype);
  for (std::int64_t e = 0; e < cells; ++e)
    store_element(r.out.data, dtype, e, value(e / dv % M, load_element(r.out.data, dtype, e)));
}

struct OutcomeCounts {
  int held = 0, violated = 0, excused = 0, skipped = 0;
  std::string reason;  ///< of the first violation
  double worst = 0;    ///< largest utilisation
};

inline OutcomeCounts tally_of(std::string_view name, Kernel& kernel, int cases = 200, DType dtype = DType::f64) {
  const Property& property = *properties_matching(name).at(0);
  OutcomeCounts n;
  for (int k = 0; k < cases; ++k) {
    const Case c = project(generate(property, dtype, /*run_seed=*/1, k), kernel.manifest());
    const Verdict verdict = check_case(property, kernel, c);
    if (verdict.outcome == Outcome::violated && n.violated == 0) n.reason = verdict.reason;
    n.worst = std::max(n.worst, verdict.utilisation);
    (verdict.outcome == Outcome::held       ? n.held
     : verdict.outcome == Outcome::violated ? n.violated
     : verdict.outcome == Outcome::excused  ? n.excused
                                            : n.skipped) += 1;
  }
  return n;
}

}  // namespace attest
