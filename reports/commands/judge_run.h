// A judgement from its beginning to its end: a kernel or captured calls, asked as a contract says.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "reports/judge/judgement.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

struct JudgeRequest {
  std::string kernel;                   ///< as --kernel names it; empty: `captured`
  std::filesystem::path captured{};     ///< folder of captured calls; empty: `kernel`
  std::optional<std::uint64_t> seed{};  ///< nothing: one that nobody knows
  int jobs = 1;
  std::optional<std::chrono::milliseconds> time{};
  std::optional<std::int64_t> timed{};  ///< calls of each cell that are timed
  bool fail_fast = false, no_walls = false, quiet = false;
};

struct Judged {
  Judgement judgement;
  std::string strip;   ///< the judged share, as share_text says
  std::string causes;  ///< of a fail, as wide as the terminal
  std::string json{};  ///< as judgement.json has it
};

/// Leaves a run in the folder, judgement.json with it. Throws UsageError where the kernel is none or several, where no
/// walls can be built, and for captured files that are none; KernelLoadError where the kernel cannot be started.
[[nodiscard]] Judged judge_run(const JudgeRequest& request, const std::shared_ptr<const Contract>& contract,
                               const RunFolder& folder, std::span<const char* const> line);

}  // namespace attest
