// What a kernel's process starts, wherever it went: into another process group, another session, another parent.
//
// Each child of ours has a mark in its environment, which all that it starts inherits. Neither a subreaper nor the
// process group would do: who becomes our child by adoption does not tell whose it was, and whoever likes leaves a
// group. What clears its environment, or leaves the group and forbids others to look at it, is not found.
#pragma once

#include <string>
#include <string_view>

namespace attest::process {

/// The variable of a child's environment that holds its mark, behind those of programs around us.
inline constexpr std::string_view mark_variable = "ATTEST_PROCESS=";

/// What the marks of all our children begin with; another one in every program that runs. No more than 24 bytes.
[[nodiscard]] const std::string& mark_of_ours();
/// A mark of a child's own.
[[nodiscard]] std::string new_mark();

/// Kills every process whose environment has the mark, again and again until there is none; no longer than two seconds.
/// Async-signal-safe.
void kill_marked(std::string_view mark) noexcept;

}  // namespace attest::process
