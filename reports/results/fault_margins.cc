#include "reports/results/fault_margins.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/oracle/oracle.h"
#include "properties/faults/faults.h"
#include "reports/results/tolerance_trial.h"

namespace attest {
namespace {

constexpr FaultMargins all[] = {
#include "reports/results/fault_margins.inc"
};

/// By relative_steps, the least absolute tolerance that accepts the wrong elements of a case.
using Margins = std::array<double, relative_steps.size()>;

void note(Margins& margins, const JudgedElement& e, double unit) {
  for (std::size_t step = 0; step < margins.size(); ++step) {
    const double rest = std::isfinite(e.found)
                            ? e.lower - relative_steps[step] * unit * (std::abs(e.exact) + e.certificate)
                            : std::numeric_limits<double>::infinity();
    margins[step] = std::max(margins[step], rest);
  }
}

}  // namespace

std::span<const FaultMargins> fault_margins() {
  return all;
}

FaultMargins measured_margins(std::string_view fault, DType dtype, std::int64_t cases, std::int64_t enough) {
  const auto planted = std::ranges::find(planted_faults(), fault, &PlantedFault::name);
  FaultMargins result{dtype, planted->name, 0, {}};
  std::vector<Margins> found;
  for_each_wrong_case(
      *planted, dtype, cases, [&](const std::string& kinds) { return is_ordinary(kinds); },
      [&](const std::vector<JudgedElement>& wrong) {
        Margins margins{};
        for (const JudgedElement& e : wrong) note(margins, e, format_of(dtype).unit);
        found.push_back(margins);
        return static_cast<std::int64_t>(found.size()) < enough;
      });
  result.wrong = static_cast<std::int64_t>(found.size());
  if (found.empty()) return result;
  for (std::size_t step = 0; step < relative_steps.size(); ++step) {
    std::vector<double> one;
    one.reserve(found.size());
    for (const Margins& margins : found) one.push_back(margins[step]);
    const auto middle = one.begin() + static_cast<std::ptrdiff_t>((one.size() - 1) / 2);
    std::ranges::nth_element(one, middle);
    result.median[step] = code_of(*middle);
  }
  return result;
}

Misses misses_of(const Tolerance& tolerance, DType dtype) {
  std::size_t step = 0;
  while (step + 1 < relative_steps.size() && relative_steps[step + 1] * format_of(dtype).unit <= tolerance.rtol) ++step;
  Misses misses;
  for (const FaultMargins& one : all) {
    if (one.dtype != dtype) continue;
    ++misses.of;
    // NaN and Inf never pass.
    const bool finite = one.median[step] != infinite_code;
    if (finite && tolerance.atol >= size_of_code(one.median[step])) misses.faults.push_back(one.fault);
  }
  return misses;
}

}  // namespace attest
