// attest prove --without: theorems without one of their hypotheses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// What a command line asks for.
struct Weakening {
  std::string hypothesis;           ///< the one to take away; empty: none
  std::filesystem::path witnesses;  ///< folder for the cases against theorems without it; empty: none are kept
};

/// A row for each chosen property (chosen_properties) that states the hypothesis: refuted with its witness, or why none
/// is needed. Exit status 1 where the catalogue is wrong about one. Throws UsageError for a hypothesis that is unknown
/// or that none of them states, and for a folder of witnesses that cannot be written.
int prove_without(const Weakening& asked, const std::vector<std::string>& properties, bool json);

}  // namespace attest
