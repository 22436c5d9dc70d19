// The audit of the judge: every cheat before it, honest kernels beside them, and what the rules of other projects make
// of a few ordinary calls.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "properties/faults/cheats.h"
#include "reports/judge/judgement.h"
#include "reports/results/other_rules.h"

namespace attest {

/// The contract by which a cheat is judged: grouped-f32, and of one in Python, which takes less, a part of it.
[[nodiscard]] std::shared_ptr<const Contract> contract_for(const Cheat& cheat);

/// "cheat:NAME" or "honest:NAME"
[[nodiscard]] std::string id_of(const Cheat& cheat);

struct AuditedCheat {
  const Cheat* cheat = nullptr;
  Pass verdict = Pass::undecided;
  std::int64_t cases = 0;  ///< judged until then
  double seconds = 0.0;
  std::string what{};   ///< the first cause
  RuleSet rejecting{};  ///< rules that reject one of the ordinary calls at least
  [[nodiscard]] bool is_as_it_should_be() const { return verdict == (cheat->honest() ? Pass::pass : Pass::fail); }
};

/// Each is judged in a run's folder below `folder`, which goes again. `stop` ends it between two; `finished` hears of
/// each.
[[nodiscard]] std::vector<AuditedCheat> audit_cheats(const std::vector<const Cheat*>& cheats, int jobs,
                                                     const std::filesystem::path& folder,
                                                     const std::function<bool()>& stop,
                                                     const std::function<void(const AuditedCheat&)>& finished);

/// A few lines: how many fail, how many honest ones pass, how many each rule lets pass.
[[nodiscard]] std::string cheat_audit_text(const std::vector<AuditedCheat>& audited);
/// A row for each.
[[nodiscard]] std::string cheat_audit_markdown(const std::vector<AuditedCheat>& audited);
/// The same as JSON, schema "attest-cheats/1".
[[nodiscard]] std::string cheat_audit_json(const std::vector<AuditedCheat>& audited);

}  // namespace attest
