// A growing mapping of an anonymous file.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

namespace attest::process {

/// Maps the first bytes of a file for reading and writing; grow() maps more. Neither copied nor moved.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { release(); }
  /// Makes at least `bytes` of `fd` visible; the file is that long. Earlier pointers become invalid. Throws
  /// std::system_error.
  void map(int fd, std::size_t bytes) {
    if (bytes <= bytes_) return;
    release();
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    data_ = static_cast<std::byte*>(at);
    bytes_ = bytes;
  }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void release() {
    if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), std::exchange(bytes_, 0));
  }
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace attest::process
