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
// newline is what a killed writer left, and zero bytes are what a power cut left: readers end in front of them, and a
// writer that resumes cuts them off. Each line has a number and a checksum (journal_lines.h); those of the schema
// attest-journal/1 have neither.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/journal/journal_lines.h"
#include "core/journal/shape_counts.h"
#include "core/measure/bit_classes.h"
#include "core/measure/error_statistics.h"
#include "core/measure/verdict.h"
#include "core/oracle/oracle.h"
#include "core/value/tensor.h"

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

/// Violated cases whose k is kept per (property, kernel, dtype): those with the smallest. The rest is counted.
inline constexpr std::size_t violations_kept = 1000;

/// Alarms (verdict.h) over a range of k.
struct AlarmTally {
  Alarm all;
  std::int64_t cases = 0;     ///< with an element beyond the probabilistic bound
  std::int64_t worst_k = -1;  ///< the smallest k that attains all.worst; -1: no element was held against that bound

  void add(std::int64_t k, const Alarm& alarm);
  void merge(const AlarmTally& other);
  [[nodiscard]] bool operator==(const AlarmTally&) const = default;
};

/// Why cases were skipped, excused or not decided. Numbers before the first ';' (the case's own) read N, so that a
/// reason is a class and not a case.
struct Reason {
  Outcome outcome = Outcome::skipped;
  std::string why;

  /// "skipped: has N queries; the manifest's max_queries is 1", as journals have it and people read it.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool operator==(const Reason&) const = default;
  /// By the alphabet of text().
  [[nodiscard]] std::strong_ordering operator<=>(const Reason& other) const;
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
  /// The violated cases, ascending, the first violations_kept. Empty in journals of before they were kept.
  std::vector<std::int64_t> violated_k{};
  std::map<Reason, std::int64_t> reasons;  ///< cases that were neither held nor violated, by why
  std::optional<AlarmTally> alarm;         ///< nothing where no case had an alarm to raise, or none was asked for

  /// Over held and violated cases, as in Verdict: elements whose bits agreed, and that were compared, without a claim.
  std::int64_t bits_agreed = 0, bits_compared = 0;
  /// What was drawn, for held and violated cases alone: the words of a case are counted once each. "mask:padding" and
  /// so on are the generators' words, "bits:subnormal" and so on (BitClass) what the kernel was sent in q, k and v.
  /// Empty where the cases came from files.
  DrawnCounts drawn;
  /// Of judged cases whose errors were measured; empty in journals of before they were.
  ErrorTable errors;
  /// Of held and violated cases, as in Verdict: how far the kernel was held against the exact answer. Nothing where it
  /// never was, and in journals of before it was kept (reach_unknown).
  std::optional<Reach> reach;
  /// Of what shapes the cases were that the kernel was asked: judged ones, and those for which `add` was given a shape.
  /// Empty in journals of before they were counted.
  ShapeCounts shapes;

  /// `kinds`: the generator's words for the case, a space between two. `shape`: of the case; null where it was not the
  /// kernel's to answer, or is not known.
  void add(std::int64_t k, const Verdict& verdict, std::string_view kinds = {}, BitClasses bits = 0,
           const Extents* shape = nullptr);
  /// One more held or violated case has the word, "group:kind".
  void count_drawn(std::string_view word);
  /// Cases that have one of the words of `any_of`, a space between two, of which no case has two.
  [[nodiscard]] std::int64_t drawn_of(std::string_view any_of) const;
  /// `count` cases skipped for one reason.
  void skip(std::int64_t count, std::string_view reason);
  void merge(const Tally& other);
  /// Cases of every outcome.
  [[nodiscard]] std::int64_t cases() const { return held + violated + skipped + excused + inconclusive; }
  /// Cases that were held or violated.
  [[nodiscard]] std::int64_t judged() const { return held + violated; }
  /// The oracle judged cases, and the journal does not say of what extents: one of before.
  [[nodiscard]] bool reach_unknown() const { return !reach && level[1] + level[2] + level[3] > 0; }
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
  /// What was asked of the shapes of drawn cases (to_string of Shapes); empty: small cases only.
  std::string shapes{};
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
  /// SHA-256 of the files that it is of, by name (kernel_files.h). More than one of a file: it changed within the run,
  /// and somebody accepted that. Empty for a kernel of Attest's own, and in journals of before these were kept.
  std::map<std::string, std::set<std::string>> files{};
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

/// An element that a finding is about.
struct ComparedRecord {
  Shape shape;               ///< of the out or the gradient that it is an element of
  std::int64_t element = 0;  ///< flat row-major index
  std::int64_t keys = 0;     ///< N of that call
  double found = 0.0;
  std::optional<Enclosure> exact{};    ///< certified; nothing where it was not computed, or nothing is defined
  std::optional<Gradient> gradient{};  ///< nothing: out

