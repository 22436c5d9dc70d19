// Figures: what of a run is held against another run, and what a baseline keeps of it.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/journal.h"
#include "core/support/json_writer.h"
#include "reports/results/summary.h"

namespace attest {

/// A kernel in a dtype.
struct KernelFigures {
  std::string id;                   ///< as on the command line
  std::string name;                 ///< the manifest's name for kernels from outside, else the id
  std::string dtype;                ///< "f32"
  std::string arithmetic;           ///< JSON, as the manifest states it for the dtype; empty: it states none
  std::vector<std::string> claims;  ///< as the manifest has them, sorted
  DrawnCounts drawn;                ///< judged cases by what was drawn, over all properties
  ShapeCounts shapes;               ///< and by their shapes; empty where they were not recorded
};

/// A property, a kernel and a dtype.
struct SubjectFigures {
  Subject subject;
  Outcome verdict = Outcome::skipped;
  std::int64_t cases = 0, judged = 0;
  double worst_utilisation = 0;  ///< as Tally
  std::int64_t worst_k = -1;
  std::array<std::int64_t, 64> histogram{};  ///< of judged cases, as Tally
  std::map<int, ScaledError> octaves{};      ///< as ErrorTable; empty where no errors were measured
  std::optional<Reach> reach{};              ///< as Tally
};

struct Figures {
  std::uint64_t seed = 1;
  bool bred = false;    ///< of a campaign, whose cases follow from what came before
  std::string against;  ///< the kernel that all were compared with; empty: with what is exact
  std::vector<KernelFigures> kernels;
  std::vector<SubjectFigures> subjects;
};

/// Of a run whose summary is at hand. `journal` is canonical.
[[nodiscard]] Figures figures_of(const Summary& summary, const Journal& journal);

/// The members "source", "against", "kernels" and "subjects" of a file of tolerances (tolerance.h).
void write_figures(JsonWriter& json, const Figures& figures);

/// Parses a file of tolerances; the rows, which follow from the run as well, are not read. Throws UsageError
/// "SOURCE: …" in one line.
[[nodiscard]] Figures parse_figures(std::string_view text, const std::string& source);

/// From a file of tolerances, or a run: its folder or its journal. Throws UsageError naming it.
[[nodiscard]] Figures read_figures(const std::filesystem::path& path);

}  // namespace attest
