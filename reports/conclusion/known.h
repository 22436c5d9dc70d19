// Known findings: violations that are expected, each with a reason and a date, held against what a run found.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/results/summary.h"

namespace attest {

/// A [[finding]] of the file.
struct KnownFinding {
  std::string kernel;    ///< as on the command line, or the manifest's name
  std::string version;   ///< of the kernel, as its manifest has it, or where that begins; empty: whichever
  std::string dtype;     ///< "f32"
  std::string property;  ///< of the catalogue, or a glob that names some: each of these may be violated, and one is
  std::string kind;      ///< what is violated, as summary.json's "class"; empty: whatever it is
  std::string reason;    ///< why it is expected
  std::string date;      ///< when it was written down, "2026-01-31"
  std::size_t line = 0;  ///< of the file
};

/// The violations that are expected, in the order of the file. Throws UsageError "FILE, line 3: …" with the value, the
/// rule and the nearest name: for what is not TOML, an unknown or missing key, an unknown property or dtype, two
/// entries about the same.
[[nodiscard]] std::vector<KnownFinding> read_known_findings(const std::filesystem::path& file);
/// The same of text; `source` names it.
[[nodiscard]] std::vector<KnownFinding> parse_known_findings(const std::string& text, const std::string& source);

/// What a run makes of them.
struct KnownComparison {
  std::string source;                 ///< the file, as the user named it
  std::set<Subject> expected;         ///< violated, and known to be
  std::vector<std::string> problems;  ///< new violations and known ones that are gone, a line each
  std::vector<std::string> remarks;   ///< of known ones of which this run says nothing, a line each
};

/// `complete`: the run came to its end with every case of its properties, so that a known violation that did not show
/// is gone; else that is a remark.
[[nodiscard]] KnownComparison compare_with_known(const std::vector<KnownFinding>& known, std::string_view source,
                                                 const Summary& summary, bool complete);

}  // namespace attest
