// Files that the user named with -o.
#pragma once

#include <filesystem>
#include <string_view>

namespace attest {

/// Writes `text` to `file`: atomically to a regular or new file; into whatever else stands there (a device, a pipe, a
/// link such as /dev/stdout), which a rename would replace. Throws UsageError naming the file and the reason.
void write_output(const std::filesystem::path& file, std::string_view text);

}  // namespace attest
