// Summary: what a run amounts to, by kernel and dtype.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/journal.h"
#include "core/kernel/manifest.h"
#include "reports/causes/causes.h"
#include "reports/causes/explanations.h"
#include "reports/results/combinations.h"
#include "reports/results/drawn.h"
#include "reports/results/saved_journal.h"

namespace attest {

struct PropertySummary {
  std::string name;
  Outcome verdict = Outcome::skipped;
  Tally tally;
  std::string worst_case;  ///< file of the worst case, relative to the run's folder; empty where none is there
  std::string reason;      ///< why it is not held: the first finding's reason, or the commonest reason with its count
  std::vector<FindingRecord> findings;
  std::string alarm_case;      ///< file of the case with the worst alarm, as worst_case
  bool statistical = false;    ///< is_statistical: its utilisation is that of a draw, which no rounding explains
  std::int64_t offered = 0;    ///< cases that the kernel's manifest offers (offered.h)
  bool ruled_out = false;      ///< no case was reached, and the kernel's manifest has not what it needs
  bool hardly_tested = false;  ///< inconclusive for too few judged cases (coverage.h), as `reason` says
};

/// The largest extents that a manifest allows; nothing where it sets no limit.
struct Limits {
  std::optional<std::int64_t> queries, keys, head_dim, heads;
};

struct KernelSummary {
  std::string id;    ///< as on the command line
  std::string name;  ///< the manifest's name for kernels from outside, else the id
  std::string dtype;
  Outcome verdict = Outcome::skipped;
  std::vector<PropertySummary> properties;
  std::vector<KernelExplanation> explanations;  ///< beside violated bounds, never instead of them
  Limits limits{};
  Tiles tiles{};          ///< that the manifest declares
  std::string version{};  ///< that the manifest states; empty: none
  /// Shapes that the manifest offers and that it was hardly judged on (coverage.h), for which it is inconclusive; empty
  /// where there are none.
  std::string left_out{};
  CombinationCounts combinations{};  ///< of a kernel that lists a variant
  VariantPairs pairs{};              ///< those that it offers, of a kernel whose combinations were counted

  [[nodiscard]] std::int64_t cases() const;
  /// Cases that its manifest offers.
  [[nodiscard]] std::int64_t offered() const;
  /// Over all properties.
  [[nodiscard]] ShapeCounts shapes() const;
  [[nodiscard]] std::int64_t judged() const;
  [[nodiscard]] std::int64_t excused() const;
  /// How far the kernel was held against the exact answer, over all properties: as Tally's.
  [[nodiscard]] std::optional<Reach> reach() const;
  [[nodiscard]] bool reach_unknown() const;
  /// Properties that compared bits without a claim.
  [[nodiscard]] std::int64_t bits_compared() const;
  /// Of those, how many found no bit that differs.
  [[nodiscard]] std::int64_t bits_satisfied() const;
  /// The property whose worst utilisation is largest, of those that are not statistical; null where no case of one was
  /// judged.
  [[nodiscard]] const PropertySummary* worst() const;
};

/// What is worth knowing of a kernel and changes no verdict (Kernel::notes).
struct KernelNote {
  std::string kernel, text;
  [[nodiscard]] auto operator<=>(const KernelNote&) const = default;
};

struct Summary {
  Outcome verdict = Outcome::skipped;
  std::vector<KernelSummary> kernels;  ///< by id, f64 first
  std::vector<KernelRecord> not_started;
  std::vector<Cause> causes;      ///< of the violated kernels, by kernel
  std::vector<KernelNote> notes;  ///< sorted, each once
  std::uint64_t seed = 1;
  std::string shapes;          ///< of drawn cases (RunRecord::shapes)
  double alarm = 0;            ///< failure probability per element of the alarm; 0: none was asked for
  std::string against;         ///< the kernel that all were compared with; empty: with what is exact
  std::vector<Scarce> scarce;  ///< never changes a verdict
  std::vector<Asked> asked;    ///< what was asked for by name; nothing of a part, for other shards may have answered it
  /// All cases that were asked for were drawn from the generators, and are here: no part of a run, no captured cases,
  /// no campaign. Of others nothing is too little.
  bool drawn_whole = false;
  bool time_over = false;  ///< --time ended it; false where the journal does not say
  bool interrupted = false;
  bool unfinished = false;  ///< killed, or still under way; false where the journal does not say (canonical ones)

  [[nodiscard]] std::int64_t cases() const;
  [[nodiscard]] std::int64_t offered() const;
  [[nodiscard]] std::int64_t judged() const;
  [[nodiscard]] std::int64_t excused() const;
  [[nodiscard]] DrawnTotals drawn() const;
  /// Properties that were asked and that no kernel was judged by in any dtype, sorted.
  [[nodiscard]] std::vector<std::string> judged_by_none() const;
  /// Alarms of all kernels.
  [[nodiscard]] Alarm alarms() const;
  /// Elements that correct kernels may be expected to have beyond the probabilistic bound, at most.
  [[nodiscard]] double false_alarms_expected() const { return alarm * static_cast<double>(alarms().elements); }
};

/// Violated if one case is; else inconclusive if one is, or if none was held and not more were skipped than excused; an
/// empty tally is inconclusive.
[[nodiscard]] Outcome verdict_of(const Tally& tally);
/// The worse of two: violated, inconclusive, held, skipped.
[[nodiscard]] Outcome worse(Outcome a, Outcome b);

/// Reasons with their counts, the commonest first, of equals by the alphabet.
[[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> commonest(
    const std::map<Reason, std::int64_t>& reasons);

/// What a kernel of the journal is called: its id, or the name in the manifest of a program or a library.
[[nodiscard]] std::string name_of_kernel(const Journal& journal, const std::string& id);

/// Nothing of one that cannot be read: a journal may be of another version.
[[nodiscard]] std::optional<Manifest> manifest_of(const Journal& journal, const std::string& id);

/// From a canonical journal. `folder` is where case files are looked for; empty: nowhere.
[[nodiscard]] Summary summarise(const Journal& journal, const std::filesystem::path& folder);

/// summary.json (kernel-interface.md, section 4).
[[nodiscard]] std::string to_json(const Summary& summary);

}  // namespace attest
