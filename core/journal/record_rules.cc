#include "core/journal/record_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/measure/bins.h"

namespace attest {
namespace {

constexpr std::string_view cases_folder = "cases/", case_extension = ".safetensors";

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool is_plain_name_of(std::string_view name, std::size_t most) {
  return !name.empty() && name.size() <= most && name.front() != '.' && std::ranges::all_of(name, is_plain);
}

[[noreturn]] void refuse(const BatchRecord& batch, std::string_view why) {
  throw BadLine(fmt::format("counts the cases {} to {} of {} on {} wrong: {}", batch.first_k, batch.last_k,
                            in_quotes(batch.subject.property), in_quotes(batch.subject.kernel), why));
}

/// Counts taken from a whole, without a sum that could leave the range.
class Whole {
 public:
  explicit Whole(std::int64_t size) : rest_(size) {}
  /// False where less is left.
  bool take(std::int64_t count) {
    if (count < 0 || count > rest_) return false;
    rest_ -= count;
    return true;
  }
  /// Of few counts: in one pass without a branch, for a batch has a thousand of them.
  template <class Counts>
  bool take_all(const Counts& counts) {
    std::uint64_t any = 0, sum = 0;
    for (const std::int64_t count : counts) {
      any |= static_cast<std::uint64_t>(count);
      sum += static_cast<std::uint64_t>(count);
    }
    // None is negative, and up to 256 of them make no more than 2^63.
    return any >> 55U == 0 && take(static_cast<std::int64_t>(sum));
  }
  [[nodiscard]] bool used_up() const { return rest_ == 0; }

