// Judgement: what a contract makes of a run. reports/schemas/judgement.schema.json describes its JSON.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/support/words.h"
#include "reports/conclusion/conclusion.h"
#include "reports/judge/judged_share.h"
#include "reports/judge/timed_calls.h"
#include "reports/results/cause_words.h"

namespace attest {

enum class Pass : std::uint8_t { pass, fail, undecided };
template <>
struct Words<Pass> {
  static constexpr std::array<std::string_view, 3> names{"pass", "fail", "undecided"};
};

/// How a kernel was judged.
struct JudgedHow {
  std::string run;         ///< folder
  std::int64_t calls = 0;  ///< in all of the kernel's processes
  int processes = 1;
  double seconds = 0.0;
  bool secret = true;                        ///< the seed was drawn and told nobody; false: it was given
  bool enclosed = true;                      ///< walls stood around the kernel, or it is one that needs none
  std::string walls{};                       ///< which
  std::map<ContractCell, CellTime> times{};  ///< of --time-with
  JudgedShare::Skipped outside{};            ///< captured calls that the contract is not about: they were not judged
};

struct Judgement {
  Pass verdict = Pass::undecided;
  std::vector<std::string> why;  ///< that it is no pass, a line each; empty for a pass
  std::string kernel, contract;
  std::int64_t cells = 0, judged_cells = 0;
  double share = 0.0, least_share = 0.0;
  std::vector<Extents> shapes;        ///< of the contract
  std::vector<std::string> unjudged;  ///< cells without an answer, as "bf16 1,8,2,512,512,64 bool, top-left"
  std::int64_t cases = 0;             ///< judged
  double worst = 0.0;                 ///< the largest error of a judged case, as a share of what is allowed
  std::uint64_t seed = 0;
  JudgedHow how;
  std::vector<CauseWords> causes;
};

/// What a run and its share come to. A violation fails; without one, what was not decided, not judged or
/// not enclosed is no pass.
[[nodiscard]] Judgement judge(const Contract& contract, const JudgedShare& share, const Summary& summary,
                              const Conclusion& conclusion, JudgedHow how);
/// 0 pass, 1 fail, 4 undecided.
[[nodiscard]] int exit_status_of(Pass verdict);

[[nodiscard]] std::string to_json(const Judgement& judgement);
/// "PASS  mine  (contract flash-bf16; 41,220 cases, 90,113 calls in 2 processes, 12 s)" and the lines of why, as wide
/// as the terminal.
[[nodiscard]] std::string text_of(const Judgement& judgement, std::size_t width);

}  // namespace attest
