// Causes: what is wrong with a kernel, told once however many properties fail by it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"

namespace attest {

/// Violated cases of a kernel that are one mistake, as far as can be told.
struct Cause {
  std::string kernel;                      ///< as on the command line
  std::vector<std::string> dtypes{};       ///< in which it was seen, f64 first
  std::vector<std::string> properties{};   ///< that fail by it, the one with most violated cases first
  std::vector<std::string> misreadings{};  ///< what misreadings_of says; empty: nothing
  std::vector<std::string> right{};        ///< what right_nearby says of the example
  std::string condition{};                 ///< as Condition::words
  /// Gradients of its saved cases are wrong by the formulas at the out and lse that the kernel itself returns, too.
  bool by_own_answers = false;
  /// Cases that were looked at and meet the condition, violated ones of them, and the same of the others that are not
  /// another cause's; 0 where there was nothing to look at (captured cases, campaigns, journals of before).
  std::int64_t cases = 0, violated = 0, others = 0, others_violated = 0;
  /// The finding to look at first: the smallest, of those that were judged against the exact answer if there are any.
  Subject example{};
  std::int64_t example_k = 0;

  [[nodiscard]] bool operator==(const Cause&) const = default;
};

/// Whether the numbers of the finding's verdict are those of one element beside its exact answer. A law's verdict may
/// name one element too, and be about its distance from a sum of others.
[[nodiscard]] bool is_against_exact(const FindingRecord& finding);

/// As the journal has it, with to_json of it as a fact.
inline constexpr std::string_view cause_event = "cause";
[[nodiscard]] MetaRecord record_of(const Cause& cause);
[[nodiscard]] std::string to_json(const Cause& cause);
/// Those of the journal about a kernel, in their order. What parts of a run say of one mistake, by its condition and
/// its misreadings, is put together. Records that are of another version are passed over.
[[nodiscard]] std::vector<Cause> causes_in(const Journal& journal, const std::string& kernel);

}  // namespace attest
