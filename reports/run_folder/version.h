// What program this is.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "core/journal/journal.h"

namespace attest {

/// "0.1.0"
[[nodiscard]] std::string version();
/// "2026-01-31": when that version was declared; a date that no build changes.
[[nodiscard]] std::string version_date();
/// What the linker made of all that this program consists of, in hexadecimal digits; the version where it made nothing.
/// Two programs with the same are the same.
[[nodiscard]] std::string build_id();
/// A journal's "begin", now: the time, versions, build, compiler, host, processor, cores, and the arguments behind the
/// program's name, if there are any.
[[nodiscard]] MetaRecord begin_record(std::span<const char* const> arguments = {});
/// A journal's "end", now: the time, how many seconds went by since `start`, and whether the run was interrupted.
[[nodiscard]] MetaRecord end_record(std::chrono::steady_clock::time_point start, bool interrupted);

}  // namespace attest
