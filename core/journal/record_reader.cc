#include "core/journal/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/journal/error_table_reader.h"
#include "core/journal/record_rules.h"
#include "core/support/names.h"
#include "core/value/dtype.h"

namespace attest {
namespace {

namespace dom = simdjson::dom;

std::string take_property(Members& members, const JournalRules& rules) {
  const std::string_view property = members.text("property");
  if (!is_plain_name(property))
    throw BadLine(fmt::format("has the property {}, which is no name", in_quotes(property)));
  if (rules.is_property && !rules.is_property(property))
    throw BadLine(fmt::format("has the property {}, which this program does not know", in_quotes(property)));
  return std::string(property);
}

Subject take_subject(Members& members, const JournalRules& rules) {
  Subject subject{
      .property = take_property(members, rules), .kernel = std::string(members.text("kernel")), .dtype = {}};
  const std::string_view dtype = members.text("dtype");
  const std::optional<DType> known = named<DType>(dtype);
  if (!known || !is_floating(*known))
    throw BadLine(fmt::format("has the dtype {}, which is no number format", in_quotes(dtype)));
  subject.dtype = dtype;
  return subject;
}

AlarmTally alarm_of(Members members) {
  AlarmTally alarm;
  alarm.all.elements = members.integer("elements");
  alarm.all.beyond = members.integer("beyond");
  alarm.all.uncovered = members.integer("uncovered");
  alarm.cases = members.integer("cases");
  alarm.all.worst = members.number("worst");
  if (!(alarm.all.worst >= 0.0)) throw BadLine("\"worst\" must be at least 0");
  alarm.worst_k = members.integer("worst_k", /*least=*/-1);
  members.finish();
  return alarm;
}

void take_drawn(Tally& tally, const dom::object& groups) {
  std::string word;
  for (const auto& [group, members] : groups) {
    dom::object kinds;
    if (group.empty() || group.find(':') != std::string_view::npos || members.get(kinds) != simdjson::SUCCESS)
      throw BadLine("\"drawn\" must hold groups of kinds with their counts");
    for (const auto& [kind, cases] : kinds) {
      word.assign(group).append(1, ':').append(kind);
      // Written in their order, mostly.
      tally.drawn.insert_or_assign(tally.drawn.end(), word, integer_of(cases, "drawn", /*least=*/1));
    }
  }
}

Reach reach_of(Members members) {
  Reach reach;
  for (const auto& [name, extent] : reach_members) reach.*extent = members.integer(name);
  members.finish();
  return reach;
}

void take_hashes(std::set<std::string>& hashes, const dom::element& value) {
  dom::array texts;
  if (value.get(texts) != simdjson::SUCCESS || texts.size() == 0)
    throw BadLine("\"files\" must hold arrays of hashes by name");
  for (const dom::element one : texts) {
    std::string_view text;
    const bool is_hash = one.get(text) == simdjson::SUCCESS &&
                         (text == "unreadable" ||
                          (text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos));
    if (!is_hash) throw BadLine("\"files\" must hold SHA-256 in 64 hexadecimal digits");
    hashes.emplace(text);
  }
}

std::pair<dom::element, dom::element> pair_of(const dom::element& value, const char* rule) {
  dom::array pair;
  if (value.get(pair) != simdjson::SUCCESS || pair.size() != 2) throw BadLine(rule);
  return {*pair.begin(), *std::next(pair.begin())};
}

Reason reason_of(std::string_view text) {
  const std::size_t colon = text.find(": ");
  const std::optional<Outcome> outcome =
      colon == std::string_view::npos ? std::nullopt : named<Outcome>(text.substr(0, colon));
  if (!outcome) throw BadLine(fmt::format("{} is a reason for no outcome", in_quotes(text)));
  return {*outcome, std::string(text.substr(colon + 2))};
}

Tally take_tally(Members& members) {
  Tally tally;
  tally.held = members.integer("held");
  tally.violated = members.integer("violated");
  tally.skipped = members.integer("skipped");
  tally.excused = members.integer("excused");
  tally.inconclusive = members.integer("inconclusive");
  tally.worst_utilisation = members.number("worst");
  if (!(tally.worst_utilisation >= 0.0)) throw BadLine("\"worst\" must be at least 0");
  tally.worst_k = members.integer("worst_k", /*least=*/-1);
  const dom::array level = members.array("level");
  if (level.size() != tally.level.size()) throw BadLine("\"level\" must hold 4 counts");
  std::ranges::transform(level, tally.level.begin(), [](const dom::element& one) { return integer_of(one, "level"); });
  for (const dom::element pair : members.array("histogram")) {
    const auto [bin, cases] = pair_of(pair, "\"histogram\" must hold pairs of bin and count");
    const std::int64_t place = integer_of(bin, "histogram");
    if (place >= static_cast<std::int64_t>(tally.histogram.size())) throw BadLine("\"histogram\" has 64 bins");
    tally.histogram[static_cast<std::size_t>(place)] = integer_of(cases, "histogram");
  }
  // Two reasons may be one when what is no UTF-8 is replaced.
  for (const auto& [reason, cases] : members.object("reasons")) {
    std::int64_t& count = tally.reasons[reason_of(reason)];
    if (__builtin_add_overflow(count, integer_of(cases, "reasons"), &count)) throw BadLine("\"reasons\" is too large");
  }
  if (members.has("violated_k")) {
    for (const dom::element k : members.array("violated_k")) tally.violated_k.push_back(integer_of(k, "violated_k"));
  }
  if (members.has("same_bits")) {
    const auto [agreed, compared] = pair_of(members.take("same_bits"), "\"same_bits\" must hold agreed and compared");
    tally.bits_agreed = integer_of(agreed, "same_bits");
    tally.bits_compared = integer_of(compared, "same_bits", std::max<std::int64_t>(tally.bits_agreed, 1));
  }
  if (members.has("drawn")) take_drawn(tally, members.object("drawn"));
  if (members.has("errors")) tally.errors = read_errors(Members(members.object("errors")));
  if (members.has("reach")) {
    tally.reach = reach_of(Members(members.object("reach")));
    if (tally.held == 0 && tally.violated == 0) throw BadLine("has a \"reach\", but judged no case");
  }
  if (members.has("shapes")) tally.shapes = read_shapes(Members(members.object("shapes")));
  if (members.has("alarm")) tally.alarm = alarm_of(Members(members.object("alarm")));
  return tally;
}

Outcome outcome_named(std::string_view name) {
  if (const auto found = named<Outcome>(name)) return *found;
  throw BadLine(fmt::format("has no outcome {}", in_quotes(name)));
}

ComparedRecord compared_of(const dom::element& value) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) throw BadLine("\"compared\" must hold objects");
  Members members(object);
  ComparedRecord side;
  boost::container::small_vector<std::int64_t, 4> extents;
  std::int64_t elements = 1;
  for (const dom::element extent : members.array("shape")) {
    extents.push_back(integer_of(extent, "shape", /*least=*/1));
    if (extents.size() > 4 || extents.back() > std::numeric_limits<std::int64_t>::max() / elements)
      throw BadLine("\"shape\" must be at most 4 extents with a product that a whole number holds");
    elements *= extents.back();
  }
  side.shape = Shape(std::span<const std::int64_t>(extents.data(), extents.size()));
  side.element = members.integer("element");
  if (side.element >= elements) throw BadLine("\"element\" must be one of the shape's");
  side.keys = members.integer("keys");
  side.found = members.number("found");
  if (members.has("exact")) {
    const auto [lower, upper] = pair_of(members.take("exact"), "\"exact\" must hold two ends");
    side.exact = {number_of(lower, "exact"), number_of(upper, "exact")};
  }
  if (members.has("gradient")) {
    const std::string_view name = members.text("gradient");
    side.gradient = named<Gradient>(name);
    if (!side.gradient) throw BadLine(fmt::format("has no gradient {}", in_quotes(name)));
  }
  members.finish();
  return side;
}

