// Journal: the append-only record of a run (JSON lines), its reader, its writer and its canonical form.
//
// A line is one JSON object whose "kind" is one of
//   run      what determines the cases: seed, or the case files
//   meta     times, host, versions, arguments: everything that may differ between two runs of the same thing
//   kernel   a kernel with its manifest, or why it did not start
//   finding  a violated case, shrunk and saved, or an inconclusive one, saved as it is
//   proof    what was established of a property over the real numbers, and of what
//   batch    the tally of a finished range of cases
// Findings of a batch stand before its batch line, so a batch that is there is there whole. A last line without its
// newline is what a killed writer left: readers ignore it, and a writer that resumes cuts it off.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attest/bit_classes.h"
#include "attest/error_statistics.h"
#include "attest/oracle.h"
#include "attest/tensor.h"
#include "attest/verdict.h"

namespace attest {

class JsonWriter;

/// The first k of batch r, which ends where the next begins, for any number of jobs; n times that in each of n shards,
/// for as many cases of its own. 64 batches of 64 cases, so that a kill soon after the start loses little; 256 up to
/// case 65536, and 4096 from there, a sixteenth of what is done at most, so that the journal of a long run stays short.
[[nodiscard]] constexpr std::int64_t batch_start(std::int64_t r) {
  constexpr std::int64_t small = 64, medium = 256, large = 4096;
  constexpr std::int64_t first_large = small + (medium * medium - small * small) / medium;
  if (r <= small) return r * small;
  return r <= first_large ? small * small + (r - small) * medium : medium * medium + (r - first_large) * large;
}
/// Findings kept per (property, kernel, dtype) and outcome: those with the smallest k. The rest is counted.
inline constexpr std::size_t findings_kept = 3;

/// Alarms (verdict.h) over a range of k.
struct AlarmTally {
  Alarm all;
  std::int64_t cases = 0;     ///< with an element beyond the probabilistic bound
  std::int64_t worst_k = -1;  ///< the smallest k that attains all.worst; -1: no element was held against that bound

  void add(std::int64_t k, const Alarm& alarm);
  void merge(const AlarmTally& other);
  [[nodiscard]] bool operator==(const AlarmTally&) const = default;
};

/// Cases by word of what was drawn, "group:kind".
using DrawnCounts = std::map<std::string, std::int64_t, std::less<>>;

/// Counts and the worst case over a range of k; merging is associative and commutative, and every figure is an integer,
/// a maximum or a count, so that the order of merging cannot change a byte.
struct Tally {
  std::int64_t held = 0, violated = 0, skipped = 0, excused = 0, inconclusive = 0;
  double worst_utilisation = 0.0;       ///< over held and violated cases; inf where NaN was found or nothing allowed
  std::int64_t worst_k = -1;            ///< the smallest k that attains it; -1: no case was held or violated
  std::array<std::int64_t, 4> level{};  ///< held and violated cases by deepest oracle level
  /// histogram[i] counts held and violated cases with utilisation in (2^((i-56)/4), 2^((i-55)/4)], clamped at both
  /// ends: 64 quarter octaves from 2^-14 to 2^2. The first bin also holds 0; 1, which is held, is in bin 55.
  std::array<std::int64_t, 64> histogram{};
  /// Why, for skipped, excused and inconclusive cases: "skipped: has N queries; the manifest's max_queries is 1" →
  /// count. Numbers before the first ';' (the case's own) read N, so that a reason is a class and not a case.
  std::map<std::string, std::int64_t> reasons;
  std::optional<AlarmTally> alarm;  ///< nothing where no case had an alarm to raise, or none was asked for

  /// Over held and violated cases, as in Verdict: elements whose bits agreed, and that were compared, without a claim.
  std::int64_t bits_agreed = 0, bits_compared = 0;
  /// What was drawn, for held and violated cases alone: the words of a case are counted once each. "mask:padding" and
  /// so on are the generators' words, "bits:subnormal" and so on (BitClass) what the kernel was sent in q, k and v.
  /// Empty where the cases came from files.
  DrawnCounts drawn;
  /// Of judged cases whose errors were measured; empty in journals of before they were.
  ErrorTable errors;