  /// "out[0, 0, 2, 1]", "dk[0, 0, 2, 1]"
  [[nodiscard]] std::string place() const;
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
  std::string case_file;                   ///< relative to the run's folder, is_case_file()
  Verdict verdict;                         ///< of the saved case
  std::vector<ComparedRecord> compared{};  ///< of Verdict::compared
  std::optional<Repetition> repetition{};  ///< nothing where the saved case is violated by itself, each time

  /// What findings are sorted by: the name of the violation, or "inconclusive".
  [[nodiscard]] std::string_view kind() const;
};

/// What stands behind a row of the catalogue, at one level and about one subject; nothing of it is about rounding.
struct ProofRecord {
  std::string property;
  std::string
      level;  ///< "coq-all-shapes", "coq-not-compiled", "symbolic", "probabilistic", "abstract", "refuted", "tested", …
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
  bool torn = false;  ///< its end was not read, a torn last line or zero bytes, or, in a salvage, some of its lines
  std::vector<std::string> notes;  ///< what its reader is to be told of it, a line each, without the file's name

  /// The run was stopped before its end, or is under way, or was killed: no "end" follows the last "begin".
  [[nodiscard]] bool unfinished() const;
  /// The last "end" says it was interrupted.
  [[nodiscard]] bool interrupted() const;
  /// The last "end" says that its time was over before its cases were.
  [[nodiscard]] bool time_over() const;
};

/// The members of a Reach under the names that the contract gives them, in the order in which they are written.
inline constexpr std::array<std::pair<std::string_view, std::int64_t Reach::*>, 7> reach_members{
    {{"M", &Reach::queries},
     {"N", &Reach::keys},
     {"dk", &Reach::dk},
     {"dv", &Reach::dv},
     {"heads", &Reach::heads},
     {"kv_heads", &Reach::kv_heads},
     {"batch", &Reach::batch}}};
/// Writes it as {"M": 320, "N": 8192, …}.
void write_reach(JsonWriter& json, const Reach& reach);

/// Writes the counts as {"group": {"kind": 3, …}, …}.
void write_drawn(JsonWriter& json, const DrawnCounts& drawn);

/// One line with its newline, without number and checksum.
[[nodiscard]] std::string to_line(const RunRecord&);
[[nodiscard]] std::string to_line(const MetaRecord&);
[[nodiscard]] std::string to_line(const KernelRecord&);
[[nodiscard]] std::string to_line(const BatchRecord&);
[[nodiscard]] std::string to_line(const FindingRecord&);
[[nodiscard]] std::string to_line(const ProofRecord&);

/// What a property may be called, which becomes part of files' names: letters, digits, '.', '_' and '-', with no dot in
/// front, 100 at most.
[[nodiscard]] bool is_plain_name(std::string_view name);
/// "cases/NAME.safetensors" with a plain name of at most 240 characters: no other folder, none above, no hidden file.
[[nodiscard]] bool is_case_file(std::string_view path);

/// How journals are read.
struct JournalRules {
  /// Whether that is a property's name; empty: every plain name is one.
  std::function<bool(std::string_view)> is_property{};
  /// Leave out what is damaged, and note it, where a journal would be refused. Its first line must be sound.
  bool salvage = false;
};

/// Parses journal text. Throws UsageError "SOURCE, line 12: …" for a line that is whole and wrong: by its checksum, its
/// number, or its contents, which must add up.
[[nodiscard]] Journal parse_journal(std::string_view text, std::string_view source, const JournalRules& rules = {});
/// Reads a journal file, or run.jsonl of a run's folder. Throws UsageError naming it.
[[nodiscard]] Journal read_journal(const std::filesystem::path& file_or_folder, const JournalRules& rules = {});
/// Rewrites a journal of which lines are damaged to hold its sound lines alone, whole or not at all; one without damage
/// stays as it is. Gives the notes of what was dropped. Throws UsageError where nothing can be salvaged, and where a
/// run is writing it.
std::vector<std::string> salvage_journal(const std::filesystem::path& file, const JournalRules& rules);

/// The canonical form of one run given by any number of journals of its parts: meta dropped, everything sorted, each
/// finished batch once, shards that complete each other joined, neighbouring ranges joined, and the findings_kept
/// findings of smallest k per subject and outcome, violated ones first. Byte-equal for any jobs, shards, interruptions
/// and order. Throws UsageError where the parts are not of one run (another seed, other case files, overlapping
/// ranges, a kernel with another manifest or of other files); `sources` names them.
[[nodiscard]] Journal canonical(std::span<const Journal> parts, std::span<const std::string> sources);

/// What one of several journals has that their canonical form has not.
struct JournalPart {
  std::vector<MetaRecord> meta;  ///< in the order it was written
  /// Its subjects, each with its worst utilisation; nothing where none of its cases was held or violated.
  std::map<Subject, std::optional<double>> worst;
  bool torn = false;               ///< as Journal::torn
  std::vector<std::string> notes;  ///< as Journal::notes
};

struct MergedJournals {
  Journal journal;                 ///< canonical
  std::vector<JournalPart> parts;  ///< in the order of the files
};

/// canonical() of journal files, or run.jsonl of runs' folders, in the memory of the result and not of the parts: each
/// is read twice, a line at a time. Throws UsageError as read_journal and canonical do; with `accept_changed` not where
/// the parts are of different builds of a kernel.
[[nodiscard]] MergedJournals merge_journals(std::span<const std::filesystem::path> files_or_folders,
                                            const JournalRules& rules = {}, bool accept_changed = false);

/// The text of a journal: run, kernels, findings, batches (no meta).
[[nodiscard]] std::string to_text(const Journal& journal);

/// How what was written comes to the disk.
struct JournalSync {
  std::chrono::milliseconds every{1000};
  /// fdatasync(2), or what stands for it in a test: 0 or -1 with errno.
  std::function<int(int descriptor)> sync{};
};

/// Appends to run.jsonl, a write(2) per line on O_APPEND. One thread at a time. A thread of its own asks the system
/// every second to put on the disk what is new, so that a power cut takes no line that was written two seconds before
/// it, as far as the disk keeps its promises.
class JournalWriter {
 public:
  /// Opens or creates the file, locks it against a second run in the same folder, and cuts off a torn last line and
  /// zero bytes. Throws UsageError, also where whole lines stand behind zero bytes.
  explicit JournalWriter(const std::filesystem::path& file, JournalSync sync = {});
  ~JournalWriter();
  JournalWriter(const JournalWriter&) = delete;
  JournalWriter& operator=(const JournalWriter&) = delete;

  /// Throws UsageError when the line could not be written whole, what stood before is left as it was, and when an
  /// earlier line did not come to the disk.
  template <class Record>
  void append(const Record& record) {
    append_line(to_line(record));
  }
  /// Puts everything on the disk.
  void sync();
  /// The file was empty or of attest-journal/1, without checksums: the line of the run comes next.
  [[nodiscard]] bool wants_run() const { return wants_run_; }

 private:
  class Syncer;
  void append_line(std::string_view line);
  std::filesystem::path file_;
  int descriptor_ = -1;
  bool wants_run_ = true;
  LineStamper stamper_;
  std::unique_ptr<Syncer> syncer_;
};

}  // namespace attest
