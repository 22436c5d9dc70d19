#include "properties/road/offered.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/enough.h"
#include "core/problem/combination.h"
#include "properties/road/case_budget.h"

namespace attest {
namespace {

/// As answers of that status are told (answer.h).
bool tells(const Reason& reason, CallStatus status) {
  return reason.why.starts_with(name_of(status));
}

/// The kernel was not asked, as it is too slow for cases of that size.
bool is_too_slow(const Reason& reason) {
  return reason.outcome == Outcome::skipped && tells(reason, CallStatus::too_slow);
}

}  // namespace

bool is_refusal(const Reason& reason) {
  return reason.outcome == Outcome::skipped && tells(reason, CallStatus::unsupported);
}

bool was_offered(const Reason& reason) {
  if (reason.outcome != Outcome::skipped) return true;
  return is_refusal(reason) || is_too_slow(reason) || is_over_budget(reason.why) || reason.why == out_of_memory;
}

std::int64_t offered_cases(const Tally& tally) {
  std::int64_t cases = tally.judged();
  for (const auto& [reason, count] : tally.reasons)
    if (was_offered(reason)) cases += count;
  return cases;
}

namespace {

/// The commonest reason for which cases that were offered, or that were not, were not judged; null where there is none.
const std::pair<const Reason, std::int64_t>* commonest(const std::map<Reason, std::int64_t>& reasons, bool offered) {
  const std::pair<const Reason, std::int64_t>* most = nullptr;
  for (const auto& one : reasons)
    if (was_offered(one.first) == offered && (most == nullptr || one.second > most->second)) most = &one;
  return most;
}

}  // namespace

std::string cause_and_remedy(const std::map<Reason, std::int64_t>& reasons) {
  constexpr std::string_view more = "ask for more cases (--cases)";
  const auto* const most = commonest(reasons, /*offered=*/true);
  if (most == nullptr) return std::string(more);
  const Reason& reason = most->first;
  // Such a reason has its own.
  if (is_too_slow(reason) || (reason.outcome == Outcome::inconclusive && tells(reason, CallStatus::late)))
    return fmt::format("most often ({}) {}", most->second, reason.text());
  const std::string_view remedy = is_refusal(reason) ? "state that limit in the manifest, or take these cases"
                                  : is_over_budget(reason.why)
                                      ? "allow smaller problems in the manifest; these are larger than any case"
                                      : more;
  return fmt::format("most often ({}) {}; {}", most->second, reason.text(), remedy);
}

std::string judged_text(std::int64_t judged, std::int64_t of) {
  return judged == 0 ? fmt::format("none of {} cases", of) : fmt::format("{} of {} cases", judged, of);
}

std::string hardly_tested(const Tally& tally) {
  const std::int64_t least = least_judged(tally.cases()), offered = offered_cases(tally);
  if (tally.judged() >= least || offered < least) return {};
  // Of what is mostly ruled out the few cases that are left may be excused without anybody's doing.
  const auto refused = [](const auto& one) { return one.first.outcome == Outcome::skipped && was_offered(one.first); };
  if (tally.judged() == 0 && tally.skipped > tally.excused + tally.inconclusive &&
      std::ranges::none_of(tally.reasons, refused))
    return {};
  return fmt::format("hardly tested: judged in {} that the manifest offers, where {} are the least for held; {}",
                     judged_text(tally.judged(), offered), least, cause_and_remedy(tally.reasons));
}

std::string hardly_offered(const Tally& tally) {
  const std::int64_t least = least_judged(tally.cases()), offered = offered_cases(tally);
  if (offered >= least) return {};
  const auto* const most = commonest(tally.reasons, /*offered=*/false);
  return fmt::format("hardly offered: {} of {} cases, where {} are the least for held{}", offered, tally.cases(), least,
                     most == nullptr ? "" : fmt::format("; most often ({}) {}", most->second, most->first.text()));
}

void count_combination(Tally& tally, const Walked& walked) {
  if (!walked.is(Outcome::held) && !walked.is(Outcome::violated)) return;
  if (const auto combination = combination_of(walked.problem)) tally.count_drawn(kind_of(*combination));
}

std::optional<Extents> offered_shape(const Walked& walked) {
  const Verdict& verdict = walked.verdict;
  // A case beyond the budget is as it was drawn, and has a shape that the kernel may not take.
  if (!walked.problem.q().present() || walked.problem.provenance.over_budget) return std::nullopt;
  const Extents shape = extents_of(walked.problem);
  if (walked.is(Outcome::held) || walked.is(Outcome::violated)) return shape;
  // What becomes of rows without a key is the manifest's to leave open, and without a query there is nothing to judge.
  if (shape.queries == 0 || shape.keys == 0 || !was_offered({verdict.outcome, verdict.reason})) return std::nullopt;
  return shape;
}

}  // namespace attest
