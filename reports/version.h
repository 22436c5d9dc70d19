// What program this is.
#pragma once

#include <map>
#include <string>

namespace attest {

/// "0.1.0"
[[nodiscard]] std::string version();
/// "2026-01-31": when that version was declared; a date that no build changes.
[[nodiscard]] std::string version_date();
/// Versions, compiler, host, processor, cores: the facts of a journal's "begin".
[[nodiscard]] std::map<std::string, std::string> environment_facts();
/// Now, UTC, "2026-01-31T12:34:56Z".
[[nodiscard]] std::string now_text();

}  // namespace attest
