// The files in memory through which a program that asks for it is given large tensors and answers them
// (kernel-interface.md, Shared memory). This process maps neither: what it wrote it never reads again, and what it
// reads it copies, so that nothing a program does to a file changes what is judged afterwards or raises a signal here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/isolation/child.h"
#include "core/problem/case_file.h"

namespace attest::process {

/// Where tensors begin in them: what the widest vector instructions and zero-copy imports of frameworks ask for.
inline constexpr std::size_t shared_alignment = 64;

/// A file of these bytes that nobody can change any more. Without a descriptor where the system gives no such file, or
/// no memory for it.
[[nodiscard]] Descriptor sealed_file(const CasePieces& pieces);
/// A file to be written to, whose length nobody can change: `bytes` of 0xff, which is NaN in every dtype of an output.
/// Without a descriptor as above.
[[nodiscard]] Descriptor file_for_answer(std::uint64_t bytes);
/// The path by which other processes of the same user open it while this one holds it: "/proc/812/fd/14".
[[nodiscard]] std::string path_of(const Descriptor& file);
/// Copies the bytes from `offset` on; false where the file has not so many.
[[nodiscard]] bool copy_from(const Descriptor& file, std::uint64_t offset, std::span<std::byte> into);

/// [batch, heads, M], of whose log-sum-exp that is.
[[nodiscard]] Shape lse_shape(const Case& c);

/// The files of one call, and the frame that names them.
class SharedTensors {
 public:
  SharedTensors(const Case& c, const Provenance& said, DType output, bool want_lse);
  /// Whether the system gave the files.
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(reply_); }
  [[nodiscard]] std::string frame() const;

  struct Answer {
    Tensor out, lse;  ///< lse absent where it was not wanted
  };
  /// What stands in the file now, copied; nothing where that is shorter than it was made.
  [[nodiscard]] std::optional<Answer> answer() const;

 private:
  /// A tensor's place in the file for the answer.
  struct Place {
    DType dtype = DType::f64;
    Shape shape;
    std::uint64_t offset = 0;

    [[nodiscard]] std::uint64_t end() const {
      return offset + static_cast<std::uint64_t>(shape.elements()) * size_of(dtype);
    }
  };

  Operation operation_;
  Place out_;
  std::optional<Place> lse_;
  Descriptor request_, reply_;
};

}  // namespace attest::process
