#include "core/isolation/shared_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

namespace attest::process {
namespace {

/// Writes at the end of what is there; false where there is no memory for it.
bool append(const Descriptor& file, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t put = ::write(file.get(), at, bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return true;
}

/// A new file that `fill` fills, sealed then; none where something fails that is no lack of descriptors.
template <class Fill>
Descriptor made(const char* name, int seals, const Fill& fill) {
  try {
    Descriptor file = make_memory_file(name);
    if (!fill(file)) return {};
    seal(file, seals);
    return file;
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace

Descriptor sealed_file(const CasePieces& pieces) {
  return made("attest-request", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, [&](const Descriptor& file) {
    return append(file, pieces.head.data(), pieces.head.size()) &&
           std::ranges::all_of(pieces.tensors, [&](std::span<const std::byte> tensor) {
             return append(file, tensor.data(), tensor.size());
           });
  });
}

Descriptor file_for_answer(std::uint64_t bytes) {
  static const std::vector<std::byte> nan(std::size_t{1} << 20U, std::byte{0xff});
  return made("attest-reply", F_SEAL_SHRINK | F_SEAL_GROW, [&](const Descriptor& file) {
    for (std::uint64_t left = bytes; left > 0;) {
      const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(left, nan.size()));
      if (!append(file, nan.data(), part)) return false;
      left -= part;
    }
    return true;
  });
}

std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
}

bool copy_from(const Descriptor& file, std::uint64_t offset, std::span<std::byte> into) {
  while (!into.empty()) {
    const ssize_t got = ::pread(file.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    into = into.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

}  // namespace attest::process
