// GuardedMemory: the memory a kernel called in this process is given, laid out so that what it must not do shows.
#pragma once

#include <attest/kernel.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/call/guarded_pages.h"
#include "core/call/sparse_memory.h"
#include "core/problem/edge.h"
#include "core/problem/memory.h"
#include "core/value/tensor.h"

namespace attest {

/// Where an address lies that a kernel must not have touched, as seen from the memory of its call.
struct FaultPlace {
  enum class Side {
    before,  ///< `bytes` before the start of `name`, the first of the tensors, or one against a page
    behind,  ///< `bytes` behind the end of `name`, the last of them, or one against a page
    within   ///< where the tensors lie; the kernel took the right to it away
  };
  Side side;
  std::string_view name;
  std::size_t bytes;
};

/// Copies of the inputs and fresh outputs of one call, each between guard zones and in a memory layout of its own, in
/// one block that is used again by the next call. Guards, and the gaps that a layout leaves between elements, are NaN
/// in every floating format, so a read outside a tensor shows in the result as well, where what was read is used.
///
/// In a call with an Edge each tensor has pages of its own instead, and its end touches a protected page: a read there
/// shows in any case. It is caught and noted, and the page made accessible, so that it is a finding of the call and not
/// the end of the process; what goes on for more pages than that is a crash (edge_faults.h). Not thread-safe, but for
/// the threads of the kernel.
///
/// A tensor whose elements lie far apart (is_far) has sparse memory of its own, with guard bytes about every run of
/// elements and zeros elsewhere; edges are not for it.
///
/// Use: clear, then input/output for each tensor, then lay_out; call the kernel, then called; then trespass and
/// copy_of.
class GuardedMemory {
 public:
  /// What lies beyond the first and the last guard zone.
  enum class Ends {
    open,     ///< memory of this program: for functions of its own
    faulting  ///< GuardedPages, at most a page before and nothing behind: for kernels from outside
  };
  explicit GuardedMemory(Ends ends = Ends::open) : ends_(ends) {}
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory();
  /// How unwritten output elements are recognised. One pattern alone can be a legitimate value (e4m3 has a single NaN),
  /// so an element counts as unwritten only when it holds the pattern of both fills after two calls.
  enum class Fill {
    signalling,  ///< a signalling NaN where the format has one: what arithmetic never returns
    ordinary,    ///< the byte 0x5a throughout: a finite number in every format
    leftover     ///< numbers as an output has, no two alike: what a program's memory holds from earlier calls. They are
                 ///< drawn anew in each process, so that no kernel knows them for what they are
  };

  /// Starts a call. `alignment` in bytes, 0 or a power of two, is met by the first element of every tensor, and 64 too
  /// where its layout is not `shifted`. With an edge the former alone is met, or the element's where that is larger: a
  /// tensor whose size is no multiple of it ends as near to its page as it lets it, and what is between is a guard.
  void clear(std::int64_t alignment, Fill fill, Edge edge = Edge::none);
  /// Adds a tensor to be read, row-major; `name` must outlive the call. An absent one (data == nullptr) stays absent.
  /// The strides in `view` become those of the layout; its pointer is set by lay_out.
  /// `after`: what it is to hold after the call, of as many elements, and outliving it; absent: what it held before.
  void input(std::string_view name, attest_tensor& view, MemoryLayout layout, const std::byte* after = nullptr);
  /// Adds a tensor to be written.
  void output(std::string_view name, attest_tensor& view, MemoryLayout layout);
  void lay_out();
  /// The call has returned: what faults from now on is a crash.
  void called() { armed_ = false; }

  /// The first thing found that a kernel must not do, in words: a protected page that it touched, a changed guard, gap
  /// or input. Nothing: all well.
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
  /// Of the pages of Ends::faulting and of those of a call with an edge; nothing for any other address.
  /// Async-signal-safe.
  [[nodiscard]] std::optional<FaultPlace> place_of(const void* address) const noexcept;
  enum class Access { read, write, unknown };
  /// Notes a fault near the edge of a tensor of the call under way and makes its page accessible. False: it is none,
  /// farther than 16 pages, or one too many. Async-signal-safe; any thread.
  [[nodiscard]] bool take_fault(const void* address, Access access) noexcept;

