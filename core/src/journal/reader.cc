#include "journal/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <boost/container/small_vector.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "attest/case.h"
#include "attest/journal.h"
#include "attest/names.h"
#include "journal/error_table_reader.h"
#include "journal/lines.h"
#include "journal/members.h"

namespace attest {
namespace {

namespace dom = simdjson::dom;

Subject take_subject(Members& members) {
  return {std::string(members.text("property")), std::string(members.text("kernel")),
          std::string(members.text("dtype"))};
}

RunRecord run_of(Members& members) {
  if (const std::string_view schema = members.text("schema"); schema != "attest-journal/1") {
    throw BadLine(fmt::format("has the schema {}; this program reads attest-journal/1", in_quotes(schema)));
  }
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
  KernelRecord record{.id = std::string(members.text("id")), .manifest = {}, .not_started = {}};
  if (members.has("manifest")) {
    // As the library writes it that writes the kernels' own.
    const std::string text = simdjson::minify(members.object("manifest"));
    const auto manifest = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (manifest.is_discarded()) throw BadLine("is not JSON");
    record.manifest = manifest.dump();
  }
  if (members.has("not_started")) record.not_started = members.text("not_started");
  members.finish();
  return record;
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

std::pair<dom::element, dom::element> pair_of(const dom::element& value, const char* rule) {
  dom::array pair;
  if (value.get(pair) != simdjson::SUCCESS || pair.size() != 2) throw BadLine(rule);
  return {*pair.begin(), *std::next(pair.begin())};
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
  for (const auto& [reason, cases] : members.object("reasons"))
    tally.reasons[std::string(reason)] = integer_of(cases, "reasons");
  if (members.has("same_bits")) {
    const auto [agreed, compared] = pair_of(members.take("same_bits"), "\"same_bits\" must hold agreed and compared");
    tally.bits_agreed = integer_of(agreed, "same_bits");
    tally.bits_compared = integer_of(compared, "same_bits", std::max<std::int64_t>(tally.bits_agreed, 1));
  }
  if (members.has("drawn")) take_drawn(tally, members.object("drawn"));
  if (members.has("errors")) tally.errors = read_errors(Members(members.object("errors")));
  if (members.has("alarm")) tally.alarm = alarm_of(Members(members.object("alarm")));
  return tally;
}

BatchHead head_of(Members& members) {
  BatchHead head;
  head.subject = take_subject(members);
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

BatchRecord batch_of(Members& members) {
  BatchHead head = head_of(members);
  BatchRecord record{std::move(head.subject), head.first_k, head.last_k, head.shard, take_tally(members)};
  members.finish();
  return record;
}

Outcome outcome_named(std::string_view name) {
  for (const Outcome outcome :
       {Outcome::held, Outcome::violated, Outcome::skipped, Outcome::excused, Outcome::inconclusive}) {
    if (name == name_of(outcome)) return outcome;
  }
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
  members.finish();
  return side;
}

Repetition repetition_of(Members members) {
  Repetition repetition{.again = members.integer("again"), .of = members.integer("of"), .before = {}};
  if (repetition.again > repetition.of) throw BadLine("\"again\" is at most \"of\"");
  for (const dom::element file : members.array("before")) {
    std::string_view text;
    if (file.get(text) != simdjson::SUCCESS) throw BadLine("\"before\" must hold strings");
    constexpr std::string_view folder = "cases/";
    if (!text.starts_with(folder) || text.find('/', folder.size()) != std::string_view::npos)
      throw BadLine("\"before\" must hold files of cases/");
    repetition.before.emplace_back(text);
  }
  members.finish();
  return repetition;
}

FindingRecord finding_of(Members& members) {
  FindingRecord record;
  record.subject = take_subject(members);
  record.k = members.integer("k");
  const std::string_view kind = members.text("class");
  record.case_file = members.text("case");
  Members verdict(members.object("verdict"));
  record.verdict.outcome = outcome_named(verdict.text("outcome"));
  if (record.verdict.outcome == Outcome::violated) {
    const std::optional<Violation> violation = violation_named(kind);
    if (!violation) throw BadLine(fmt::format("has no class of violation {}", in_quotes(kind)));
    record.verdict.violation = *violation;
  }
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

ProofRecord proof_of(Members& members) {
  ProofRecord record{.property = std::string(members.text("property")),
                     .level = std::string(members.text("level")),
                     .subject = std::string(members.text("subject")),
                     .words = std::string(members.text("words"))};
  members.finish();
  return record;
}

/// Whole numbers beyond 64 bits, which are numbers here and none to simdjson, with a point: 1 with 20 zeros behind it
/// becomes as many with ".0".
std::string with_points(std::string_view line) {
  constexpr std::size_t most_digits = 19;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t start = i;
    if (quoted || !is_digit(line[i])) {
      if (line[i] == '"') quoted = !quoted;
      i += quoted && line[i] == '\\' ? 2 : 1;
      text.append(line.substr(start, i - start));
      continue;
    }
    while (i < line.size() && is_digit(line[i])) ++i;
    text.append(line.substr(start, i - start));
    const char before = start > 0 ? line[start - 1] : ' ', behind = i < line.size() ? line[i] : ' ';
    const bool whole = before != '.' && before != 'e' && before != 'E' && before != '+' && behind != '.' &&
                       behind != 'e' && behind != 'E';
    if (whole && i - start > most_digits) text += ".0";
  }
  return text;
}

/// Lines as JSON, and records of them.
class LineReader {
 public:
  explicit LineReader(Reading reading) : reading_(reading) {}

  /// Nothing for a line that is not asked for.
  std::optional<Record> read(std::string_view line) {
    Members members(parsed(line));
    const std::string_view kind = members.text("kind");
    if (kind == "batch") {
      if (reading_ == Reading::heads) return head_of(members);
      return batch_of(members);
    }
    if (reading_ == Reading::batches) return std::nullopt;
    if (kind == "run") return run_of(members);
    if (kind == "meta") return meta_of(members);
    if (kind == "kernel") return kernel_of(members);
    if (kind == "finding") return finding_of(members);
    if (kind == "proof") return proof_of(members);
    throw BadLine(fmt::format("has the unknown kind {}", in_quotes(kind)));
  }

 private:
  dom::object parsed(std::string_view line) {
    dom::element json;
    simdjson::error_code error = parser_.parse(line.data(), line.size()).get(json);
    if (error == simdjson::NUMBER_ERROR) error = parser_.parse(with_points(line)).get(json);
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    if (error != simdjson::SUCCESS) throw BadLine("is not JSON");
    dom::object object;
    if (json.get(object) != simdjson::SUCCESS) throw BadLine("is not a JSON object");
    return object;
  }

  Reading reading_;
  dom::parser parser_;
};

}  // namespace

bool read_records(const std::function<bool(const std::function<void(std::string_view)>&)>& lines,
                  std::string_view source, Reading reading, const std::function<void(Record&&)>& use) {
  LineReader reader(reading);
  std::optional<RunRecord> run;
  std::int64_t number = 0;
  const bool torn = lines([&](std::string_view line) {
    ++number;
    try {
      std::optional<Record> record = reader.read(line);
      if (!record) return;
      if (const auto* const stated = std::get_if<RunRecord>(&*record)) {
        if (run && *run != *stated) throw BadLine("is of another run than the first line");
        run = *stated;
      }
      use(std::move(*record));
    } catch (const BadLine& bad) {
      throw UsageError(fmt::format("{}, line {}: {}; this journal was changed or is of another version", source, number,
                                   bad.what()));
    }
  });
  if (!run && reading != Reading::batches)
    throw UsageError(fmt::format("{}: holds no run (its first line is missing)", source));
  return torn;
}

namespace {

Journal collected(const std::function<bool(const std::function<void(std::string_view)>&)>& lines,
                  std::string_view source) {
  Journal journal;
  journal.torn = read_records(lines, source, Reading::whole, [&](Record&& record) {
    std::visit(
        [&](auto&& one) {
          using One = std::remove_cvref_t<decltype(one)>;
          if constexpr (std::is_same_v<One, RunRecord>) journal.run = std::forward<decltype(one)>(one);
          if constexpr (std::is_same_v<One, MetaRecord>) journal.meta.push_back(std::forward<decltype(one)>(one));
          if constexpr (std::is_same_v<One, KernelRecord>) journal.kernels.push_back(std::forward<decltype(one)>(one));
          if constexpr (std::is_same_v<One, BatchRecord>) journal.batches.push_back(std::forward<decltype(one)>(one));
          if constexpr (std::is_same_v<One, FindingRecord>)
            journal.findings.push_back(std::forward<decltype(one)>(one));
          if constexpr (std::is_same_v<One, ProofRecord>) journal.proofs.push_back(std::forward<decltype(one)>(one));
        },
        std::move(record));
  });
  return journal;
}

}  // namespace

Journal parse_journal(std::string_view text, std::string_view source) {
  return collected([&](const auto& use) { return for_each_line(text, use); }, source);
}

std::filesystem::path journal_file(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(file_or_folder, ignored) ? file_or_folder / "run.jsonl" : file_or_folder;
}

Journal read_journal(const std::filesystem::path& file_or_folder) {
  const std::filesystem::path name = journal_file(file_or_folder);
  const LineFile file(name);
  return collected([&](const auto& use) { return file.for_each_line(use); }, name.string());
}

bool Journal::unfinished() const {
  return meta.empty() || meta.back().event != "end";
}

bool Journal::interrupted() const {
  return !meta.empty() && meta.back().event == "end" && meta.back().facts.contains("interrupted");
}

}  // namespace attest
