#include "reports/results/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>

#include "core/kernel/limits.h"
#include "core/kernel/manifest.h"
#include "core/kernels/kernel_files.h"
#include "core/support/errors.h"
#include "core/support/folder.h"
#include "core/support/json_writer.h"
#include "core/support/visible.h"
#include "core/value/dtype.h"
#include "fuzz/campaign.h"
#include "properties/road/offered.h"
#include "reports/results/cause_words.h"
#include "reports/results/coverage.h"
#include "reports/results/summary_words.h"
#include "reports/run_folder/changed_kernel.h"
#include "reports/run_folder/run_folder.h"

namespace attest {

std::string name_of_kernel(const Journal& journal, const std::string& id) {
  const auto record = std::ranges::find(journal.kernels, id, &KernelRecord::id);
  if (!is_from_outside(id) || record == journal.kernels.end() || record->manifest.empty()) return id;
  const auto manifest = nlohmann::json::parse(record->manifest, nullptr, /*allow_exceptions=*/false);
  const auto name = manifest.find("name");
  return name != manifest.end() && name->is_string() ? name->get<std::string>() : id;
}

std::optional<Manifest> manifest_of(const Journal& journal, const std::string& id) {
  const auto record = std::ranges::find(journal.kernels, id, &KernelRecord::id);
  if (record == journal.kernels.end()) return std::nullopt;
  try {
    return parse_manifest(record->manifest, "the journal's manifest");
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

namespace {

int rank_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::violated:
      return 3;
    case Outcome::inconclusive:
      return 2;
    case Outcome::held:
      return 1;
    case Outcome::skipped:
    case Outcome::excused:
      return 0;
  }
  return 0;
}

std::string reason_of(const PropertySummary& property) {
  if (property.verdict == Outcome::held) return {};
  if (property.verdict == Outcome::violated) {
    // Violated ones come first.
    const bool saved = !property.findings.empty() && property.findings.front().verdict.outcome == Outcome::violated;
    return saved ? property.findings.front().verdict.reason : "violated";
  }
  if (property.tally.cases() == 0) return "no case was reached";
  const bool undecided = property.tally.inconclusive > 0;
  const auto counts = [&](const std::pair<const Reason, std::int64_t>& reason) {
    return undecided == (reason.first.outcome == Outcome::inconclusive) ? reason.second : -1;
  };
  const auto commonest = std::ranges::max_element(property.tally.reasons, {}, counts);
  if (commonest == property.tally.reasons.end()) return {};
  // How many cases a property would have had that does not apply is no measure of anything.
  if (!undecided && !was_offered(commonest->first)) return commonest->first.text();
  return fmt::format("{} ({} of {} cases)", commonest->first.text(), commonest->second, property.tally.cases());
}

Limits limits_of(const Manifest& m) {
  const AllowedExtents widths = allowed_head_dims(m);
  return {m.max_queries, m.max_keys, widths.list.empty() ? widths.most : widths.list.back(), m.max_heads};
}

/// Too few cases judged say that it is not known whether it holds.
void require_enough(PropertySummary& property) {
  if (property.verdict != Outcome::held && property.verdict != Outcome::skipped) return;
  if (std::string why = hardly_tested(property.tally); !why.empty()) {
    property.verdict = Outcome::inconclusive;
    property.hardly_tested = true;
    property.reason = std::move(why);
  } else if (why = hardly_offered(property.tally); property.verdict == Outcome::held && !why.empty()) {
    property.verdict = Outcome::skipped;
    property.reason = std::move(why);
  }
}

DrawnCounts drawn_in(const KernelSummary& kernel) {
  DrawnCounts drawn;
  for (const PropertySummary& property : kernel.properties)
    for (const auto& [word, count] : property.tally.drawn) drawn[word] += count;
  return drawn;
}

void require_enough_shapes_and_forms(KernelSummary& kernel, const std::optional<Manifest>& manifest) {
  std::map<Reason, std::int64_t> reasons;
  for (const PropertySummary& property : kernel.properties)
    for (const auto& [reason, count] : property.tally.reasons) reasons[reason] += count;
  kernel.left_out = shapes_left_out(kernel.shapes(), reasons);
  if (const auto dtype = named<DType>(kernel.dtype); dtype && manifest) {
    const std::string forms = forms_left_out(*manifest, *dtype, drawn_in(kernel), reasons);
    if (!forms.empty()) kernel.left_out += (kernel.left_out.empty() ? "" : "; ") + forms;
  }
  if (!kernel.left_out.empty()) kernel.verdict = worse(kernel.verdict, Outcome::inconclusive);
}

/// f64 before f32 before f16: the order of the enumeration, unknown names last.
int dtype_rank(const std::string& name) {
  const std::optional<DType> dtype = named<DType>(name);
  return dtype ? static_cast<int>(*dtype) : 99;
}

template <class Items, class Count>
std::int64_t sum_of(const Items& items, Count count) {
  std::int64_t sum = 0;
  for (const auto& one : items) sum += std::invoke(count, one);
  return sum;
}

}  // namespace

Outcome verdict_of(const Tally& tally) {
  if (tally.violated > 0) return Outcome::violated;
  if (tally.inconclusive > 0) return Outcome::inconclusive;
  if (tally.held > 0) return Outcome::held;
  // What a kernel does not offer is no doubt about it, though a few of the cases would have been excused before they
  // got as far as being skipped.
  return tally.skipped > tally.excused ? Outcome::skipped : Outcome::inconclusive;
}

Outcome worse(Outcome a, Outcome b) {
  return rank_of(a) >= rank_of(b) ? a : b;
}

std::int64_t KernelSummary::cases() const {
  return sum_of(properties, [](const PropertySummary& one) { return one.tally.cases(); });
}

std::int64_t KernelSummary::offered() const {
  return sum_of(properties, &PropertySummary::offered);
}

ShapeCounts KernelSummary::shapes() const {
  ShapeCounts all;
  for (const PropertySummary& property : properties) all.merge(property.tally.shapes);
  return all;
}

std::int64_t KernelSummary::excused() const {
  return sum_of(properties, [](const PropertySummary& one) { return one.tally.excused; });
}

std::int64_t KernelSummary::judged() const {
  return sum_of(properties, [](const PropertySummary& one) { return one.tally.judged(); });
}

std::optional<Reach> KernelSummary::reach() const {
  std::optional<Reach> all;
  for (const PropertySummary& property : properties) {
    if (!property.tally.reach) continue;
    if (!all) all.emplace();
    all->merge(*property.tally.reach);
  }
  return all;
}

bool KernelSummary::reach_unknown() const {
  return !reach() && std::ranges::any_of(properties, [](const PropertySummary& p) { return p.tally.reach_unknown(); });
}

std::int64_t KernelSummary::bits_compared() const {
  return std::ranges::count_if(properties, [](const PropertySummary& p) { return p.tally.bits_compared > 0; });
}

std::int64_t KernelSummary::bits_satisfied() const {
  return std::ranges::count_if(properties, [](const PropertySummary& p) {
    return p.tally.bits_compared > 0 && p.tally.bits_agreed == p.tally.bits_compared;
  });
}

const PropertySummary* KernelSummary::worst() const {
  const PropertySummary* found = nullptr;
  for (const PropertySummary& property : properties) {
    if (property.tally.worst_k < 0 || property.statistical) continue;
    if (found == nullptr || property.tally.worst_utilisation > found->tally.worst_utilisation) found = &property;
  }
  return found;
}

std::int64_t Summary::cases() const {
  return sum_of(kernels, &KernelSummary::cases);
}

std::int64_t Summary::offered() const {
  return sum_of(kernels, &KernelSummary::offered);
}

std::int64_t Summary::judged() const {
  return sum_of(kernels, &KernelSummary::judged);
}

std::int64_t Summary::excused() const {
  return sum_of(kernels, &KernelSummary::excused);
}

DrawnTotals Summary::drawn() const {
  DrawnTotals totals;
  for (const KernelSummary& kernel : kernels)
    for (const PropertySummary& property : kernel.properties) totals.add(property.name, kernel.dtype, property.tally);
  return totals;
}

std::vector<std::string> Summary::judged_by_none() const {
  std::map<std::string, std::int64_t> judged;
  for (const KernelSummary& kernel : kernels)
    for (const PropertySummary& property : kernel.properties) judged[property.name] += property.tally.judged();
  std::vector<std::string> none;
  for (const auto& [name, cases] : judged)
    if (cases == 0) none.push_back(name);
  return none;
}

Alarm Summary::alarms() const {
  Alarm all;
  for (const KernelSummary& kernel : kernels)
    for (const PropertySummary& property : kernel.properties)
      if (property.tally.alarm) all.merge(property.tally.alarm->all);
  return all;
}

std::vector<std::pair<std::string, std::int64_t>> commonest(const std::map<Reason, std::int64_t>& reasons) {
  std::vector<std::pair<std::string, std::int64_t>> sorted;
  sorted.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) sorted.emplace_back(reason.text(), count);
  std::ranges::sort(sorted, {},
                    [](const auto& one) { return std::pair<std::int64_t, std::string_view>(-one.second, one.first); });
  return sorted;
}

