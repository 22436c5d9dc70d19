// Probing: what a kernel does with what its manifest leaves open, found by asking and judging the answers against every
// reading of the question.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/kernel/kernel_under_test.h"
#include "properties/diagnosis/arithmetic/probe_arithmetic.h"

namespace attest {

/// One question and its answer.
struct ProbeAnswer {
  std::string question;    ///< "boolean mask"
  std::string declared;    ///< by the manifest in effect, stated or not
  std::string found;       ///< in words; "unsupported: …" where the kernel says so
  std::string evidence{};  ///< of variants and the arithmetic: what was asked, what came out, what that contradicts, or
                           ///< what mends it
  bool contradicts = false;  ///< the manifest offers it, and the kernel does another thing
  bool beyond = false;       ///< the kernel does it, and the manifest does not offer it
};

struct Probed {
  std::vector<ProbeAnswer> answers;
  Manifest manifest;  ///< the declared one with what was found in the place of what it says otherwise
  std::vector<ProbedArithmetic> arithmetics;  ///< of the dtypes that were asked; their findings are among the answers
  [[nodiscard]] bool contradicted() const;
};

/// Asks a kernel's attention entry, or its multihead one where that is all it has, in one of its dtypes (f32 where it
/// lists it): scale, masks and their polarity and convention, causal alignment, rows without a key, windows, chunks,
/// lengths of sequences and packed ones, sinks, softcaps, dropout, slopes, factors, the key-value head of a head or the
/// columns of one, lse, biases, strides, limits (find_limits.h), lengths and head dimensions, the arithmetic
/// (probe_arithmetic.h), and which claims hold in a few hundred cases. A reading is found when every answer to the
/// question lies within its bound and within that of no other reading; declared arithmetic is believed until then, and
/// so are limits. Questions and their numbers follow from `seed`; those about the arithmetic are always the same.
/// Throws UsageError where the kernel answers the plainest problem not at all, or wrong by what it declares and by the
/// arithmetic that is found of it, so that nothing it does could be read. `dtypes`: whose arithmetic is asked; none:
/// that of the dtype of all other questions. Throws UsageError for one that the kernel does not list.
[[nodiscard]] Probed probe(Kernel& kernel, std::uint64_t seed, const std::vector<DType>& dtypes = {});

}  // namespace attest
