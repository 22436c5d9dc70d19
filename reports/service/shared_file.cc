#include "reports/service/shared_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/support/errors.h"

namespace attest {

SharedFile::~SharedFile() {
  if (mapped_ != nullptr) ::munmap(mapped_, size_);
}

std::byte* SharedFile::map(std::uint64_t at_least) {
  if (size_ >= at_least && mapped_ != nullptr) return mapped_;
  struct stat now{};
  if (::fstat(descriptor_, &now) != 0 || static_cast<std::uint64_t>(now.st_size) < at_least)
    throw UsageError(fmt::format("the shared memory has {} bytes; {} were announced", now.st_size, at_least));
  if (mapped_ != nullptr) ::munmap(mapped_, size_);
  size_ = static_cast<std::size_t>(now.st_size);
  void* const place = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  mapped_ = place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
  if (mapped_ == nullptr) throw UsageError(fmt::format("the shared memory cannot be mapped: {}", std::strerror(errno)));
  return mapped_;
}

std::string_view SharedFile::read(std::uint64_t bytes) {
  if (bytes == 0) return {};
  return {reinterpret_cast<const char*>(map(bytes)), bytes};
}

void SharedFile::write(std::string_view bytes) {
  if (bytes.empty()) return;
  // With its pages, so that a machine without memory says so here and not by a signal.
  if (bytes.size() > size_)
    if (const int error = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes.size())); error != 0)
      throw UsageError(fmt::format("an answer of {} bytes does not fit into memory: {}; ask for fewer rows",
                                   bytes.size(), std::strerror(error)));
  std::memcpy(map(bytes.size()), bytes.data(), bytes.size());
}

}  // namespace attest
