// What passes between us and the process that holds a shared library: small packets on a socket, tensors in an
// anonymous file that both map.
#pragma once

#include <array>
#include <cstdint>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"

namespace attest::process {

inline constexpr std::uint32_t shared_magic = 0x54544141;  // "AATT"
inline constexpr std::uint16_t shared_version = 4;
inline constexpr int control_descriptor = 3, memory_descriptor = 4;
/// Longest text of a reply: a message or a manifest.
inline constexpr std::size_t max_text = 96 * 1024;

/// Exit status of a worker that finds its connection closed from its own side, and of one whose kernel went on writing
/// after its last call: numbers that no shell and no sanitizer uses.
inline constexpr int status_connection_closed = 117, status_late_change = 118;

enum class SharedKind : std::uint16_t { manifest = 1, call = 2, death = 3 };

/// Where a tensor lies in the shared file, row-major; absent tensors have dtype -1.
struct SharedTensor {
  std::int32_t dtype = -1;
  std::int32_t rank = 0;
  std::array<std::int64_t, 4> shape{};
  std::uint64_t offset = 0;
};

/// Both kinds of packet begin with this. A receiver takes min(size, its own) bytes of the header and reads what is
/// missing as 0: later versions append.
struct SharedPrefix {
  std::uint32_t magic = shared_magic;
  std::uint16_t version = shared_version;
  SharedKind kind = SharedKind::manifest;
  std::uint32_t size = 0;      ///< bytes of the header this prefix begins
  std::uint32_t sequence = 0;  ///< of the request, and of the reply to it; a death's says nothing
};

struct SharedRequest {
  SharedPrefix prefix{.size = sizeof(SharedRequest)};
  std::uint64_t memory_bytes = 0;  ///< length of the shared file now
  std::int32_t operation = 0;      ///< Operation
  std::int32_t backward = 0;       ///< 1: a backward pass, whose gradients' dtype is that of `out`
  ArgumentValues scalars{};
  std::array<SharedTensor, slot_count> inputs{};
  SharedTensor out{}, lse{};                             ///< room for the answer; lse absent: not wanted
  SharedTensor answer_out{}, answer_lse{};               ///< of a backward pass: what the forward pass returned
  std::array<SharedTensor, gradient_count> gradients{};  ///< and room for its own; absent: not wanted
  Layouts layouts{};                                     ///< for the memory that the kernel is given
  std::int64_t edge = 0;                                 ///< Edge, of the same memory
};

/// `text_bytes` of message or manifest follow it in the packet, then `finding_bytes`.
struct SharedReply {
  SharedPrefix prefix{.size = sizeof(SharedReply)};
  std::int32_t status = 0;  ///< CallStatus; for a manifest ok, or failed with the reason as text
  std::uint32_t text_bytes = 0;
  std::uint32_t finding_bytes = 0;  ///< of a manifest: Library::finding
  std::uint32_t reserved = 0;
};

}  // namespace attest::process