Summary summarise(const Journal& journal, const std::filesystem::path& folder) {
  Summary summary;
  summary.seed = journal.run ? journal.run->seed : 1;
  if (journal.run) summary.shapes = journal.run->shapes;
  summary.alarm = journal.run ? journal.run->alarm : 0;
  if (journal.run) summary.against = journal.run->against;
  summary.interrupted = journal.interrupted();
  summary.unfinished = !journal.meta.empty() && journal.unfinished();
  for (const KernelRecord& kernel : journal.kernels) {
    if (!kernel.not_started.empty()) summary.not_started.push_back(kernel);
  }
  std::set<KernelNote> notes;
  for (const MetaRecord& record : journal.meta) {
    const auto kernel = record.facts.find("kernel"), text = record.facts.find("text");
    if (record.event == "note" && kernel != record.facts.end() && text != record.facts.end())
      notes.insert({kernel->second, text->second});
  }
  for (const KernelRecord& kernel : journal.kernels)
    if (std::string text = changed_text(kernel); !text.empty()) notes.insert({kernel.id, std::move(text)});
  if (std::string text = changed_program_text(journal.meta); !text.empty())
    notes.insert({std::string("attest"), std::move(text)});
  summary.notes.assign(notes.begin(), notes.end());
  const auto whole = [](const BatchRecord& batch) { return batch.shard == Shard{}; };
  if (std::ranges::all_of(journal.batches, whole)) {
    summary.asked = asked_in(journal.meta);
    summary.drawn_whole = !journal.run || (journal.run->case_files.empty() && !journal.run->fuzz);
  }
  summary.time_over = journal.time_over();
  const std::optional<Folder> files = Folder::if_there(folder);
  std::map<std::tuple<std::string, int, std::string>, std::map<std::string, PropertySummary>> by_kernel;
  for (const BatchRecord& batch : journal.batches) {
    const Subject& subject = batch.subject;
    PropertySummary& property = by_kernel[{subject.kernel, dtype_rank(subject.dtype), subject.dtype}][subject.property];
    property.name = subject.property;
    property.tally.merge(batch.tally);
  }
  for (const FindingRecord& finding : journal.findings) {
    const Subject& subject = finding.subject;
    const auto kernel = by_kernel.find({subject.kernel, dtype_rank(subject.dtype), subject.dtype});
    // A finding whose batch was not finished is not counted, so it is not shown.
    if (kernel == by_kernel.end() || !kernel->second.contains(subject.property)) continue;
    PropertySummary& property = kernel->second[subject.property];
    const bool violated = finding.verdict.outcome == Outcome::violated;
    if ((violated ? property.tally.violated : property.tally.inconclusive) > 0) property.findings.push_back(finding);
  }
  std::map<std::string_view, const Property*> rows;
  for (const Property* row : catalogue()) rows[row->name] = row;
  for (auto& [key, properties] : by_kernel) {
    const auto& [id, rank, dtype] = key;
    const auto record = std::ranges::find(journal.kernels, id, &KernelRecord::id);
    const bool masks_ruled_out = record != journal.kernels.end() && rules_masks_out(record->manifest);
    KernelSummary kernel{
        .id = id, .name = name_of_kernel(journal, id), .dtype = dtype, .properties = {}, .explanations = {}};
    const std::optional<Manifest> manifest = manifest_of(journal, id);
    if (manifest) {
      kernel.limits = limits_of(*manifest);
      kernel.tiles = manifest->tiles;
      kernel.version = manifest->version;
    }
    for (auto& [name, property] : properties) {
      property.verdict = verdict_of(property.tally);
      const auto row = rows.find(name);
      property.statistical = row != rows.end() && row->second->is_statistical();
      property.offered = offered_cases(property.tally);
      property.reason = reason_of(property);
      // A run that ended early need not have come to what the manifest says.
      if (property.tally.cases() == 0 && manifest && row != rows.end())
        if (std::string why = row->second->misses_of(*manifest); !why.empty())
          property.reason = std::move(why), property.ruled_out = true;
      if (summary.drawn_whole) require_enough(property);
      const auto saved = [&](const char* which) {
        return files ? saved_case(*files, {name, id, dtype}, kernel.name, which) : std::string();
      };
      if (property.tally.worst_k >= 0) property.worst_case = saved("worst");
      if (property.tally.alarm && property.tally.alarm->all.beyond > 0) property.alarm_case = saved("alarm");
      // A property's name says there only whose cases they are.
      if (summary.against.empty())
        for (Scarce& one : scarce_of({name, kernel.name, dtype}, property.tally, masks_ruled_out)) {
          const bool no_form = manifest && manifest->causal.empty() && one.what == "a causal form";
          one.ruled_out = one.ruled_out || (no_form && one.cases == 0);
          summary.scarce.push_back(std::move(one));
        }
      kernel.verdict = worse(kernel.verdict, property.verdict);
      kernel.properties.push_back(std::move(property));
    }
    if (summary.drawn_whole) require_enough_shapes_and_forms(kernel, manifest);
    if (manifest && (!journal.run || journal.run->case_files.empty())) {
      // Of a variant that no property of the run speaks of nothing is said, whatever the manifest offers.
      Manifest asked = *manifest;
      std::erase_if(asked.variants, [&, &of = properties](const auto& variant) {
        return std::ranges::none_of(of, [&](const auto& property) {
          const auto row = rows.find(property.first);
          return row == rows.end() ||
                 (row->second->operation != Operation::multihead && row->second->holds_under(variant.first));
        });
      });
      kernel.combinations = combinations_in(drawn_in(kernel), asked);
      if (!kernel.combinations.empty()) kernel.pairs = pairs_offered(asked);
    }
    if (kernel.verdict == Outcome::violated) {
      kernel.explanations = explanations_in(journal, id, dtype);
      if (std::ranges::find(summary.causes, id, &Cause::kernel) == summary.causes.end())
        std::ranges::copy(causes_in(journal, id), std::back_inserter(summary.causes));
    }
    summary.verdict = worse(summary.verdict, kernel.verdict);
    summary.kernels.push_back(std::move(kernel));
  }
  return summary;
}

