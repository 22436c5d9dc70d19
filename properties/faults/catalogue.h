// The files that the catalogue of planted faults is made of.
#pragma once

#include <vector>

#include "properties/faults/faults.h"

namespace attest {

[[nodiscard]] std::vector<PlantedFault> faults_of_masks();
[[nodiscard]] std::vector<PlantedFault> faults_of_numbers();

}  // namespace attest
