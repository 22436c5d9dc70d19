// attest prove --without: theorems without one of their hypotheses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attest {

/// A row for each property (chosen_properties of `globs`) that states the hypothesis: refuted with its witness, which
/// goes into the folder `witnesses` where that is not empty, or why none is needed. Exit status 1 where the catalogue
/// is wrong about one. Throws UsageError for a hypothesis that is unknown or that none of them states, and for a folder
/// that cannot be written.
int prove_without(const std::string& hypothesis, const std::filesystem::path& witnesses,
                  const std::vector<std::string>& globs, bool json);

}  // namespace attest
