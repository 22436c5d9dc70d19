// Confirming what was found violated: it is checked again at once and by a kernel started afresh. What comes back is
// made smaller; of what does not, the calls before it that bring it back are looked for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/journal/journal.h"
#include "properties/road/repeat.h"
#include "properties/road/road.h"

namespace attest {

/// A finding and the case that is saved of it.
struct Finding {
  FindingRecord record;  ///< whoever saves cases names their files: case_file, and those of record.repetition->before
  Case saved;
  std::vector<Call> before{};  ///< the calls that bring it back, where it does not come back by itself
};

/// Says which elements the finding is about; where memory does not suffice it stays as it is.
void note_compared(FindingRecord& record, const Manifest& manifest);

/// What the kernel answers, to be kept beside the case. Not present where it gives none, and where it is too large to
/// be looked at.
[[nodiscard]] Tensor answer_of(Kernel& kernel, const Case& c);
/// To the saved case of a violated finding. Not present, either, where another call would not show it: it comes and
/// goes, takes calls before it, or stands for the loading of the kernel.
[[nodiscard]] Tensor answer_to_keep(const Finding& finding, Kernel& kernel);

/// Of one kernel in one thread.
class Confirmer {
 public:
  /// `start` gives the kernel as a run begins with it.
  Confirmer(const Road& road, FreshKernels::Start start);

  /// The cases that the kernel was given before, each as a step that checks it again. Empty: they are not looked for.
  using History = std::function<std::vector<std::function<void(Kernel&)>>()>;
  /// Confirms a violated finding as far as it gets: where memory runs out its reason says so, and where the run is to
  /// end (Abandoned) it is what was known by then.
  void confirm(Finding& finding, const Property& property, WatchedKernel& kernel, const History& history);

 private:
  void repeat(Finding& finding, const Property& property, WatchedKernel& kernel, const History& history);

  const Road* road_;
  FreshKernels fresh_;
  std::map<Violation, int> shown_afresh_;  ///< findings, by their kind, that a kernel started afresh showed as well
};

}  // namespace attest
