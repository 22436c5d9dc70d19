// A row of a survey's table: what was found of one output of one path of a library in one dtype.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/measure/error_statistics.h"
#include "core/measure/verdict.h"

namespace attest {

/// A mistake of the path, as the run told it (CauseWords).
struct WrongPath {
  std::string what, when, smallest, found;
  std::string input;  ///< the smallest case, a file beside the table; empty: none is kept
  [[nodiscard]] bool operator==(const WrongPath&) const = default;
};

struct SurveyRow {
  // What it is of; no two rows of a table have the same.
  std::string library, version, path;
  std::string dtype;      ///< "f32"
  std::string operation;  ///< "attention", "multihead" or "attention_backward"; empty where nothing was run
  std::string output;     ///< "out", "dq", …; empty where nothing was run
  std::string processor;  ///< as a journal has it

  // As the list has it (library_paths.h).
  std::string kernel, recipe, forced, promises;
  std::vector<std::string> properties, findings;

  /// Why there is nothing of it; empty: there is.
  std::string not_run;
  std::string date;    ///< "2026-01-31", when its check began
  std::string attest;  ///< the version that judged it

  Outcome verdict = Outcome::skipped;     ///< of all that was asked of the operation
  std::int64_t judged = 0, searched = 0;  ///< cases of the operation, drawn and bred
  std::vector<WrongPath> wrong;           ///< where it is violated
  double worst_share = 0;                 ///< largest error ÷ allowed, drawn and bred, subnormal rounding apart
  double worst_scaled = 0;                ///< largest error ÷ (u Σα|v|) likewise
  bool worst_was_searched = false;        ///< the worst share is of a bred case
  std::string worst_input;                ///< its case, a file beside the table; empty: none is kept
  std::int64_t ordinary_cases = 0;        ///< of drawn ones (is_ordinary)
  double ordinary_share = 0;              ///< what 999 of 1000 of their elements do not exceed, as a share
  double ordinary_scaled = 0;             ///< their largest error ÷ (u Σα|v|)
  std::map<int, ScaledError> by_keys;     ///< as ErrorTable::octaves, drawn and bred
  std::string declared, found;            ///< arithmetic as JSON: the manifest's, and what probe found; may be empty
  std::vector<std::string> claims;        ///< of the manifest
  std::optional<Outcome> promise = {};    ///< of what the manifest says of the library's documents, where it does

  [[nodiscard]] bool operator==(const SurveyRow&) const = default;
};

/// "out", "multi-head out", "dq"
[[nodiscard]] std::string output_words(const SurveyRow& row);
/// "PyTorch 2.13.0: SDPA, flash"
[[nodiscard]] std::string path_words(const SurveyRow& row);

/// What a verdict that is not of every property is of: "by attention.oracle alone", "by the search alone"; empty: it is
/// of every one.
[[nodiscard]] std::string alone_words(const SurveyRow& row);

inline constexpr std::string_view survey_schema = "attest-survey/1";
/// The data file, a member of "rows" for each.
[[nodiscard]] std::string survey_json(const std::vector<SurveyRow>& rows);
/// Throws UsageError "SOURCE: …" in one line.
[[nodiscard]] std::vector<SurveyRow> parse_survey(std::string_view text, const std::string& source);

/// By library, path, dtype, operation, output and version. Of rows of the same the later one counts, by date and then
/// by place; a row of which nothing was run only where there is no other of its library, version, path and dtype.
[[nodiscard]] std::vector<SurveyRow> joined(const std::vector<SurveyRow>& rows);

}  // namespace attest
