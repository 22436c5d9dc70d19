// Folders of runs as somebody else could send them.
#pragma once

#include <string>

#include "reports/test/attack/attack.h"

namespace attest::attack {

/// Changes the run's folder `run` in one to three places: a file or folder of it becomes a link (to a file, a folder, a
/// device, nothing), a pipe, a socket, a device or a folder; or such a thing is added under a name that a command
/// writes. Says what it did, a line each.
std::string make_foreign(const std::filesystem::path& run, const std::filesystem::path& outside, Dice& dice);

/// The text of a journal in which names are paths that lead elsewhere, each line whole and with its checksum.
[[nodiscard]] std::string with_traversal(const std::string& journal, const std::filesystem::path& outside, Dice& dice);

}  // namespace attest::attack
