// A tolerance of somebody's own on trial: which right answers of a kernel it refuses, and which planted faults it
// misses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/arithmetic.h"
#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/oracle/oracle.h"
#include "core/problem/case.h"
#include "core/value/tensor.h"
#include "properties/faults/faults.h"
#include "reports/results/tolerance.h"

namespace attest {

/// The judged elements of one output under a tolerance: accepted is |found - exact| <= atol + rtol |exact|, exact the
/// real number, and NaN or Inf never. Rows and elements that the oracle excuses are left out. What is said to be
/// refused is so for certain; `unsure` is closer to the edge than the exact value is known.
struct Fared {
  std::int64_t right = 0, right_refused = 0;  ///< elements within their bound, and of those the refused ones
  std::int64_t wrong = 0, wrong_refused = 0;  ///< elements beyond their bound
  std::int64_t unsure = 0;
  double excess = 0;    ///< of the refused right ones: the largest error over what the tolerance allows
  double let_pass = 0;  ///< of the wrong ones that are not refused: the largest error over the bound
  Verdict verdict;      ///< with its errors
};
[[nodiscard]] Fared fared(const Tolerance& tolerance, const Case& c, const Tensor& out, const Arithmetic& arithmetic,
                          bool ignores_dead_values);

/// Right answers, and those refused: a case is one with a right element, refused where one of those is.
struct Refusals {
  std::int64_t cases = 0, refused_cases = 0, elements = 0, refused_elements = 0;
  void add(const Fared& one);
};

/// A kernel in a dtype on the first cases of attention.oracle, which `attest check` draws too.
struct KernelTrial {
  std::string kernel;
  DType dtype = DType::f32;
  std::int64_t drawn = 0;
  Refusals all;
  /// By what a case is of: ("inputs", "ordinary" or "others": is_ordinary), ("keys", "17..64 keys"), ("mask", "bias"),
  /// ("values", "huge"), ("scores", "offset").
  std::map<std::pair<std::string, std::string>, Refusals> classes;
  std::int64_t wrong = 0, wrong_refused = 0;  ///< elements beyond their bound
  std::int64_t unsure = 0;                    ///< elements
  /// The case with the refused right answer whose error is the most times what the tolerance allows, the first of
  /// equals; -1: none is refused.
  std::int64_t worst_k = -1;
  double worst_excess = 0;
  std::string worst_kinds;  ///< the generators' words for it
};

/// A planted fault in a dtype, on cases of the properties that catch it in turn. Only what is wrong counts: a right
/// answer of a faulty kernel that is refused is no catch.
struct FaultTrial {
  const PlantedFault* fault = nullptr;
  DType dtype = DType::f32;
  std::int64_t drawn = 0;
  std::int64_t wrong = 0;    ///< cases with an element beyond its bound: those that the proved bound catches
  std::int64_t refused = 0;  ///< of those, where the tolerance refuses such an element
  std::int64_t other = 0;    ///< cases that the property flags for something else: bits, log-sum-exp, memory
  double let_pass = 0;       ///< the largest error that was not refused, over its bound; inf where nothing was allowed
  /// A case that is missed: its property and k; -1: none.
  std::string missed_property;
  std::int64_t missed_k = -1;
};

/// Runs a fault on the first cases of seed 1 of the properties that catch it in turn, `cases` in all, of those that
/// `wanted` takes by the generators' words, and tells of each that has elements beyond their bound; until `told` says
/// false.
void for_each_wrong_case(const PlantedFault& fault, DType dtype, std::int64_t cases,
                         const std::function<bool(const std::string& kinds)>& wanted,
                         const std::function<bool(const std::vector<JudgedElement>& wrong)>& told);

struct TrialPlan {
  Tolerance tolerance;
  std::vector<DType> dtypes;  ///< of those that the kernel has; empty: all
  std::int64_t cases = 2000;  ///< of the kernel per dtype, and at most of each fault
  std::int64_t enough = 50;   ///< wrong cases of a fault, after which no more are drawn
  std::uint64_t seed = 1;
  int jobs = 1;
};

struct TrialResult {
  std::vector<KernelTrial> kernels;  ///< a dtype each
  std::vector<FaultTrial> faults;    ///< by dtype, then in the catalogue's order; those that outputs can show
};

/// Runs it; the same for any number of jobs. `stop` is asked before every call, and ends it by Abandoned.
[[nodiscard]] TrialResult try_tolerance(const TrialPlan& plan, Kernel& kernel, const std::function<bool()>& stop);

/// For a terminal.
[[nodiscard]] std::string trial_text(const TrialResult& result, const TrialPlan& plan);
/// As JSON, schema "attest-tolerance-trial/1".
[[nodiscard]] std::string trial_json(const TrialResult& result, const TrialPlan& plan);

}  // namespace attest
