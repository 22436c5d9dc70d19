// What program this is.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "attest/journal.h"

namespace attest {

/// "0.1.0"
[[nodiscard]] std::string version();
/// "2026-01-31": when that version was declared; a date that no build changes.
[[nodiscard]] std::string version_date();
/// What the linker made of all that this program consists of, in hexadecimal digits; the version where it made nothing.
/// Two programs with the same are the same.
[[nodiscard]] std::string build_id();
/// Versions, build, compiler, host, processor, cores: the facts of a journal's "begin".
[[nodiscard]] std::map<std::string, std::string> environment_facts();
/// Now, UTC, "2026-01-31T12:34:56Z".
[[nodiscard]] std::string now_text();
/// A journal's "end", now: the time, how many seconds went by since `start`, and whether the run was interrupted.
[[nodiscard]] MetaRecord end_record(std::chrono::steady_clock::time_point start, bool interrupted);

}  // namespace attest
