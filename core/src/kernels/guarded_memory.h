// GuardedMemory: the memory a kernel called in this process is given, laid out so that what it must not do shows.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "attest/kernel.h"
#include "attest/tensor.h"

namespace attest {

/// Copies of the inputs and fresh outputs of one call, each between guard zones, in one block that is used again by the
/// next call. Guards are NaN in every floating format, so a read beyond a tensor shows in the result as well. Not
/// thread-safe.
///
/// Use: clear, then input/output for each tensor, then lay_out; call the kernel; then fault and copy_of.
class GuardedMemory {
 public:
  /// How unwritten output elements are recognised. One pattern alone can be a legitimate value (e4m3 has a single NaN),
  /// so an element counts as unwritten only when it holds the pattern of both fills after two calls.
  enum class Fill {
    signalling,  ///< a signalling NaN where the format has one: what arithmetic never returns
    ordinary     ///< the byte 0x5a throughout: a finite number in every format
  };

  /// Starts a call. `alignment` in bytes, a power of two, is met by every tensor; at least 64.
  void clear(std::int64_t alignment, Fill fill);
  /// Adds a tensor to be read; `name` must outlive the call. An absent one (data == nullptr) stays absent. The pointers
  /// in `view` are set by lay_out.
  void input(const char* name, attest_tensor& view);
  /// Adds a tensor to be written.
  void output(const char* name, attest_tensor& view);
  void lay_out();

  /// The first thing found that a kernel must not do: a changed guard or a changed input, in words. Nothing: all well.
  [[nodiscard]] std::optional<std::string> trespass() const;
  /// Elements of output number `which` (in order of adding) that still hold the fill, as flat indices, at most `most`.
  [[nodiscard]] std::vector<std::int64_t> untouched(int which, std::size_t most) const;
  /// Output number `which` as a tensor of its own.
  [[nodiscard]] Tensor copy_of(int which) const;

 private:
  struct Piece {
    const char* name;
    attest_tensor* view;        ///< whose data is set by lay_out; not looked at again, the kernel may change it
    attest_tensor layout;       ///< as it was added
    const std::byte* original;  ///< of an input; nullptr for an output
    std::size_t offset;         ///< from the aligned start of the block
    std::size_t size;           ///< bytes
  };
  void add(const char* name, attest_tensor& view, const std::byte* original);
  [[nodiscard]] const Piece& output_piece(int which) const;

  static constexpr std::size_t guard = 64;  ///< bytes before, between and behind the tensors, at least
  std::array<Piece, 16> pieces_{};          ///< 14 inputs of a multihead problem, out and lse
  std::size_t count_ = 0;
  std::size_t alignment_ = 64;
  std::size_t end_ = 0;  ///< bytes in use from the aligned start
  Fill fill_ = Fill::signalling;
  std::vector<std::byte> block_;
  std::byte* start_ = nullptr;
};

}  // namespace attest
