// Which keys the rows of a kernel see, read off from its answers: with q = 0 and the identity as v a row's output is
// 1/n on the n keys that it sees.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem/sight.h"
#include "properties/diagnosis/probe_questions.h"

namespace attest {

/// The keys that a row sees; nothing for a row of NaN or zeros, which sees none.
using SeenKeys = std::optional<std::vector<std::int64_t>>;

/// What hides by position in one problem, and what each row was seen to see.
struct SeenRows {
  SightRule asked;
  std::int64_t rows = 0, keys = 0;
  std::vector<SeenKeys> seen;

  /// "bottom-right, 6 queries and 9 keys".
  [[nodiscard]] std::string place() const;
  /// Whether rows see what a reading of the rule shows them. A row without a key may be anything that its policy is; a
  /// uniform one sees all.
  using SightOf = std::function<Sight(const SightRule& asked, std::int64_t i, std::int64_t rows, std::int64_t keys)>;
  [[nodiscard]] bool fits(const SightOf& reading) const;
};

/// What became of one problem.
struct Looked {
  SeenRows rows;                       ///< without seen keys, where they are not told
  CallStatus status = CallStatus::ok;  ///< of the first call that brought no set of keys
  std::string why{};                   ///< empty, too, of a kernel that rejects rows without a key
};

/// What became of all that one question asks.
struct Served {
  int asked = 0, answered = 0;
  bool right = true;  ///< every answer was as asked
  CallStatus refusal = CallStatus::unsupported;
  std::string why;  ///< of the first that was not answered, or whose answer is no set of keys
  std::vector<SeenRows> seen;

  [[nodiscard]] bool well() const { return answered > 0 && right; }
  void add(const Looked& looked);
};

/// Few keys, so that all that is worth asking is little, and lengths on both sides of each other, as the manifest
/// allows: rows and keys.
[[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> lengths_to_look_at(const Manifest& manifest);
/// A problem with q = 0, of that rule and of what `terms` require beside it: a causal form, a mask that hides nothing.
[[nodiscard]] Case case_to_look_at(ProbeQuestions& probe, const VariantTerms& terms, const SightRule& rule,
                                   std::int64_t rows, std::int64_t keys);
/// Calls the kernel with it, and columns of the identity as v. `words`: what is asked, of rows whose answer is no set.
[[nodiscard]] Looked look_at(ProbeQuestions& probe, Case c, const std::string& words);

/// The readings that were found, in words, and what mends them, as sentences; empty: nothing.
struct SightsFound {
  std::vector<std::string> words;
  std::string remedy{};
};
/// The answer to a question of what rows see. Its evidence is the row that shows best what is wrong, if one is. `what`:
/// "windows"; `words`: those of a rule, "window_left 2".
[[nodiscard]] ProbeAnswer answer_about_sights(std::string question, bool declared, const Served& served,
                                              const SightsFound& found, std::string_view what,
                                              std::string (*words)(const SightRule& asked));

}  // namespace attest
