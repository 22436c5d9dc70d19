// Memory that this process shares with the one that asks: a file without a name, as large as the largest of what went
// through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace attest {

class SharedFile {
 public:
  /// An open descriptor of it, which stays the caller's. Nobody makes the file smaller.
  explicit SharedFile(int descriptor) : descriptor_(descriptor) {}
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile();

  /// The first bytes of it, until the next call of write. Throws UsageError where it has fewer.
  [[nodiscard]] std::string_view read(std::uint64_t bytes);
  /// Writes to its beginning, and makes it larger where it must be. Throws UsageError where there is no memory.
  void write(std::string_view bytes);

 private:
  /// All of it, mapped.
  std::byte* map(std::uint64_t at_least);

  int descriptor_;
  std::byte* mapped_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace attest