 private:
  struct Piece {
    std::string_view name;
    attest_tensor* view;        ///< whose data is set by lay_out; not looked at again, the kernel may change it
    attest_tensor layout;       ///< as it was added, with the strides of its layout
    const std::byte* original;  ///< of an input; nullptr for an output
    const std::byte* after;     ///< of an input, what it is to be after the call
    bool dense;                 ///< in the row-major layout
    bool far;                   ///< in sparse memory of its own
    std::size_t offset;         ///< from the aligned start of the block; without an edge
    std::size_t size;           ///< bytes, gaps included
    std::size_t first;          ///< bytes from `memory` to the first element
    std::byte* memory;          ///< set by lay_out
  };
  /// An input in the memory of another.
  struct Alias {
    attest_tensor* view;
    std::size_t piece;
  };
  /// Guard bytes, between the tensors `after` and `before`; -1 where there is none at that side.
  struct Zone {
    std::byte* from;
    std::byte* to;
    int after, before;
  };
  /// The first fault of a call. Written by whoever comes first, and read after the call.
  struct Fault {
    FaultPlace place;
    Access access;
  };
  void add(std::string_view name, attest_tensor& view, const std::byte* original, const std::byte* after,
           MemoryLayout layout);
  /// Has the view point into the memory of an input of the same bits and shape, once that is laid out. False: there is
  /// none.
  [[nodiscard]] bool alias(attest_tensor& view);
  [[nodiscard]] const Piece& output_piece(int which) const;
  [[nodiscard]] std::optional<std::string> trespass_between_elements(const Piece& piece) const;
  /// What is wrong with an input that is not what it is to be.
  [[nodiscard]] static std::string wrote_to(const Piece& piece);
  [[nodiscard]] std::optional<std::string> fault_in_words() const;
  void lay_out_in_a_block();
  void lay_out_at_edges();
  void fill_in(const Piece& piece) const;
  /// Bytes of its memory, guards included, of a tensor that lies far apart.
  struct Window {
    std::byte* from;
    std::byte* to;
  };
  void lay_out_far(std::size_t piece);
  [[nodiscard]] std::optional<std::string> trespass_in_windows(std::size_t piece) const;
  /// What is looked at of a tensor's memory: all of it, or its windows.
  [[nodiscard]] std::vector<Window> windows_of(std::size_t piece) const;
  void add_zone(std::byte* from, std::byte* to, int after, int before);
  [[nodiscard]] bool inside(std::size_t piece, const std::byte* at) const noexcept;
  /// Takes the access to the pages that take_fault gave it to away again.
  void protect_again();
  [[nodiscard]] std::uint64_t digest_of_piece(std::size_t piece) const;
  [[nodiscard]] std::uint64_t digest_of_zone(std::size_t zone) const;

  static constexpr std::size_t most_pieces = slot_count + 5;  ///< the inputs, out and lse, and the gradients
  static constexpr std::size_t most_faults = 16;              ///< pages of a call that are made accessible
  static constexpr std::size_t guard = 64;  ///< bytes before, between and behind the tensors, at least
  std::array<Piece, most_pieces> pieces_{};
  std::size_t count_ = 0;
  std::array<Alias, slot_count> aliases_{};
  std::size_t alias_count_ = 0;
  std::array<Zone, 2 * most_pieces + 1> zones_{};
  std::size_t zone_count_ = 0;
  std::size_t asked_alignment_ = 0;  ///< of this call
  std::size_t alignment_ = 64;       ///< of the memory of a tensor
  std::size_t end_ = 0;              ///< bytes in use from the aligned start
  Fill fill_ = Fill::signalling;
  Edge edge_ = Edge::none;
  Ends ends_;
  GuardedPages pages_;                                                ///< with faulting ends
  std::vector<std::byte> block_;                                      ///< with open ones
  std::byte* floor_ = nullptr;                                        ///< where the first guard zone begins
  std::byte* start_ = nullptr;                                        ///< what offsets are counted from; aligned
  std::array<std::unique_ptr<GuardedPages>, most_pieces> own_pages_;  ///< by piece, of calls with an edge
  std::array<std::unique_ptr<SparseMemory>, most_pieces> sparse_;     ///< by piece, of this call
  std::array<std::vector<Window>, most_pieces> windows_;              ///< of these, ascending
  std::atomic<bool> armed_ = false;                                   ///< a call with an edge is under way
  std::atomic<std::size_t> faults_ = 0;
  std::optional<Fault> fault_;
  std::array<std::byte*, most_faults> opened_{};
  bool watched_ = false;
  std::array<std::uint64_t, most_pieces> piece_digests_{};
  std::array<std::uint64_t, 2 * most_pieces + 1> zone_digests_{};
  bool sealed_ = false;
};

}  // namespace attest
