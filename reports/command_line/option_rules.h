// What the options of a command line must be together, once each is read by itself.
#pragma once

#include "reports/command_line/options.h"

namespace attest {

/// Throws UsageError for options that exclude each other, and for one without the other that it is about.
void refuse_contradictions(const Options& options);
/// Throws UsageError where the command needs an option or an argument that is not given.
void refuse_missing(const Options& options);

}  // namespace attest
