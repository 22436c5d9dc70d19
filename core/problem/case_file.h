// What the file of a case says in its metadata about the case itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/case.h"

namespace attest {

/// Metadata keys that belong to the case, in the order they are read: "attest", "op" and the operation's scalars
/// (fields.h). Provenance never holds them.
[[nodiscard]] std::vector<std::string_view> case_keys(Operation operation);

/// The bytes of a case file in pieces: a head, and behind it each tensor's bytes, which are not copied.
struct CasePieces {
  std::string head;
  std::vector<std::span<const std::byte>> tensors;

  /// In bytes.
  [[nodiscard]] std::uint64_t size() const;
  [[nodiscard]] std::string joined() const;
};
/// Of a problem of which `said` is what there is to say beside it; the pieces point into it. `alignment`, of at least
/// 8: the head is padded to a multiple of it.
[[nodiscard]] CasePieces pieces_of(const Problem& problem, const Provenance& said, std::size_t alignment = 8);
/// The same with further tensors behind its own.
using MoreTensors = std::vector<std::pair<std::string, const Tensor*>>;
[[nodiscard]] CasePieces pieces_of(const Problem& problem, const Provenance& said, const MoreTensors& more);

/// A case, and what a kernel answered to it when it was saved: the case file's tensor "found", of the shape of the
/// output. Not present where the file has none.
struct AnsweredCase {
  Case value;
  Tensor found{};
};
[[nodiscard]] std::string encode_case(const AnsweredCase& c);
/// As decode_case (case.h), which passes the answer over. Throws UsageError for an answer of another shape.
[[nodiscard]] AnsweredCase decode_answered_case(std::string_view bytes, std::string_view source);

}  // namespace attest
