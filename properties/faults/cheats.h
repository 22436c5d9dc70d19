// Kernels that mean to pass a check and not to compute attention, each with what must catch it, and honest ones beside
// them that look like it. They are libraries and programs like any kernel from outside, in cheats/.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernels/kernel_families.h"
#include "core/support/words.h"

namespace attest {

/// What has to end a run on a cheat with a violation.
enum class CaughtBy {
  nothing,     ///< it is honest
  oracle,      ///< a wrong answer to a case that is judged
  refusal,     ///< a problem of the contract that it does not answer
  arithmetic,  ///< the contract's arithmetic, where its own manifest declares a worse one
  repeat,      ///< an earlier call again, with the same data or other
  share,       ///< as many calls, or as much of an output, that a wrong one in very many is met
  time,        ///< what happens before or after the answer is due
  walls        ///< what it does beside its answer, to its process, to another or to files
};
template <>
struct Words<CaughtBy> {
  static constexpr std::array<std::string_view, 8> names{"nothing", "oracle", "refusal", "arithmetic",
                                                         "repeat",  "share",  "time",    "walls"};
};

struct Cheat {
  std::string_view file;  ///< in cheats/: its name, and .c for a library, .py for a program
  std::string_view does;  ///< one line
  CaughtBy caught_by;
  [[nodiscard]] constexpr std::string_view name() const { return file.substr(0, file.rfind('.')); }
  [[nodiscard]] constexpr bool honest() const { return caught_by == CaughtBy::nothing; }
};
/// All of them; the honest ones have names that begin with "honest-".
[[nodiscard]] std::span<const Cheat> cheats();

/// "cheat:NAME" for each of cheats(), and "honest:NAME" for an honest one, its name without "honest-". Those alone that
/// are built: an installed program has none. No run takes them unless it is told to.
[[nodiscard]] std::vector<OutsideName> cheat_kernels();

/// The folder where they are built (the target cheats) with the running program, each library as NAME.so beside the
/// scripts; empty where there is none.
[[nodiscard]] std::string cheat_folder();

}  // namespace attest
