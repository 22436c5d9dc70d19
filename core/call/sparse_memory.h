// Memory of which next to nothing is used.
#pragma once

#include <cstddef>

namespace attest {

/// Zeros, of which those that are touched take memory. Shared, so that a limit of a process's own memory does not count
/// what is not there. Neither copied nor moved.
class SparseMemory {
 public:
  /// Throws std::bad_alloc where there are no such addresses.
  explicit SparseMemory(std::size_t bytes);
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  ~SparseMemory();
  [[nodiscard]] std::byte* begin() const { return begin_; }

 private:
  std::size_t bytes_;
  std::byte* begin_;
};

}  // namespace attest
