// The values of options: how each is read from the word behind the option. What is none is refused by a UsageError, one
// line with the option, the value and the rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "reports/command_line/options.h"

namespace attest {

/// Of at least `least`. For int, std::int64_t and std::uint64_t.
template <class Integer>
[[nodiscard]] Integer whole_number(std::string_view option, const std::string& text, Integer least);
/// A tolerance, a number of at least 0: infinity is one.
[[nodiscard]] double tolerance_number(std::string_view option, const std::string& text);
/// "500ms", "90s", "10m", "2h"; seconds without a unit.
[[nodiscard]] std::chrono::milliseconds duration(std::string_view option, const std::string& text);
/// Bytes: "512MiB", "4GB"; 0 for "none".
[[nodiscard]] std::uint64_t memory_size(std::string_view option, const std::string& text);
/// Whether --engine is libfuzzer.
[[nodiscard]] bool is_libfuzzer(const std::string& text);
/// Of --language and --ci.
[[nodiscard]] Language language_named(const std::string& text);
[[nodiscard]] CiService ci_service_named(const std::string& text);
/// Five whole numbers.
[[nodiscard]] ProofShape proof_shape(std::string_view option, const std::string& text);
/// Anything but nothing.
[[nodiscard]] std::filesystem::path file_named(std::string_view option, const std::string& text);

/// --dtype: one or several with commas, each once.
void add_dtypes(Options& options, const std::string& text);
/// --shard
void set_shard(Options& options, const std::string& text);
/// --baseline
void set_baseline(Options& options, const std::string& text);
/// --inconclusive
void set_inconclusive(Options& options, const std::string& text);

}  // namespace attest
