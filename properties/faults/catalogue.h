// The files that the catalogue of planted faults is made of.
#pragma once

#include <vector>

#include "properties/faults/faults.h"

namespace attest {

[[nodiscard]] std::vector<PlantedFault> faults_of_masks();
[[nodiscard]] std::vector<PlantedFault> faults_of_numbers();
/// Those of kernels of tiles (planted_tiles.h).
[[nodiscard]] std::vector<PlantedFault> faults_of_tiles();
[[nodiscard]] std::vector<PlantedFault> faults_of_tiled_shapes();
/// Of kernels of rows and of kernels of tiles.
[[nodiscard]] std::vector<PlantedFault> faults_of_windows();
[[nodiscard]] std::vector<PlantedFault> faults_of_chunks();
[[nodiscard]] std::vector<PlantedFault> faults_of_sequences();
[[nodiscard]] std::vector<PlantedFault> faults_of_sinks();
[[nodiscard]] std::vector<PlantedFault> faults_of_softcaps();
[[nodiscard]] std::vector<PlantedFault> faults_of_dropout();
[[nodiscard]] std::vector<PlantedFault> faults_of_alibi();
[[nodiscard]] std::vector<PlantedFault> faults_of_factors();
/// Of backward passes of tiles.
[[nodiscard]] std::vector<PlantedFault> faults_of_gradients();

/// The same, all of that kind.
[[nodiscard]] inline std::vector<PlantedFault> of_kind(FaultKind kind, std::vector<PlantedFault> faults) {
  for (PlantedFault& fault : faults) fault.kind = kind;
  return faults;
}

}  // namespace attest
