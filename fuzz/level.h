// What an engine is shown of how bad an input was, beside the coverage that it sees by itself.
#pragma once

#include <cstddef>

namespace attest {

/// Sets the counter of a level of quality: 64 of them in quarters of an octave up to 1, for each of 16 targets (more
/// share); finer ones fill the corpus with inputs that differ in nothing else. libFuzzer takes a counter that it never
/// saw set for a feature never seen, whatever its value but for a few classes; so the level is the index. Nothing at or
/// below 0. Without libFuzzer nobody looks.
void show_level(std::size_t target, double quality);

}  // namespace attest
