#include "reports/judge/captured.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/kernel/answered_kernel.h"
#include "core/kernel/manifest.h"
#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/run_folder/run_folder.h"

namespace attest {
namespace {

std::vector<std::filesystem::path> case_files_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  if (error) throw UsageError(fmt::format("--captured {}: {}", in_quotes(folder.string()), error.message()));
  if (files.empty()) {
    throw UsageError(fmt::format("--captured {}: no .safetensors file is there; attest.observe in Python writes them",
                                 in_quotes(folder.string())));
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

CapturedAnswers captured_answers(const std::filesystem::path& folder, const Contract& contract) {
  auto calls = std::make_shared<std::vector<AnsweredCase>>();
  CapturedAnswers captured;
  for (const std::filesystem::path& file : case_files_in(folder)) {
    AnsweredCase call = load_named_case(file);
    if (!call.found.present()) {
      throw UsageError(
          fmt::format("{}: has no tensor \"found\", the answer that was captured; attest check --case "
                      "judges a kernel on inputs alone",
                      file.string()));
    }
    // Two calls with equal inputs may have been answered in two ways.
    call.value.provenance.k = std::to_string(calls->size());
    captured.cases.push_back({.file = file.string(), .value = call.value, .property = {}});
    calls->push_back(std::move(call));
  }
  Manifest law = contract.law;
  law.name = fmt::format("captured in {}", folder.string());
  captured.kernel =
      std::make_unique<AnsweredKernel>(fmt::format("captured:{}", folder.string()), std::move(law), std::move(calls));
  return captured;
}

}  // namespace attest