Repetition repetition_of(Members members) {
  Repetition repetition{.again = members.integer("again"), .of = members.integer("of"), .before = {}};
  if (repetition.again > repetition.of) throw BadLine("\"again\" is at most \"of\"");
  for (const dom::element file : members.array("before")) {
    std::string_view text;
    if (file.get(text) != simdjson::SUCCESS || !is_case_file(text))
      throw BadLine("\"before\" must hold files of cases/");
    repetition.before.emplace_back(text);
  }
  members.finish();
  return repetition;
}

}  // namespace

RunRecord run_of(Members& members, bool stamped) {
  const std::string_view schema = members.text("schema");
  if (schema != "attest-journal/2" && schema != "attest-journal/1") {
    throw BadLine(fmt::format("has the schema {}; this program reads attest-journal/2, and attest-journal/1 of before",
                              in_quotes(schema)));
  }
  if (stamped != (schema == "attest-journal/2"))
    throw BadLine(fmt::format("has {} checksum, and the schema {}", stamped ? "a" : "no", schema));
  RunRecord record{.seed = members.natural("seed"), .case_files = {}};
  if (members.has("alarm")) {
    record.alarm = members.number("alarm");
    if (!(record.alarm > 0 && record.alarm < 1)) throw BadLine("\"alarm\" must be a probability between 0 and 1");
  }
  if (members.has("against")) record.against = members.text("against");
  if (members.has("source")) {
    record.fuzz = members.text("source") == "fuzz";
    if (!record.fuzz) throw BadLine("\"source\" must be \"fuzz\" where it is stated");
  }
  if (members.has("shapes")) record.shapes = members.text("shapes");
  if (members.has("case_files")) {
    for (const dom::element file : members.array("case_files")) {
      std::string_view text;
      if (file.get(text) != simdjson::SUCCESS) throw BadLine("\"case_files\" must hold strings");
      record.case_files.emplace_back(text);
    }
  }
  members.finish();
  return record;
}

