// Files read whole, and written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace attest {

/// The bytes of a file. Throws UsageError naming the file and the reason (missing, a folder, not readable, too large
/// for memory).
[[nodiscard]] std::string read_file(const std::filesystem::path& file);

/// Replaces `file` by `bytes` atomically: a temporary file beside it, fsync, rename, fsync of the folder. A reader sees
/// the old file or the new one, a crash leaves one of the two, and a failure leaves the old one and no temporary.
/// Where something else than a regular file stands (a device, a pipe, a link such as /dev/stdout), which a rename would
/// replace, the bytes are written into it, as they come.
/// Throws UsageError naming the file and the reason (full, read-only, no such folder).
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes);

}  // namespace attest
