// The commands of the program. Each returns the exit status and throws UsageError or KernelLoadError.
#pragma once

#include "reports/command_line/options.h"

namespace attest {

int check_command(const Options& options, int argc, const char* const* argv);
int init_command(const Options& options);
int list_command(const Options& options);
int replay_command(const Options& options);
int merge_command(const Options& options);
int compare_command(const Options& options);
int report_command(const Options& options);
int bench_command(const Options& options);
int fuzz_command(const Options& options, int argc, const char* const* argv);
int audit_command(const Options& options);
int probe_command(const Options& options);
int prove_command(const Options& options);
int tolerance_command(const Options& options);

}  // namespace attest