MetaRecord meta_of(Members& members) {
  MetaRecord record{.event = std::string(members.text("event")), .facts = {}};
  members.for_each_of_the_rest([&](std::string_view name, const dom::element& fact) {
    std::string_view text;
    if (fact.get(text) != simdjson::SUCCESS) throw BadLine(fmt::format("{} must be a string", in_quotes(name)));
    record.facts[std::string(name)] = text;
  });
  return record;
}

KernelRecord kernel_of(Members& members) {
  KernelRecord record{.id = std::string(members.text("id")), .manifest = {}, .not_started = {}, .files = {}};
  if (members.has("manifest")) {
    // As the library writes it that writes the kernels' own.
    const std::string text = simdjson::minify(members.object("manifest"));
    const auto manifest = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (manifest.is_discarded()) throw BadLine("is not JSON");
    record.manifest = manifest.dump();
  }
  if (members.has("not_started")) record.not_started = members.text("not_started");
  if (members.has("files")) {
    for (const auto& [name, value] : members.object("files")) take_hashes(record.files[std::string(name)], value);
  }
  members.finish();
  return record;
}

BatchHead head_of(Members& members, const JournalRules& rules) {
  BatchHead head;
  head.subject = take_subject(members, rules);
  head.first_k = members.integer("first");
  head.last_k = members.integer("last");
  if (head.last_k < head.first_k) throw BadLine("\"last\" must be at least \"first\"");
  if (members.has("shard")) {
    const auto [index, count] = pair_of(members.take("shard"), "\"shard\" must hold index and count");
    head.shard = {integer_of(index, "shard"), integer_of(count, "shard", /*least=*/1)};
    if (head.shard.index >= head.shard.count) throw BadLine("\"shard\" must have its index below its count");
  }
  return head;
}

BatchRecord batch_of(Members& members, const JournalRules& rules, const RunRecord& run) {
  BatchHead head = head_of(members, rules);
  BatchRecord record{std::move(head.subject), head.first_k, head.last_k, head.shard, take_tally(members)};
  members.finish();
  require_adds_up(record, run);
  return record;
}

FindingRecord finding_of(Members& members, const JournalRules& rules) {
  FindingRecord record;
  record.subject = take_subject(members, rules);
  record.k = members.integer("k");
  const std::string_view kind = members.text("class");
  record.case_file = members.text("case");
  if (!is_case_file(record.case_file)) {
    throw BadLine(fmt::format("has the case {}, which is not cases/NAME.safetensors with a plain NAME",
                              in_quotes(record.case_file)));
  }
  Members verdict(members.object("verdict"));
  record.verdict.outcome = outcome_named(verdict.text("outcome"));
  if (record.verdict.outcome == Outcome::violated) {
    const std::optional<Violation> violation = named<Violation>(kind);
    if (!violation) throw BadLine(fmt::format("has no class of violation {}", in_quotes(kind)));
    record.verdict.violation = *violation;
  }
  if (record.verdict.outcome != Outcome::violated && record.verdict.outcome != Outcome::inconclusive)
    throw BadLine(fmt::format("has the outcome {}, which is no finding", name_of(record.verdict.outcome)));
  if (record.kind() != kind) throw BadLine(fmt::format("has the class {}, and another outcome", in_quotes(kind)));
  record.verdict.utilisation = verdict.number("utilisation");
  record.verdict.error = verdict.number("error");
  record.verdict.allowed = verdict.number("allowed");
  record.verdict.element = verdict.integer("element", /*least=*/-1);
  record.verdict.level = static_cast<int>(std::min<std::int64_t>(verdict.integer("level"), 3));
  record.verdict.reason = verdict.text("reason");
  verdict.finish();
  if (members.has("repetition")) record.repetition = repetition_of(Members(members.object("repetition")));
  if (members.has("compared")) {
    for (const dom::element side : members.array("compared")) record.compared.push_back(compared_of(side));
  }
  members.finish();
  return record;
}

ProofRecord proof_of(Members& members, const JournalRules& rules) {
  ProofRecord record{.property = take_property(members, rules),
                     .level = std::string(members.text("level")),
                     .subject = std::string(members.text("subject")),
                     .words = std::string(members.text("words"))};
  members.finish();
  return record;
}

}  // namespace attest
