#include "reports/commands/run_end.h"

#include <map>
#include <new>
#include <set>

#include "properties/road/watched_kernel.h"
#include "reports/causes/explanations.h"
#include "reports/commands/run_kernels.h"
#include "reports/results/saved_journal.h"
#include "reports/run/interrupt.h"
#include "reports/run_folder/version.h"

namespace attest {
namespace {

/// The last records of a run, as they are written and as whoever reads the journal finds them.
class LastRecords {
 public:
  explicit LastRecords(JournalWriter& writer) : writer_(writer) {}
  template <class Record>
  void append(const Record& record) {
    writer_.append(record);
    lines_ += to_line(record);
  }
  [[nodiscard]] const std::string& lines() const { return lines_; }

 private:
  JournalWriter& writer_;
  std::string lines_;
};

/// Subjects of the plan without a single batch get an empty one, so that the summary shows what was not reached.
void note_unreached(const Plan& plan, const Journal& journal, LastRecords& last) {
  std::set<Subject> reached;
  for (const BatchRecord& batch : journal.batches) reached.insert(batch.subject);
  for (const Cell& cell : cells_of(plan)) {
    for (const std::size_t index : cell.kernels) {
      const Subject subject{std::string(cell.property->name), plan.kernels[index]->id(),
                            std::string(name_of(cell.dtype))};
      if (!reached.contains(subject)) last.append(BatchRecord{subject, 0, 0, {}, {}});
    }
  }
}

}  // namespace

void explain_findings(const Journal& journal, const RunFolder& folder, std::span<const std::unique_ptr<Kernel>> kernels,
                      const HowDrawn* draw, const std::function<void(const MetaRecord&)>& append) {
  try {
    for (const Cause& one : causes_of(journal, folder, kernels, draw)) append(record_of(one));
    for (const KernelExplanation& one : explanations_of(journal, folder, kernels)) append(record_of(one));
  } catch (const Abandoned&) {
    return;
  } catch (const std::bad_alloc&) {
    return;
  }
}

Journal finish_journal(const Plan& plan, const Road& road, const RunFolder& folder, JournalWriter& writer,
                       Ending ending, bool compared, std::chrono::steady_clock::time_point start) {
  // A journal has a line for every batch: reading it takes a share of the run's time, so it is read once.
  Journal parts[] = {read_results(folder.path()), {}};
  auto& [journal, end] = parts;
  LastRecords last(writer);
  note_unreached(plan, journal, last);
  for (const MetaRecord& note : notes_on(plan.kernels)) last.append(note);
  if (ending != Ending::interrupted && !compared) {
    const HowDrawn draw{road, plan.seed, plan.shard};
    explain_findings(journal, folder, plan.kernels, plan.captured.empty() ? &draw : nullptr,
                     [&](const MetaRecord& record) { last.append(record); });
  }
  MetaRecord closing = end_record(start, ending == Ending::interrupted);
  if (ending == Ending::out_of_time) closing.facts["time_over"] = "yes";
  last.append(closing);
  writer.sync();
  const std::string sources[] = {folder.path().string(), folder.path().string()};
  end = parse_journal(stamped(to_line(*journal.run) + last.lines()), sources[1]);
  Journal whole = canonical(parts, sources);
  whole.meta = std::move(journal.meta);
  whole.meta.insert(whole.meta.end(), end.meta.begin(), end.meta.end());
  return whole;
}

void save_worst_cases(const Engine& engine, const Journal& journal) {
  std::map<Subject, Tally> tallies;
  for (const BatchRecord& batch : journal.batches) tallies[batch.subject].merge(batch.tally);
  for (const auto& [subject, tally] : tallies)
    engine.save_worst({.subject = subject, .first_k = 0, .last_k = 0, .shard = {}, .tally = tally});
}

}  // namespace attest
