// Planted faults and controls: kernels that are wrong on purpose, each by one small mistake that attention kernels
// really had, and kernels that are right, each computed another way. What tells the ones from the others is worth
// something.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "core/kernels/backward/tiled_backward.h"
#include "core/support/words.h"
#include "properties/faults/make.h"

namespace attest {

/// What of a kernel the mistake is in, or what a case must have to show it.
enum class FaultKind {
  masks,            ///< what a row sees and reads
  numbers,          ///< what a row computes
  windows,          ///< which keys a window leaves to a row
  chunks,           ///< which chunk of keys a row is in
  sequences,        ///< which rows and keys are of one sequence
  sinks,            ///< what a sink takes of a row's weights
  softcaps,         ///< what a cap makes of a scaled product
  dropout,          ///< which weights are dropped, and what becomes of the others
  alibi,            ///< what slopes add to scores
  descale,          ///< which factor a row of q, k or v has, and where it is multiplied
  second_key_tile,  ///< more keys than a tile takes
  partial_tile,     ///< a last tile that is not full, behind a full one
  causal_tiles,     ///< a causal form over more than one tile
  mask_tiles,       ///< a mask over more than one tile
  window_tiles,     ///< a window over more than one tile
  chunk_tiles,      ///< chunks that begin or end within a tile, or more than one tile long
  sequence_tiles,   ///< sequences of more than one tile
  sink_tiles,       ///< a sink beside more than one tile
  softcap_tiles,    ///< a cap beside a tile of keys that is full
  dropout_tiles,    ///< dropped weights in more than one tile
  alibi_tiles,      ///< slopes beside more than one tile
  descale_tiles,    ///< factors of blocks that are not tiles, or beside more than one tile
  head_dim,         ///< a head or value dimension above 64
  heads,            ///< more than 8 heads, or three to a group
  batch,            ///< more than four batch entries, or several and more than one tile
  long_rows,        ///< more than 512, 2048, 4096 or 65,536 keys
  index,            ///< offsets beyond 16 or 32 bits, and strides at a head dimension of 128
  split,            ///< few queries, keys in parts
  gradients,        ///< what a backward pass computes
  gradient_tiles    ///< a backward pass of more than one tile, of wide heads, or of many
};
template <>
struct Words<FaultKind> {
  static constexpr std::array<std::string_view, 30> names{
      "masks",         "numbers",       "windows",      "chunks",        "sequences",       "sinks",
      "softcaps",      "dropout",       "alibi",        "descale",       "second key tile", "partial tile",
      "causal tiles",  "mask tiles",    "window tiles", "chunk tiles",   "sequence tiles",  "sink tiles",
      "softcap tiles", "dropout tiles", "alibi tiles",  "descale tiles", "head dim",        "heads",
      "batch",         "long rows",     "index",        "split",         "gradients",       "gradient tiles"};
};

/// A correct kernel with one mistake.
struct PlantedFault {
  std::string_view name;         ///< without "fault:"
  std::string_view classes;      ///< letters of the classes of known bugs it stands for, "" where it stands for none
  std::string_view wrong;        ///< what is wrong, one line
  std::string_view stands_for;   ///< the bugs, repository#number, "; " between them; "" where there are none
  std::string_view caught_by;    ///< properties expected to catch it, a space between them; "" where `unseen` says why
  Make make;                     ///< how it computes otherwise
  std::vector<DType> dtypes{};   ///< never empty in planted_faults(): an entry without any has its make's
  bool lse = true;               ///< it offers the log-sum-exp
  std::string_view unseen = {};  ///< why outputs cannot show it; "" for all others
  FaultKind kind = {};           ///< set where the lists are joined
  /// The backward pass, where it has one; the mistake is in it then, and `make` is right.
  std::optional<BackwardForm> backward = {};

  [[nodiscard]] Slip slip() const { return Slip::named(name); }
};
[[nodiscard]] std::span<const PlantedFault> planted_faults();

/// A correct kernel.
struct ControlKernel {
  std::string_view name;     ///< without "control:"
  std::string_view summary;  ///< one line
  Make make;
  std::optional<BackwardForm> backward = {};  ///< its backward pass, where it has one
};
[[nodiscard]] std::span<const ControlKernel> controls();

/// "fault:NAME" for all of planted_faults() and "control:NAME" for all of controls(), with complete manifests. No run
/// takes them unless it is told to.
[[nodiscard]] std::vector<KernelEntry> fault_kernels();
[[nodiscard]] std::vector<KernelEntry> control_kernels();

/// The kernel of the fault.
[[nodiscard]] std::unique_ptr<Kernel> with_fault(const PlantedFault& fault);
/// The kernel of the fault without its mistake, everything else alike: what a rule rejects of it is a false alarm.
[[nodiscard]] std::unique_ptr<Kernel> without_fault(const PlantedFault& fault);

}  // namespace attest
