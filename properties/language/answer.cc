#include "properties/language/answer.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "core/kernel/limits.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

/// Why the contract lets the kernel reject this valid case, or empty.
std::string may_reject(const Manifest& manifest, const Case& c) {
  if (keys_of(c) == 0) return "the kernel rejects a case without keys, as it may";
  const bool policy_allows =
      manifest.fully_masked_row == FullyMaskedRow::error || manifest.fully_masked_row == FullyMaskedRow::undeclared;
  if (policy_allows && has_fully_masked_row(c)) return "the kernel rejects a fully masked row, as it may";
  return {};
}

Violation violation_of(CallStatus status) {
  switch (status) {
    case CallStatus::ok:
    case CallStatus::unsupported:
    case CallStatus::late:
    case CallStatus::too_slow:
      break;
    case CallStatus::rejected:
      return Violation::rejected;
    case CallStatus::failed:
      return Violation::failed;
    case CallStatus::died:
      return Violation::died;
    case CallStatus::timed_out:
      return Violation::timed_out;
    case CallStatus::malformed:
      return Violation::malformed;
  }
  return Violation::none;
}

int badness(Outcome outcome) {
  switch (outcome) {
    case Outcome::violated:
      return 4;
    case Outcome::inconclusive:
      return 3;
    case Outcome::held:
      return 2;
    case Outcome::excused:
      return 1;
    case Outcome::skipped:
      return 0;
  }
  return 0;
}

/// What happened, and what the kernel says of it, if anything.
std::string with_message(std::string_view what, const std::string& message) {
  return message.empty() ? std::string(what) : fmt::format("{}: {}", what, message);
}

}  // namespace

std::string ending_text(CallStatus status, const std::string& message) {
  return with_message(name_of(status), message);
}

Verdict violated(Violation violation, std::string reason) {
  return {.outcome = Outcome::violated,
          .violation = violation,
          .utilisation = std::numeric_limits<double>::infinity(),
          .error = std::numeric_limits<double>::infinity(),
          .reason = std::move(reason)};
}

void throw_without_output(const Manifest& manifest, const Case& c, CallStatus status, const std::string& message) {
  if (status == CallStatus::unsupported || status == CallStatus::too_slow)
    throw NoAnswer{{.outcome = Outcome::skipped, .reason = ending_text(status, message)}};
  if (status == CallStatus::late)
    throw NoAnswer{{.outcome = Outcome::inconclusive, .reason = ending_text(status, message)}};
  if (status == CallStatus::rejected) {
    if (std::string why = may_reject(manifest, c); !why.empty())
      throw NoAnswer{{.outcome = Outcome::skipped, .reason = std::move(why)}};
    throw NoAnswer{violated(Violation::rejected, with_message("rejected: a valid case was refused", message))};
  }
  throw NoAnswer{violated(violation_of(status), ending_text(status, message))};
}

Reply answer(Kernel& kernel, const Case& c, std::optional<DType> output, bool want_lse) {
  Reply reply = kernel.run(c, output, asks_lse(kernel.manifest(), c, want_lse));
  // Of a kernel that is always asked for it, a law that does not speak of it sees none.
  if (!want_lse) reply.lse = {};
  if (reply.status != CallStatus::ok) throw_without_output(kernel.manifest(), c, reply.status, reply.message);
  return reply;
}

Reply answer(Kernel& kernel, const Case& c) {
  return answer(kernel, c, c.dtype(), false);
}

Verdict without_a_promise(const Case& c) {
  return {.outcome = Outcome::skipped,
          .reason = fmt::format("the manifest promises no arithmetic in {}", name_of(c.dtype()))};
}

Verdict worse_of(TwoVerdicts two) {
  auto& [a, b] = two;
  const int level = std::max(a.level, b.level);
  const std::int64_t bits_agreed = a.bits_agreed + b.bits_agreed, bits_compared = a.bits_compared + b.bits_compared;
  std::optional<Alarm> alarm = a.alarm ? a.alarm : b.alarm;
  if (a.alarm && b.alarm) alarm->merge(*b.alarm);
  std::shared_ptr<const ErrorSample> errors = a.errors ? std::move(a.errors) : std::move(b.errors);
  std::optional<Reach> reach = a.reach ? a.reach : b.reach;
  if (a.reach && b.reach) reach->merge(*b.reach);
  const int rank_a = badness(a.outcome), rank_b = badness(b.outcome);
  Verdict& worse = rank_a != rank_b ? (rank_a > rank_b ? a : b) : (b.utilisation > a.utilisation ? b : a);
  worse.level = level;
  worse.alarm = alarm;
  worse.errors = std::move(errors);
  worse.reach = reach;
  worse.bits_agreed = bits_agreed;
  worse.bits_compared = bits_compared;
  return std::move(worse);
}

}  // namespace attest
