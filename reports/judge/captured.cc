#include "reports/judge/captured.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/kernel/manifest.h"
#include "core/support/errors.h"
#include "core/support/names.h"
#include "reports/run_folder/run_folder.h"

namespace attest {
namespace {

/// Shared by clones, as tensors are large.
using Calls = std::shared_ptr<const std::vector<AnsweredCase>>;

class CapturedKernel final : public Kernel {
 public:
  CapturedKernel(std::string id, Manifest law, Calls calls)
      : id_(std::move(id)), law_(std::move(law)), calls_(std::move(calls)) {}

  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return law_; }
  using Kernel::run;
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, [[maybe_unused]] bool want_lse) override {
    // By the call, too: one that is made twice may be answered in two ways.
    const auto asked = [&](const AnsweredCase& call) {
      return call.value.provenance.k == c.provenance.k &&
             static_cast<const Problem&>(call.value) == static_cast<const Problem&>(c);
    };
    const auto call = std::ranges::find_if(*calls_, asked);
    if (call == calls_->end()) return {CallStatus::unsupported, "no such call was captured", {}, {}};
    if (output && call->found.dtype() != *output) {
      return {CallStatus::malformed,
              fmt::format("the answer is in {}, not {}", name_of(call->found.dtype()), name_of(*output)),
              {},
              {}};
    }
    return {CallStatus::ok, {}, call->found, {}};
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<CapturedKernel>(id_, law_, calls_);
  }

 private:
  std::string id_;
  Manifest law_;
  Calls calls_;
};

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
    call.value.provenance.k = std::to_string(calls->size());
    captured.cases.push_back({.file = file.string(), .value = call.value, .property = {}});
    calls->push_back(std::move(call));
  }
  Manifest law = contract.law;
  law.name = fmt::format("captured in {}", folder.string());
  // Only the output was captured, and there is nobody to be asked for bits twice.
  law.lse = false;
  law.out_dtypes.clear();
  law.claims.clear();
  captured.kernel = std::make_unique<CapturedKernel>(fmt::format("captured:{}", folder.string()), std::move(law),
                                                     Calls(std::move(calls)));
  return captured;
}

}  // namespace attest