namespace {

/// Nothing where nothing was held against the exact answer.
void add_reach(JsonWriter& json, const std::optional<Reach>& reach, bool unknown) {
  if (reach) write_reach(json.key("reach"), *reach);
  if (unknown) json.member("reach", "unknown");
}

void write_drawn_totals(JsonWriter& json, const Summary& summary) {
  const DrawnTotals totals = summary.drawn();
  if (totals.run.counts.empty()) return;
  const auto write = [&](const DrawnTotals::Part& part) {
    json.member("judged", part.judged);
    write_drawn(json.key("cases"), part.counts);
    json.end_object();
  };
  json.key("drawn").begin_object().key("run").begin_object();
  write(totals.run);
  json.key("properties").begin_array();
  for (const auto& [subject, part] : totals.by_property) {
    json.begin_object().member("name", subject.first).member("dtype", subject.second);
    write(part);
  }
  json.end_array().end_object().key("warnings").begin_array();
  for (const Scarce& one : summary.scarce) {
    json.begin_object().member("property", one.property).member("kernel", one.kernel).member("dtype", one.dtype);
    json.member("wants", one.what).member("cases", one.cases).member("judged", one.judged);
    json.member("enough", one.enough).member("ruled_out", one.ruled_out).end_object();
  }
  json.end_array();
}

/// By the words of the classes; nothing where shapes were not recorded.
void write_shape_words(JsonWriter& json, const ShapeCounts& shapes) {
  if (shapes.empty()) return;
  json.key("shapes").begin_object();
  if (shapes.largest) write_reach(json.key("largest"), *shapes.largest);
  for (std::size_t i = 0; i < shapes.facets.size(); ++i) {
    const auto facet = static_cast<ShapeFacet>(i);
    json.key(name_of(facet)).begin_object();
    for (const auto& [index, count] : shapes.facets[i]) {
      json.key(class_words(facet, index)).begin_object().member("judged", count.judged);
      if (count.unjudged > 0) json.member("unjudged", count.unjudged);
      json.end_object();
    }
    json.end_object();
  }
  json.end_object();
}

/// Nothing of a kernel that lists no variant.
void write_combinations(JsonWriter& json, const KernelSummary& kernel) {
  if (kernel.combinations.empty()) return;
  json.key("combinations").begin_array();
  for (const auto& [one, judged] : kernel.combinations) {
    json.begin_object().member("variants", one.variants).member("placing", name_of(one.placing));
    json.member("grouped", one.grouped).member("mask", name_of(one.masking)).member("judged", judged).end_object();
  }
  json.end_array();
}

/// Nothing where no alarm was asked for.
void write_alarm(JsonWriter& json, const PropertySummary& property) {
  if (!property.tally.alarm) return;
  json.key("alarm")
      .begin_object()
      .member("elements", property.tally.alarm->all.elements)
      .member("beyond", property.tally.alarm->all.beyond)
      .member("uncovered", property.tally.alarm->all.uncovered)
      .member("cases", property.tally.alarm->cases)
      .member("worst", property.tally.alarm->all.worst)
      .member("case", property.alarm_case)
      .end_object();
}

void write_property(JsonWriter& json, const PropertySummary& property) {
  const Tally& tally = property.tally;
  json.begin_object()
      .member("name", property.name)
      .member("verdict", name_of(property.verdict))
      .member("cases", tally.cases())
      .member("offered", property.offered)
      .member("held", tally.held)
      .member("violated", tally.violated)
      .member("skipped", tally.skipped)
      .member("excused", tally.excused)
      .member("inconclusive", tally.inconclusive);
  json.key("worst").begin_object().member("utilisation", tally.worst_utilisation).member("case", property.worst_case);
  json.end_object().member("reason", property.reason);
  add_reach(json, tally.reach, tally.reach_unknown());
  if (tally.bits_compared > 0) {
    json.key("bits")
        .begin_object()
        .member("agreed", tally.bits_agreed)
        .member("compared", tally.bits_compared)
        .end_object();
  }
  write_alarm(json, property);
  json.key("findings").begin_array();
  for (const FindingRecord& finding : property.findings) {
    json.begin_object().member("k", finding.k).member("class", finding.kind()).member("case", finding.case_file);
    json.member("utilisation", finding.verdict.utilisation).member("reason", finding.verdict.reason).end_object();
  }
  json.end_array().end_object();
}

void write_kernel(JsonWriter& json, const KernelSummary& kernel) {
  json.begin_object().member("name", kernel.name).member("id", kernel.id).member("dtype", kernel.dtype);
  json.member("verdict", name_of(kernel.verdict));
  add_reach(json, kernel.reach(), kernel.reach_unknown());
  if (!kernel.left_out.empty()) json.member("left_out", kernel.left_out);
  write_shape_words(json, kernel.shapes());
  write_combinations(json, kernel);
  json.key("properties").begin_array();
  for (const PropertySummary& property : kernel.properties) write_property(json, property);
  json.end_array();
  if (!kernel.explanations.empty()) {
    json.key("explanations").begin_array();
    for (const KernelExplanation& one : kernel.explanations) {
      json.begin_object().member("text", one.text);
      json.key("changes").raw(one.changes.empty() ? "[]" : visible_json(one.changes));
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

/// What is known of it.
std::string told_json(const CauseWords& words) {
  JsonWriter json;
  json.begin_object();
  const std::pair<std::string_view, const std::string&> members[] = {
      {"of", words.of},         {"what", words.what},         {"why", words.why},
      {"when", words.when},     {"smallest", words.smallest}, {"found", words.found},
      {"right", words.right},   {"fails", words.fails},       {"replay", words.replay},
      {"case", words.case_file}};
  for (const auto& [name, text] : members)
    if (!text.empty()) json.member(name, text);
  return json.end_object().text();
}

}  // namespace

std::string to_json(const Summary& summary) {
  return to_json(summary, {});
}

std::string to_json(const Summary& summary, std::span<const CauseWords> told, std::string_view concluded) {
  JsonWriter json;
  json.begin_object().member("schema", "attest-summary/1").member("verdict", name_of(summary.verdict));
  json.member("seed", summary.seed).member("interrupted", summary.interrupted);
  if (!summary.against.empty()) json.member("against", summary.against);
  const Concerned concerned = concerned_in(summary);
  json.key("coverage").begin_object().member("properties", concerned.properties).member("judged", concerned.judged);
  json.member("offered_cases", summary.offered()).member("judged_cases", summary.judged());
  json.member("never_judged", never_judged(summary)).member("quick_look", quick_look(summary));
  if (const Pairs pairs = pairs_in(summary); !pairs.never.empty()) {
    json.key("never_together").begin_array();
    for (const auto& [one, other] : pairs.never) json.begin_array().value(one).value(other).end_array();
    json.end_array();
  }
  json.end_object();
  if (summary.alarm > 0) {
    const Alarm all = summary.alarms();
    json.key("alarm").begin_object().member("p", summary.alarm).member("elements", all.elements);
    json.member("beyond", all.beyond).member("uncovered", all.uncovered);
    json.member("false_alarms_expected", summary.false_alarms_expected()).end_object();
  }
  json.key("kernels").begin_array();
  for (const KernelSummary& kernel : summary.kernels) write_kernel(json, kernel);
  json.end_array().key("causes").begin_array();
  for (const Cause& cause : summary.causes) {
    std::string members = to_json(cause);
    if (const auto words = std::ranges::find(told, &cause, &CauseWords::cause); words != told.end()) {
      members.pop_back();
      members += fmt::format(",\"told\":{}}}", told_json(*words));
    }
    json.raw(members);
  }
  json.end_array();
  write_drawn_totals(json, summary);
  json.key("not_started").begin_array();
  for (const KernelRecord& kernel : summary.not_started) {
    json.begin_object().member("id", kernel.id).member("reason", kernel.not_started).end_object();
  }
  json.end_array().key("judged_on_no_kernel").begin_array();
  for (const std::string& name : summary.judged_by_none()) json.value(name);
  json.end_array().key("notes").begin_array();
  for (const KernelNote& note : summary.notes)
    json.begin_object().member("kernel", note.kernel).member("text", note.text).end_object();
  json.end_array();
  if (!concluded.empty()) json.key("concluded").raw(concluded);
  return json.end_object().text() + '\n';
}

}  // namespace attest
