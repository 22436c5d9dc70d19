// GuardedMemory: the memory a kernel called in this process is given, laid out so that what it must not do shows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attest/kernel.h"
#include "attest/strides.h"
#include "attest/tensor.h"
#include "guarded_pages.h"

namespace attest {

/// Where an address lies that a kernel must not have touched, as seen from the memory of its call.
struct FaultPlace {
  enum class Side {
    before,  ///< `bytes` before the start of `name`, the first of the tensors
    behind,  ///< `bytes` behind the end of `name`, the last of them
    within   ///< where the tensors lie; the kernel took the right to it away
  };
  Side side;
  const char* name;
  std::size_t bytes;
};

/// Copies of the inputs and fresh outputs of one call, each between guard zones and in a memory layout of its own, in
/// one block that is used again by the next call. Guards, and the gaps that a layout leaves between elements, are NaN
/// in every floating format, so a read outside a tensor shows in the result as well. Not thread-safe.
///
/// Use: clear, then input/output for each tensor, then lay_out; call the kernel; then trespass and copy_of.
class GuardedMemory {
 public:
  /// What lies beyond the first and the last guard zone.
  enum class Ends {
    open,     ///< memory of this program: for functions of its own
    faulting  ///< GuardedPages, at most a page before and nothing behind: for kernels from outside
  };
  explicit GuardedMemory(Ends ends = Ends::open) : ends_(ends) {}
  /// How unwritten output elements are recognised. One pattern alone can be a legitimate value (e4m3 has a single NaN),
  /// so an element counts as unwritten only when it holds the pattern of both fills after two calls.
  enum class Fill {
    signalling,  ///< a signalling NaN where the format has one: what arithmetic never returns
    ordinary     ///< the byte 0x5a throughout: a finite number in every format
  };

  /// Starts a call. `alignment` in bytes, 0 or a power of two, is met by the first element of every tensor, and 64 too
  /// where its layout is not `shifted`.
  void clear(std::int64_t alignment, Fill fill);
  /// Adds a tensor to be read, row-major; `name` must outlive the call. An absent one (data == nullptr) stays absent.
  /// The strides in `view` become those of the layout; its pointer is set by lay_out.
  void input(const char* name, attest_tensor& view, MemoryLayout layout);
  /// Adds a tensor to be written.
  void output(const char* name, attest_tensor& view, MemoryLayout layout);
  void lay_out();

  /// The first thing found that a kernel must not do, in words: a changed guard, gap or input. Nothing: all well.
  [[nodiscard]] std::optional<std::string> trespass() const;
  /// Elements of output number `which` (in order of adding) that still hold the fill, as flat indices in row-major
  /// order whatever the layout, at most `most`.
  [[nodiscard]] std::vector<std::int64_t> untouched(int which, std::size_t most) const;
  /// Output number `which` as a row-major tensor of its own.
  [[nodiscard]] Tensor copy_of(int which) const;

  /// Remembers what the memory holds now that the call has returned. Until the next clear nobody may change it.
  void seal();
  /// What changed since seal, in words: a thread that the call left behind went on writing. Nothing where nothing did,
  /// or where nothing is sealed.
  [[nodiscard]] std::optional<std::string> changed_since_sealed() const;
  /// Of the pages of Ends::faulting; nothing for any other address. Async-signal-safe.
  [[nodiscard]] std::optional<FaultPlace> place_of(const void* address) const noexcept;

 private:
  struct Piece {
    const char* name;
    attest_tensor* view;        ///< whose data is set by lay_out; not looked at again, the kernel may change it
    attest_tensor layout;       ///< as it was added, with the strides of its layout
    const std::byte* original;  ///< of an input; nullptr for an output
    bool dense;                 ///< in the row-major layout
    std::size_t offset;         ///< from the aligned start of the block
    std::size_t size;           ///< bytes, gaps included
    std::size_t first;          ///< bytes from `offset` to the first element
  };
  void add(const char* name, attest_tensor& view, const std::byte* original, MemoryLayout layout);
  [[nodiscard]] const Piece& output_piece(int which) const;
  [[nodiscard]] std::optional<std::string> trespass_between_elements(const Piece& piece) const;
  /// Digest number 0 is of what lies before the tensors, i of tensor i - 1 and what lies behind it.
  [[nodiscard]] std::uint64_t digest_of(std::size_t segment) const;

  static constexpr std::size_t guard = 64;  ///< bytes before, between and behind the tensors, at least
  std::array<Piece, 16> pieces_{};          ///< 14 inputs of a multihead problem, out and lse
  std::size_t count_ = 0;
  std::size_t asked_alignment_ = 0;  ///< of this call
  std::size_t alignment_ = 64;       ///< of the memory of a tensor
  std::size_t end_ = 0;              ///< bytes in use from the aligned start
  Fill fill_ = Fill::signalling;
  Ends ends_;
  GuardedPages pages_;            ///< with faulting ends
  std::vector<std::byte> block_;  ///< with open ones
  std::byte* floor_ = nullptr;    ///< where the first guard zone begins
  std::byte* start_ = nullptr;    ///< what offsets are counted from; aligned
  std::array<std::uint64_t, 17> digests_{};
  bool sealed_ = false;
};

}  // namespace attest
