// FNV-1a, a hash that is the same on every machine and in every run.
#pragma once

#include <cstdint>

namespace attest {

inline constexpr std::uint64_t fnv1a_start = 0xcbf29ce484222325;

/// The hash with one byte more.
[[nodiscard]] constexpr std::uint64_t fnv1a(std::uint64_t hash, std::uint64_t byte) {
  return (hash ^ byte) * 0x100000001b3;
}

}  // namespace attest
