#include "properties/road/confirm.h"

#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "properties/language/compared.h"
#include "properties/road/shrink_budget.h"
#include "properties/road/smallest_shape.h"

namespace attest {
namespace {

/// Checks of a violated case once more before it is reported. A hang costs a whole time limit each, a death the start
/// of a process.
std::int64_t repetitions(Violation violation) {
  switch (violation) {
    case Violation::timed_out:
      return 1;
    case Violation::died:
    case Violation::malformed:
      return 2;
    default:
      return 8;
  }
}

/// What costs a kernel its process, and so starts it afresh.
bool is_death(Violation violation) {
  return violation == Violation::died || violation == Violation::timed_out || violation == Violation::malformed;
}

/// Starts of a kernel that this may cost, and how long they may take in all: a process may take seconds to start.
constexpr int fresh_starts = 2000;
constexpr std::chrono::seconds fresh_time{60};
/// Of a kernel that shows as many findings of a kind without having been asked anything before, the others are taken to
/// be like them: of one that is always wrong each would cost the start of a process.
constexpr int enough_afresh = 8;

}  // namespace

void note_compared(FindingRecord& record, const Manifest& manifest) {
  try {
    record.compared = compared_elements(record.verdict, manifest);
  } catch (const std::bad_alloc&) {
    record.verdict.reason += "; memory ran out as its elements were compared";
  }
}

Tensor answer_of(Kernel& kernel, const Case& c) {
  constexpr std::int64_t most = 1 << 20;
  if (c.out_shape().elements() > most) return {};
  Reply reply = kernel.run(c);
  return reply.status == CallStatus::ok ? std::move(reply.out.tensor()) : Tensor();
}

Tensor answer_to_keep(const Finding& finding, Kernel& kernel) {
  const auto& [record, saved, before] = finding;
  if (record.verdict.outcome != Outcome::violated || record.repetition || saved.provenance.at_load) return {};
  return answer_of(kernel, saved);
}

Confirmer::Confirmer(const Road& road, FreshKernels::Start start)
    : road_(&road), fresh_(std::move(start), fresh_starts, fresh_time) {}

void Confirmer::confirm(Finding& finding, const Property& property, WatchedKernel& kernel, const History& history) {
  try {
    repeat(finding, property, kernel, history);
  } catch (const std::bad_alloc&) {
    finding.record.verdict.reason += "; memory ran out as it was made smaller";
  }
}

void Confirmer::repeat(Finding& finding, const Property& property, WatchedKernel& kernel, const History& history) {
  const Violation violation = finding.record.verdict.violation;
  const CheckOfKernel check = [&](Kernel& asked) {
    WatchedKernel watched(asked, [&] { return kernel.is_to_end(); });
    return road_->check(property, watched, finding.saved);
  };
  const std::int64_t times = repetitions(violation);
  const std::int64_t again = violated_again(check, kernel, times);
  // What a kernel keeps between calls is not in the case: one started afresh tells.
  std::optional<bool> afresh;
  int& shown = shown_afresh_[violation];
  if (again == times && !is_death(violation) && shown < enough_afresh) {
    afresh = fresh_.violates(check, {});
    // One that a kernel started afresh does not show has all that follow asked.
    if (afresh) shown = *afresh ? shown + 1 : std::numeric_limits<int>::min() / 2;
  }
  // Only what comes back is shrunk: a kernel that keeps something would be led astray, and kept from what it takes.
  if (again != times || afresh == false) {
    finding.record.repetition = {.again = again, .of = times};
    if (history) finding.before = calls_it_takes(check, history(), fresh_);
    return;
  }
  const int budget = shrink_budget(violation);
  if (budget == 0) return;
  Case smaller = road_->shrink(property, kernel, finding.saved, budget);
  Verdict then = road_->check(property, kernel, smaller);
  if (then.outcome != Outcome::violated) return;
  if (const std::string shape = smallest_shape_text(extents_of(smaller), kernel.manifest().tiles); !shape.empty())
    then.reason += "; " + shape;
  finding.saved = std::move(smaller);
  finding.record.verdict = std::move(then);
}

}  // namespace attest
