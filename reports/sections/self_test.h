// The self-test of the search (fuzz/self_test.h) as a file in a run's folder, and as a section of its report.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fuzz/self_test.h"
#include "reports/page/block.h"

namespace attest {

/// self-test.json, schema "attest-self-test/1"; what `attest fuzz --self-test --out DIR` leaves.
[[nodiscard]] std::string self_test_json(const SelfTest& result, const SelfTestPlan& plan);

/// What the file says: the result, and of the plan the seeds and the runs.
struct SelfTestRead {
  SelfTest result;
  SelfTestPlan plan;
};
/// Throws UsageError "SOURCE: …" for text that is not what self_test_json writes.
[[nodiscard]] SelfTestRead parse_self_test(std::string_view text, std::string_view source);

/// The section of the report for a self-test.
[[nodiscard]] Blocks self_test_page(const SelfTestRead& read);
/// The section of the report for the self-test in a run's folder; empty where there is none, or no folder. Throws as
/// parse_self_test.
[[nodiscard]] Blocks self_test_page(const std::filesystem::path& folder);

}  // namespace attest