  /// `kinds`: the generator's words for the case, a space between two.
  void add(std::int64_t k, const Verdict& verdict, std::string_view kinds = {}, BitClasses bits = 0);
  /// Cases that have one of the words of `any_of`, a space between two, of which no case has two.
  [[nodiscard]] std::int64_t drawn_of(std::string_view any_of) const;
  /// `count` cases skipped for one reason.
  void skip(std::int64_t count, std::string_view reason);
  void merge(const Tally& other);
  /// Cases of every outcome.
  [[nodiscard]] std::int64_t cases() const { return held + violated + skipped + excused + inconclusive; }
  /// Cases that were held or violated.
  [[nodiscard]] std::int64_t judged() const { return held + violated; }
  /// An upper bound of the quantile (0 < fraction <= 1) of the judged cases' utilisation: the edge of its bin, or the
  /// worst where that is less. 0 without judged cases.
  [[nodiscard]] double quantile(double fraction) const;
  [[nodiscard]] bool operator==(const Tally&) const = default;
};

/// k ≡ index mod count.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;
  [[nodiscard]] bool takes(std::int64_t k) const { return k % count == index; }
  [[nodiscard]] bool operator==(const Shard&) const = default;
  [[nodiscard]] auto operator<=>(const Shard&) const = default;
};

/// What determines the cases of a run and what is asked of them.
struct RunRecord {
  std::uint64_t seed = 1;
  std::vector<std::string> case_files;  ///< not empty: case k is the k-th of these files
  double alarm = 0;                     ///< failure probability per element of the alarm; 0: none was asked for
  std::string against{};                ///< the kernel that every other was compared with; empty: with what is exact
  bool fuzz = false;                    ///< a fuzz campaign: its cases follow from what came before, not from k alone
  [[nodiscard]] bool operator==(const RunRecord&) const = default;
};

/// event "begin" or "end", and facts as text.
struct MetaRecord {
  std::string event;
  std::map<std::string, std::string> facts;
};

/// A kernel of the run.
struct KernelRecord {
  std::string id;           ///< as on the command line
  std::string manifest;     ///< JSON; empty where it did not start
  std::string not_started;  ///< why it was left out; empty where it started
  [[nodiscard]] bool operator==(const KernelRecord&) const = default;
};

/// What a batch, a finding and a line of the summary are about.
struct Subject {
  std::string property, kernel, dtype;
  [[nodiscard]] auto operator<=>(const Subject&) const = default;
};

/// A finished range: every k in [first_k, last_k) that the shard takes.
struct BatchRecord {
  Subject subject;
  std::int64_t first_k = 0, last_k = 0;
  Shard shard;
  Tally tally;
};

/// An element of an output that a finding is about.
struct ComparedRecord {
  Shape shape;               ///< of the out that it is an element of
  std::int64_t element = 0;  ///< flat row-major index
  std::int64_t keys = 0;     ///< N of that call
  double found = 0.0;
  std::optional<Enclosure> exact{};  ///< certified; nothing where it was not computed, or nothing is defined
};

/// How a violated case fared when it was checked again, of one that does not come back by itself.
struct Repetition {
  std::int64_t again = 0, of = 0;  ///< violated in so many of so many checks at once
  /// Files of calls, relative to the run's folder, after which a kernel started afresh violates the case; empty: none
  /// were found that bring it back.
  std::vector<std::string> before{};
  [[nodiscard]] bool operator==(const Repetition&) const = default;
};

/// A violated verdict with its shrunk case, or an inconclusive one with its case.
struct FindingRecord {
  Subject subject;
  std::int64_t k = 0;
  std::string case_file;                   ///< relative to the run's folder
  Verdict verdict;                         ///< of the saved case
  std::vector<ComparedRecord> compared{};  ///< of Verdict::compared
  std::optional<Repetition> repetition{};  ///< nothing where the saved case is violated by itself, each time

  /// What findings are sorted by: the name of the violation, or "inconclusive".
  [[nodiscard]] std::string_view kind() const;
};

