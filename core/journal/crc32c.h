// The ways to compute a CRC-32C, of which crc32c() takes the fastest that the processor has.
#pragma once

#include <cstdint>
#include <string_view>

namespace attest::detail {

[[nodiscard]] std::uint32_t crc32c_by_table(std::string_view bytes);
#if defined(__x86_64__)
/// Only where __builtin_cpu_supports("sse4.2").
[[nodiscard]] std::uint32_t crc32c_by_instruction(std::string_view bytes);
#endif

}  // namespace attest::detail
