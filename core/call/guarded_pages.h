// Whole pages of memory whose ends fault.
#pragma once

#include <cstddef>

namespace attest {

/// Accessible pages between two regions, of 16 MiB unless another size is asked for, that no access passes: what runs
/// over either end raises SIGSEGV where it happens. Neither copied nor moved. Not thread-safe.
class GuardedPages {
 public:
  static constexpr std::size_t guard_bytes = std::size_t{16} << 20U;
  /// The end is a multiple of this.
  static constexpr std::size_t alignment = std::size_t{64} << 10U;

  explicit GuardedPages(std::size_t region_bytes = guard_bytes) : region_(region_bytes) {}
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages() { release(); }

  /// Makes the fewest pages that hold `bytes` accessible, and no more. What they hold is kept from the end on, where
  /// the capacity did not have to grow. Throws std::bad_alloc.
  void resize(std::size_t bytes);
  [[nodiscard]] std::byte* begin() const { return end_ - accessible_; }
  [[nodiscard]] std::byte* end() const { return end_; }
  /// Whether the address lies in the pages or in one of the regions beside them.
  [[nodiscard]] bool covers(const void* address) const noexcept {
    const auto* const at = static_cast<const std::byte*>(address);
    return mapping_ != nullptr && at >= mapping_ && at < mapping_ + mapped_;
  }

 private:
  void release();

  std::size_t region_;  ///< bytes before and behind
  std::byte* mapping_ = nullptr;
  std::size_t mapped_ = 0;    ///< bytes, both regions included
  std::size_t capacity_ = 0;  ///< bytes that may become accessible
  std::size_t accessible_ = 0;
  std::byte* end_ = nullptr;
};

}  // namespace attest
