// What reading and writing of whole files share, wherever their names are looked up.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace attest {

/// openat(2), close-on-exec, again where a signal interrupts it.
[[nodiscard]] int open_again(int folder, const char* name, int flags, mode_t mode = 0);

/// The words of errno.
[[nodiscard]] std::string reason_of(int error);

/// Throws UsageError: `cannot read "FILE": No such file or directory`.
[[noreturn]] void cannot(std::string_view verb, const std::filesystem::path& file, int error);

/// Reads an open file to its end. `shown` is its name in what is thrown: UsageError.
[[nodiscard]] std::string read_whole(int number, const std::filesystem::path& shown);

/// Writes all of it. 0 or errno.
[[nodiscard]] int write_all(int number, std::string_view bytes);

/// Puts `bytes` in the place of whatever stands at `name` in `folder`: a temporary file "NAME.PID-SERIAL.tmp" beside
/// it, locked while it is written, fsync, rename, fsync of the folder. `shown` is its name in what is thrown:
/// UsageError.
void replace_file(int folder, const std::string& name, std::string_view bytes, const std::filesystem::path& shown);

}  // namespace attest
