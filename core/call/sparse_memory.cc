#include "core/call/sparse_memory.h"

#include <sys/mman.h>

#include <new>

namespace attest {

SparseMemory::SparseMemory(std::size_t bytes) : bytes_(bytes) {
  void* const mapped =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  begin_ = static_cast<std::byte*>(mapped);
}

SparseMemory::~SparseMemory() {
  ::munmap(begin_, bytes_);
}

}  // namespace attest
