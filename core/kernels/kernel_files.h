// The files that a kernel from outside is made of, by their SHA-256: whether a run that goes on is still of the same
// kernel.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attest {

/// Whether an id, as --kernel takes it, is of a program (exec:COMMAND) or of a shared library by its path, and no name
/// that Attest gives.
[[nodiscard]] bool is_from_outside(std::string_view id);

/// Hashes by name; as in KernelRecord::files.
using FileHashes = std::map<std::string, std::set<std::string>>;

/// Of a kernel as its id names it:
///   a shared library    the file
///   exec:COMMAND        every word that names a regular file, and the program on the PATH that a command begins with
///   pytorch:…, ort:…    the adapter scripts
/// Nothing for a kernel of Attest's own. What these load in turn (a library's libraries, a script's modules) is not
/// looked at. A file that cannot be read has the hash "unreadable"; of one above 1 GiB the first GiB and the size are
/// hashed.
[[nodiscard]] FileHashes kernel_files(std::string_view id);

/// The words of a shell's line that may name files, quotes taken off: those behind a redirection are left out, and so
/// are assignments in front of a program.
struct CommandWord {
  std::string text;
  bool program = false;  ///< begins a command, so that it is looked for on the PATH
  [[nodiscard]] bool operator==(const CommandWord&) const = default;
};
[[nodiscard]] std::vector<CommandWord> command_words(std::string_view line);

/// "exec:python3 mine.py" for "mine.py": what to write for a script, or for a command without its "exec:", that was
/// named as if it were a kernel. A script is known by its extension, there or not, or by its first line where it can be
/// executed; a command by a first word that can be run. Empty for anything else.
[[nodiscard]] std::string command_meant(std::string_view spec);

}  // namespace attest
