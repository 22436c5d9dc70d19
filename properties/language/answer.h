// Runs of a kernel inside a property: how a call that brought no output becomes a verdict, and how verdicts combine.
#pragma once

#include <optional>
#include <string>

#include "core/kernel/kernel_under_test.h"
#include "core/measure/verdict.h"
#include "core/problem/case.h"

namespace attest {

/// Thrown by `answer` for a call without an output; check_case turns it into the verdict.
struct NoAnswer {
  Verdict verdict;
};

/// The kernel's reply to a valid case, with its output, as Kernel::run has it; lse too where the manifest offers one
/// and it is wanted. Throws NoAnswer for every status but ok: skipped for `unsupported`, `too_slow` and a rejection
/// that the contract allows, inconclusive for `late`, violated with an infinite utilisation for the others; the reason
/// is ending_text.
[[nodiscard]] Reply answer(Kernel& kernel, const Case& c, std::optional<DType> output, bool want_lse);
[[nodiscard]] Reply answer(Kernel& kernel, const Case& c);

/// Throws the NoAnswer of a call that ended with a status other than ok, as above.
[[noreturn]] void throw_without_output(const Manifest& manifest, const Case& c, CallStatus status,
                                       const std::string& message);

/// How a call ended, in words: "STATUS: message", or "STATUS" of a kernel that says nothing.
[[nodiscard]] std::string ending_text(CallStatus status, const std::string& message);

/// Two verdicts, written in braces: the first is reached before the second one with every compiler (Sides of agree.h).
struct TwoVerdicts {
  Verdict first, second;
};

/// The worse of the two: violated, inconclusive, held, excused, skipped; the larger utilisation among equals. The
/// deepest oracle level of the two is kept, and the alarms of both, and the errors of
/// the first that has any.
[[nodiscard]] Verdict worse_of(TwoVerdicts two);

/// A violation that no bound measures: utilisation infinite.
[[nodiscard]] Verdict violated(Violation violation, std::string reason);

}  // namespace attest
