// Explanations beside violated bounds, in the journal and in what is made of it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/kernel_under_test.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

/// What the saved cases of a kernel in a dtype say together.
struct KernelExplanation {
  std::string kernel, dtype;
  std::string text;     ///< one line, "consistent with …" or that nothing is
  std::string changes;  ///< JSON: an array of {"words", "arithmetic", "utilisation"}, empty where nothing explains them
  bool tells = true;  ///< of a change, or of a stage that goes wrong first: more than what kind of violations there are
};

/// One for every kernel and dtype that has a violated bound or a non-finite output among the findings: its saved cases
/// are run again under other arithmetics (explain.h), and fed with exact stages to see which goes wrong first
/// (stages.h). A finding whose file is not there is passed over. Throws Abandoned on an interrupt.
[[nodiscard]] std::vector<KernelExplanation> explanations_of(const Journal& journal, const RunFolder& folder,
                                                             std::span<const std::unique_ptr<Kernel>> kernels);

/// What is wrong with a finding of that kind: "NaN or Inf where a finite number is required".
[[nodiscard]] std::string_view words_of(Violation violation);

/// As the journal has it.
inline constexpr std::string_view explanation_event = "explanation";
[[nodiscard]] MetaRecord record_of(const KernelExplanation& explanation);
/// Those of the journal about a kernel in a dtype: each text once.
[[nodiscard]] std::vector<KernelExplanation> explanations_in(const Journal& journal, const std::string& kernel,
                                                             const std::string& dtype);

}  // namespace attest
