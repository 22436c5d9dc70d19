#include "reports/judge/timed_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/problem/sight.h"
#include "properties/catalogue/property.h"
#include "properties/generators/stream.h"
#include "properties/road/redeclared_kernel.h"
#include "reports/judge/judged_cases.h"

namespace attest {
namespace {

/// Gives the answer that was given before, which is an output in the case's own dtype and nothing else.
class Answered final : public RedeclaredKernel {
 public:
  Answered(Kernel& kernel, Reply reply)
      : RedeclaredKernel(kernel, output_alone(kernel.manifest())), reply_(std::move(reply)) {}
  using Kernel::run;
  [[nodiscard]] Reply run(const Case&, std::optional<DType>, bool) override { return reply_; }

 private:
  static Manifest output_alone(Manifest law) {
    law.lse = false;
    law.out_dtypes.clear();
    return law;
  }
  Reply reply_;
};

const Property& definition() {
  return **std::ranges::find(catalogue(), "attention.oracle", &Property::name);
}

/// Two for each product of a visible key with a row of q, and of its weight with its row of v.
double flops_of(const Case& c) {
  const Extents e = extents_of(c);
  double visible = 0.0;
  for (std::int64_t row = 0; row < e.queries; ++row) {
    const Sight keys = sight(sight_rule(c), row, e.queries, e.keys);
    visible += static_cast<double>(keys.last - keys.first);
  }
  return 2.0 * static_cast<double>(e.batch * e.heads) * visible * static_cast<double>(e.dk + e.dv);
}

CellTime time_of(std::vector<double> seconds, double flops) {
  std::ranges::sort(seconds);
  const auto at = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
  };
  return {std::ssize(seconds), at(0.5), at(0.25), at(0.75), flops};
}

}  // namespace

bool TimedCalls::begins(const ContractCell& cell) {
  const std::lock_guard lock(mutex_);
  return times_.emplace(cell, CellTime{}).second;
}

std::optional<Verdict> TimedCalls::add(Kernel& kernel, const Case& c) {
  const std::optional<ContractCell> cell = cell_of(contract_.shapes, c);
  if (!cell || !std::ranges::binary_search(contract_.cells, *cell) || !begins(*cell)) return std::nullopt;
  Stream stream(case_seed(seed_, "judge.timed", cell->dtype, static_cast<std::int64_t>(cell->shape)));
  // Which of them is judged as well is decided before; large answers are not all kept.
  const std::int64_t judged = stream.below(calls_);
  std::vector<double> seconds;
  std::optional<Verdict> violated;
  for (std::int64_t call = 0; call < calls_; ++call) {
    const auto how = static_cast<Repeat>(stream.between(1, static_cast<std::int64_t>(Repeat::count) - 1));
    const Case asked = repeated(c, how, stream.next());
    const auto start = std::chrono::steady_clock::now();
    Reply reply = kernel.run(asked);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (reply.status == CallStatus::ok) seconds.push_back(took.count());
    if (call != judged && reply.status == CallStatus::ok) continue;
    Answered answered(kernel, std::move(reply));
    Verdict verdict = check_case(definition(), answered, asked, {.rows = Judging::by_size});
    if (verdict.outcome != Outcome::violated) continue;
    verdict.reason = fmt::format("in a call that was timed: {}", verdict.reason);
    violated = std::move(verdict);
    break;
  }
  if (!seconds.empty()) {
    const std::lock_guard lock(mutex_);
    times_[*cell] = time_of(std::move(seconds), flops_of(c));
  }
  return violated;
}

std::map<ContractCell, CellTime> TimedCalls::times() const {
  const std::lock_guard lock(mutex_);
  return times_;
}

}  // namespace attest
