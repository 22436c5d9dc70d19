#include "output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "attest/errors.h"
#include "attest/files.h"

namespace attest {

void write_output(const std::filesystem::path& file, std::string_view text) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::symlink_status(file, ignored).type();
  if (type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::regular) {
    write_file_atomically(file, text);
    return;
  }
  std::FILE* stream = std::fopen(file.c_str(), "w");
  bool written = stream != nullptr && std::fwrite(text.data(), 1, text.size(), stream) == text.size();
  if (stream != nullptr) written = std::fclose(stream) == 0 && written;
  if (!written) throw UsageError(fmt::format("{}: cannot be written: {}", file.string(), std::strerror(errno)));
}

}  // namespace attest
