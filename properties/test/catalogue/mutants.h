// Changed statements: copies of the family files with one term changed, each of which some test must refuse
// (mutants_long_test.cc). All of them are built at once, and one is chosen at run time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// An entry of statement_mutants.txt:
///
///     file masked.cc
///
///     masked.suppression: the key stays as it is
///       in  Verdict suppression(
///       was hide_and_spare(c, «finite ? i : -1», s,
///       now i
///
/// "was" is found once in the function that begins with "in", blanks being alike; what stands between « and », or all
/// of it, is replaced: an expression by "now" as one, or where it ends with a semicolon a statement by statements.
struct Mutant {
  std::string file = {}, row = {}, change = {};
  std::string in = {}, was = {}, now = {};
  [[nodiscard]] std::string name() const { return row + ": " + change; }
};

/// Throws std::runtime_error naming the line that is none.
[[nodiscard]] std::vector<Mutant> read_mutants(const std::filesystem::path& table);

}  // namespace attest