 private:
  std::int64_t rest_;
};

/// k below `end` that the shard takes.
std::int64_t taken_below(std::int64_t end, const Shard& shard) {
  return end > shard.index ? (end - shard.index - 1) / shard.count + 1 : 0;
}

void require_reasons(const BatchRecord& batch) {
  struct Of {
    Outcome outcome;
    Whole whole;
  };
  const Tally& tally = batch.tally;
  std::array<Of, 3> outcomes{Of{Outcome::skipped, Whole(tally.skipped)}, Of{Outcome::excused, Whole(tally.excused)},
                             Of{Outcome::inconclusive, Whole(tally.inconclusive)}};
  for (const auto& [reason, count] : tally.reasons) {
    const auto of = std::ranges::find(outcomes, reason.outcome, &Of::outcome);
    if (of == outcomes.end()) refuse(batch, fmt::format("{} is a reason for no outcome", in_quotes(reason.text())));
    if (!of->whole.take(count)) refuse(batch, fmt::format("more reasons than {} cases", name_of(of->outcome)));
  }
  for (const Of& one : outcomes)
    if (!one.whole.used_up()) refuse(batch, fmt::format("fewer reasons than {} cases", name_of(one.outcome)));
}

bool is_own(const BatchRecord& batch, std::int64_t k) {
  return k >= batch.first_k && k < batch.last_k && batch.shard.takes(k);
}

/// Journals of before do not say which cases were violated, so a run that resumed one says it of some.
void require_violations(const BatchRecord& batch) {
  const std::vector<std::int64_t>& ks = batch.tally.violated_k;
  if (ks.empty()) return;
  const auto all = static_cast<std::size_t>(batch.tally.violated);
  if (ks.size() > std::min(all, violations_kept))
    refuse(batch, fmt::format("\"violated_k\" names {} of {} violated cases", ks.size(), all));
  if (std::ranges::adjacent_find(ks, std::ranges::greater_equal()) != ks.end())
    refuse(batch, "\"violated_k\" does not ascend");
  if (!std::ranges::all_of(ks, [&](std::int64_t k) { return is_own(batch, k); }))
    refuse(batch, "a case of \"violated_k\" is none of the batch");
}

void require_worst(const BatchRecord& batch) {
  const Tally& tally = batch.tally;
  if (tally.judged() == 0) {
    if (tally.worst_k != -1 || tally.worst_utilisation != 0)
      refuse(batch, "it has a worst case, and none was held or violated");
    return;
  }
  if (!is_own(batch, tally.worst_k)) refuse(batch, fmt::format("\"worst_k\" is {}", tally.worst_k));
  const auto counted = std::ranges::find_if(tally.histogram.rbegin(), tally.histogram.rend(),
                                            [](std::int64_t count) { return count > 0; });
  const auto last = static_cast<std::ptrdiff_t>(tally.histogram.rend() - counted) - 1;
  const std::ptrdiff_t distance = last - static_cast<std::ptrdiff_t>(tally_bin(tally.worst_utilisation));
  // Journals of before have an exact power of two in the bin above.
  if (distance < 0 || distance > 1) refuse(batch, "\"worst\" is not in the last bin of \"histogram\"");
}

/// Journals of before do not say which case had the worst error.
void require_worst_of_class(const BatchRecord& batch, const ErrorCell& cell) {
  if (!is_own(batch, cell.worst_k) || (cell.error_k != -1 && !is_own(batch, cell.error_k)))
    refuse(batch, "a worst case of \"errors\" is none of the batch");
  if (std::max(cell.worst_normal, cell.worst_subnormal) != cell.worst_utilisation)
    refuse(batch, "neither of a class's two kinds of elements in \"errors\" has its worst utilisation");
}

void require_errors(const BatchRecord& batch) {
  const Tally& tally = batch.tally;
  Whole cases(tally.judged());
  std::array<std::int64_t, key_classes> of_keys{};
  std::int64_t elements = 0;
  for (const auto& [key, cell] : tally.errors.cells) {
    if (!cases.take(cell.cases)) refuse(batch, "\"errors\" has more cases than were held or violated");
    of_keys[key.keys] += cell.cases;
    Whole of_cell(cell.elements);
    if (!of_cell.take_all(cell.histogram) || !of_cell.used_up())
      refuse(batch, "a histogram of \"errors\" does not add up to its elements");
    require_worst_of_class(batch, cell);
    if (__builtin_add_overflow(elements, cell.elements, &elements)) refuse(batch, "\"errors\" has too many elements");
  }
  for (const auto& [keys, cell] : tally.errors.ordinary) {
    if (cell.cases > of_keys[keys]) refuse(batch, "\"errors\" has more ordinary cases than cases");
    require_worst_of_class(batch, cell);
  }
  for (const auto& [key, worst] : tally.errors.scores) {
    if (!Whole(of_keys[key.first]).take(worst.cases)) refuse(batch, "\"errors\" has more kinds of scores than cases");
    of_keys[key.first] -= worst.cases;
  }
  Whole signs(elements);
  if (!signs.take_all(tally.errors.signs[0]) || !signs.take_all(tally.errors.signs[1]) || !signs.used_up())
    refuse(batch, "\"signs\" of \"errors\" do not add up to its elements");
}

void require_shapes(const BatchRecord& batch) {
  const Tally& tally = batch.tally;
  const ShapeCount all = sum_of(tally.shapes.of(ShapeFacet::lengths));
  if (all.judged > tally.judged()) refuse(batch, "\"shapes\" has more judged cases than were held or violated");
  if (all.unjudged > tally.cases() - tally.judged()) refuse(batch, "\"shapes\" has more cases than were not judged");
}

void require_alarm(const BatchRecord& batch, const RunRecord& run) {
  const AlarmTally& alarm = *batch.tally.alarm;
  if (!(run.alarm > 0)) refuse(batch, "it has an alarm, and the run asked for none");
  const Alarm& all = alarm.all;
  const bool counted = all.beyond <= all.elements && alarm.cases <= all.beyond && alarm.cases <= batch.tally.cases() &&
                       (alarm.cases > 0) == (all.beyond > 0);
  if (!counted) refuse(batch, "the elements and cases of its alarm do not add up");
  const bool placed = all.elements > 0 ? is_own(batch, alarm.worst_k) : alarm.worst_k == -1 && all.worst == 0;
  if (!placed) refuse(batch, fmt::format("\"worst_k\" of its alarm is {}", alarm.worst_k));
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return is_plain_name_of(name, 100);
}

bool is_case_file(std::string_view path) {
  if (!path.starts_with(cases_folder) || !path.ends_with(case_extension)) return false;
  path.remove_prefix(cases_folder.size());
  if (path.size() <= case_extension.size()) return false;
  return is_plain_name_of(path.substr(0, path.size() - case_extension.size()), 240);
}

void require_adds_up(const BatchRecord& batch, const RunRecord& run) {
  const Tally& tally = batch.tally;
  Whole cases(taken_below(batch.last_k, batch.shard) - taken_below(batch.first_k, batch.shard));
  const std::array outcomes{tally.held, tally.violated, tally.skipped, tally.excused, tally.inconclusive};
  if (!cases.take_all(outcomes) || (run.case_files.empty() && !cases.used_up()))
    refuse(batch, "held, violated, skipped, excused and inconclusive do not add up to its cases");
  const std::int64_t judged = tally.judged();
  Whole level(judged), histogram(judged);
  if (!level.take_all(tally.level) || !level.used_up())
    refuse(batch, "\"level\" does not add up to the cases held and violated");
  if (!histogram.take_all(tally.histogram) || !histogram.used_up())
    refuse(batch, "\"histogram\" does not add up to the cases held and violated");
  require_reasons(batch);
  require_worst(batch);
  require_violations(batch);
  if (tally.bits_compared > 0 && judged == 0) refuse(batch, "\"same_bits\" of no case");
  for (const auto& [word, count] : tally.drawn) {
    if (count > judged || !run.case_files.empty())
      refuse(batch, fmt::format("{} of \"drawn\" is in more cases than were drawn", in_quotes(word)));
  }
  if (!tally.errors.empty()) require_errors(batch);
  if (!tally.shapes.empty()) require_shapes(batch);
  if (tally.alarm) require_alarm(batch, run);
}

}  // namespace attest
