// SHA-256 (FIPS 180-4), so that what is written here is what `sha256sum FILE` prints.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace attest {

/// A digest of bytes given in any number of parts. A value type.
class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  /// Of everything added, as 64 lower-case hexadecimal digits. Nothing may be added after it.
  [[nodiscard]] std::string hex();

 private:
  void take_block(const std::byte* block);

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> open_{};  ///< the block that is not full yet
  std::uint64_t bytes_ = 0;
};

}  // namespace attest