/// What stands behind a row of the catalogue, at one level and about one subject; nothing of it is about rounding.
struct ProofRecord {
  std::string property;
  std::string level;    ///< "coq-all-shapes", "symbolic", "probabilistic", "abstract", "refuted", "tested", …
  std::string subject;  ///< what it is about: "a model, all M, N, dk, dv, h", "the core's templates at 16 shapes, …"
  std::string words;    ///< the theorem, the counterexample, the reason why there is no more
  [[nodiscard]] auto operator<=>(const ProofRecord&) const = default;
};

/// Everything a journal holds, in the order it was written.
struct Journal {
  std::optional<RunRecord> run;
  std::vector<MetaRecord> meta;
  std::vector<KernelRecord> kernels;
  std::vector<BatchRecord> batches;
  std::vector<FindingRecord> findings;
  std::vector<ProofRecord> proofs;
  bool torn = false;  ///< a last line without its end was ignored

  /// The run was stopped before its end, or is under way, or was killed: no "end" follows the last "begin".
  [[nodiscard]] bool unfinished() const;
  /// The last "end" says it was interrupted.
  [[nodiscard]] bool interrupted() const;
};

/// Writes the counts as {"group": {"kind": 3, …}, …}.
void write_drawn(JsonWriter& json, const DrawnCounts& drawn);

/// One line with its newline.
[[nodiscard]] std::string to_line(const RunRecord&);
[[nodiscard]] std::string to_line(const MetaRecord&);
[[nodiscard]] std::string to_line(const KernelRecord&);
[[nodiscard]] std::string to_line(const BatchRecord&);
[[nodiscard]] std::string to_line(const FindingRecord&);
[[nodiscard]] std::string to_line(const ProofRecord&);

/// Parses journal text. Throws UsageError "SOURCE, line 12: …" for a line that is whole and wrong.
[[nodiscard]] Journal parse_journal(std::string_view text, std::string_view source);
/// Reads a journal file, or run.jsonl of a run's folder. Throws UsageError naming it.
[[nodiscard]] Journal read_journal(const std::filesystem::path& file_or_folder);

/// The canonical form of one run given by any number of journals of its parts: meta dropped, everything sorted, each
/// finished batch once, shards that complete each other joined, neighbouring ranges joined, and the findings_kept
/// findings of smallest k per subject and outcome, violated ones first. Byte-equal for any jobs, shards, interruptions
/// and order. Throws UsageError where the parts are not of one run (another seed, other case files, overlapping
/// ranges); `sources` names them.
[[nodiscard]] Journal canonical(std::span<const Journal> parts, std::span<const std::string> sources);

/// What one of several journals has that their canonical form has not.
struct JournalPart {
  std::vector<MetaRecord> meta;  ///< in the order it was written
  /// Its subjects, each with its worst utilisation; nothing where none of its cases was held or violated.
  std::map<Subject, std::optional<double>> worst;
  bool torn = false;  ///< as Journal::torn
};

struct MergedJournals {
  Journal journal;                 ///< canonical
  std::vector<JournalPart> parts;  ///< in the order of the files
};

/// canonical() of journal files, or run.jsonl of runs' folders, in the memory of the result and not of the parts: each
/// is read twice, a line at a time. Throws UsageError as read_journal and canonical do.
[[nodiscard]] MergedJournals merge_journals(std::span<const std::filesystem::path> files_or_folders);

/// The text of a journal: run, kernels, findings, batches (no meta).
[[nodiscard]] std::string to_text(const Journal& journal);

/// Appends to run.jsonl, a write(2) per line on O_APPEND. One thread at a time.
class JournalWriter {
 public:
  /// Opens or creates the file, locks it against a second run in the same folder, and cuts off a torn last line. Throws
  /// UsageError.
  explicit JournalWriter(const std::filesystem::path& file);
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  /// Throws UsageError when the line could not be written whole; what stood before is left as it was.
  template <class Record>
  void append(const Record& record) {
    append_line(to_line(record));
  }
  /// Asks the system to put everything on the disk.
  void sync();

 private:
  void append_line(std::string_view line);
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace attest
