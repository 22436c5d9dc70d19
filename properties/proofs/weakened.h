// Theorems without one of their hypotheses: what the theorem needs, it is false without, and a witness shows it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/kernel/kernel_under_test.h"
#include "core/problem/case.h"
#include "core/support/words.h"
#include "properties/catalogue/property.h"

namespace attest {

/// The kernel whose enclosures certify a witness.
inline constexpr std::string_view certifying_core = "core:arb";

enum class Without {
  refuted,     ///< false without the hypothesis: `witness` shows it
  not_needed,  ///< it holds all the same, in every case tried
  no_matter,   ///< without the hypothesis the theorem says nothing
  unexpected   ///< a needed hypothesis without a witness, or a witness against one that is not: the catalogue is wrong
};
template <>
struct Words<Without> {
  static constexpr std::array<std::string_view, 4> names{"refuted", "not needed", "no matter", "UNEXPECTED"};
};

struct Weakened {
  const Property* property = nullptr;
  const Stated* stated = nullptr;
  Without outcome = Without::no_matter;
  /// Misses the hypothesis and meets all others of the property. Its provenance names the property and, as "without",
  /// the hypothesis, so that replay_witness shows it again.
  std::optional<Case> witness;
  std::string words;       ///< the witness's shape and numbers, or why there is none
  std::int64_t cases = 0;  ///< that miss exactly the hypothesis and were judged
};

/// How the property states the hypothesis; null: it does not.
[[nodiscard]] const Stated* stated_by(const Property& property, const Hypothesis& hypothesis);

/// Draws cases that miss the hypothesis and meet all others, in small whole numbers, and asks the core in balls
/// what the theorem says of them. A witness is one where two enclosures are apart, exp being the real one: what it
/// shows holds of the real numbers. The property states the hypothesis.
[[nodiscard]] Weakened without_hypothesis(const Property& property, const Stated& stated);

/// The same search among cases that meet the hypothesis too: it finds nothing, as the theorem is true.
[[nodiscard]] Weakened with_hypothesis(const Property& property, const Stated& stated);

/// A saved witness again, on the core in Arb balls or on core:mpfi: violated where the enclosures are apart. Throws
/// UsageError for a case whose provenance names no property or hypothesis of this program, or a property that does not
/// state it, or that misses more or less than it.
[[nodiscard]] Verdict replay_witness(const Case& c, std::string_view core_id = certifying_core);

}  // namespace attest
