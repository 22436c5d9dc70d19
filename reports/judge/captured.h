// Calls that a program made of its kernel, captured as it made them with what came back: the calls that count. Nothing
// is run, so that a kernel cannot be one thing for the judge and another for the clock.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/problem/case_file.h"
#include "reports/judge/contract.h"
#include "reports/run/engine.h"

namespace attest {

/// A kernel of which only answers are known.
struct CapturedAnswers {
  std::vector<CapturedCase> cases;
  std::unique_ptr<Kernel> kernel;  ///< answers to these cases what was captured, and to no other
};

/// The case files of a folder with their answers, tensors of the name "found", by name. Throws UsageError for a folder
/// without any, and for a file that is none or has no answer.
[[nodiscard]] CapturedAnswers captured_answers(const std::filesystem::path& folder, const Contract& contract);

}  // namespace attest
