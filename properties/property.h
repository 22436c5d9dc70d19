// Property: a named statement of theorems.md. Given a case it arranges one or more runs of a kernel and says what must
// agree, bitwise or within the bound.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attest/case.h"
#include "attest/kernel_under_test.h"
#include "attest/verdict.h"

namespace attest {

class Draw;  // generators/draw.h: a seeded source of cases for one dtype

/// One row of the catalogue. Plain data; a property is registered by one line in catalogue.cc.
struct Property {
  std::string_view name;            ///< the claim, "attention.oracle", the same everywhere
  std::string_view statement;       ///< in the words of theorems.md
  std::string_view source;          ///< source document(s), "+" where none states it
  std::string_view needs;           ///< what it needs of a kernel ("attention", "multihead", …)
  std::string_view floating_point;  ///< what must hold in floating point, theorems.md's last column
  Operation operation;
  /// The hypotheses: one case of the drawn dtype. Never looks at a kernel.
  Case (*given)(Draw& draw);
  /// Runs the kernel on the case (as often as the theorem needs) and judges. The case is valid and supported.
  Verdict (*check)(Kernel& kernel, const Case& c);
};

/// Every property, in the order of theorems.md.
[[nodiscard]] const std::vector<const Property*>& catalogue();
/// Properties whose name matches the glob; empty when none does.
[[nodiscard]] std::vector<const Property*> properties_matching(std::string_view glob);

/// H(run seed, property, dtype, k): the seed of case k, the same for every kernel, job, shard and machine.
[[nodiscard]] std::uint64_t case_seed(std::uint64_t run_seed, std::string_view property, DType dtype, std::int64_t k);

/// Case k of a property in a dtype: a function of (run_seed, property, dtype, k) alone.
[[nodiscard]] Case generate(const Property& property, DType dtype, std::uint64_t run_seed, std::int64_t k);

/// Meets a manifest's limits of shape (head dimension, lengths, heads, scale, self-attention only) by a fixed
/// projection: crops or repeats rows and columns of the case. A case within the limits comes back unchanged.
[[nodiscard]] Case project(const Case& c, const Manifest& manifest);

/// Checks one case: skipped with the reason where the manifest rules it out, else the property's verdict. A call that
/// ends in anything but ok, unsupported or rejected is violated, with the status in `reason`.
[[nodiscard]] Verdict check_case(const Property& property, Kernel& kernel, const Case& c);

/// A smaller case that the kernel still violates by a margin (utilisation >= 2, or as far above 1 as the original):
/// fewer rows, keys, heads, dimensions first, then simpler numbers; at most `budget` kernel runs. Deterministic.
[[nodiscard]] Case shrink(const Property& property, Kernel& kernel, const Case& c, int budget = 1000);

}  // namespace attest
