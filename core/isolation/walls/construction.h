// How a process is started behind walls: the command line that builds them and then becomes what is to run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/isolation/walls/walls.h"

namespace attest::process {

/// A file or folder of this machine, and the path at which it is seen behind walls of namespaces. The bare kind has no
/// paths but the true ones.
struct SeenAs {
  std::filesystem::path file;  ///< absolute
  std::string inside;
};

/// Whether a path is a folder or lies below it; both are canonical.
[[nodiscard]] bool is_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Where the adapters are seen, and are importable from.
inline constexpr std::string_view adapters_inside = "/adapters";

/// What is to run behind walls.
struct Enclosed {
  std::vector<std::string> argv;  ///< paths as this process sees them; argv[0] is searched on the PATH
  std::vector<SeenAs> seen;       ///< beside the system's libraries and Walls::readable
  std::uint64_t memory = 0;       ///< bytes it may hold; 0: no limit
  int descriptors = 3;            ///< those below this number stay open
};

struct Construction {
  std::vector<std::string> argv;  ///< argv[0] is an absolute path
  std::vector<std::string> environment;
};

enum class Kind { namespaces, bare };

/// Throws UsageError where a path of `walls` cannot be kept to: one that is not there, or lies in /proc, /sys or /dev.
[[nodiscard]] Construction construct(const Walls& walls, const Enclosed& enclosed, Kind kind);
/// The same of the kind that this machine has. Throws UsageError with why_no_walls's line where it has none.
[[nodiscard]] Construction construct(const Walls& walls, const Enclosed& enclosed);

/// The program that serves a shared library behind walls (programs/kernel_host.cc); empty where it is missing.
[[nodiscard]] std::filesystem::path kernel_host();
/// The program that builds what stands inside of namespaces (programs/kernel_start.cc); empty where it is missing.
[[nodiscard]] std::filesystem::path kernel_start();
/// Where bubblewrap is, never searched on the PATH.
inline constexpr std::string_view bubblewrap = "/usr/bin/bwrap";

}  // namespace attest::process
