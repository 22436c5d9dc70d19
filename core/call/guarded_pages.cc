#include "core/call/guarded_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>

namespace attest {
namespace {

std::size_t rounded_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

void GuardedPages::release() {
  if (mapping_ != nullptr) ::munmap(std::exchange(mapping_, nullptr), std::exchange(mapped_, 0));
  capacity_ = accessible_ = 0;
  end_ = nullptr;
}

void GuardedPages::resize(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  bytes = rounded_up(std::max<std::size_t>(bytes, 1), page);
  if (bytes == accessible_) return;
  if (bytes > capacity_) {
    // Room for as much again: mapping anew costs more than address space.
    const std::size_t capacity = rounded_up(2 * bytes, alignment);
    release();
    mapped_ = capacity + 2 * region_ + alignment;
    void* const at = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) {
      mapped_ = 0;
      throw std::bad_alloc();
    }
    mapping_ = static_cast<std::byte*>(at);
    capacity_ = capacity;
    const auto address = reinterpret_cast<std::uintptr_t>(mapping_);
    end_ = mapping_ + (rounded_up(address + region_, alignment) - address) + capacity;
  }
  const bool grows = bytes > accessible_;
  std::byte* const from = end_ - std::max(bytes, accessible_);
  const std::size_t changed = grows ? bytes - accessible_ : accessible_ - bytes;
  if (::mprotect(from, changed, grows ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) throw std::bad_alloc();
  accessible_ = bytes;
}

}  // namespace attest
