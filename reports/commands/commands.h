// The commands of the program, each declared in its own file.
#pragma once

#include <vector>

#include "reports/command_line/command.h"

namespace attest {

[[nodiscard]] Command audit_command();
[[nodiscard]] Command bench_command();
[[nodiscard]] Command check_command();
[[nodiscard]] Command compare_command();
[[nodiscard]] Command findings_command();
[[nodiscard]] Command fuzz_command();
[[nodiscard]] Command init_command();
[[nodiscard]] Command judge_command();
[[nodiscard]] Command list_command();
[[nodiscard]] Command merge_command();
[[nodiscard]] Command probe_command();
[[nodiscard]] Command prove_command();
[[nodiscard]] Command replay_command();
[[nodiscard]] Command report_command();
[[nodiscard]] Command survey_command();
[[nodiscard]] Command tolerance_command();

/// All of them, in the order in which people are told of them.
[[nodiscard]] inline std::vector<Command> all_commands() {
  return {init_command(),    check_command(),  judge_command(),  findings_command(),
          list_command(),    replay_command(), merge_command(),  report_command(),
          compare_command(), audit_command(),  probe_command(),  tolerance_command(),
          prove_command(),   fuzz_command(),   survey_command(), bench_command()};
}

}  // namespace attest
