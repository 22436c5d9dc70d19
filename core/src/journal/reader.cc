#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "attest/case.h"
#include "attest/files.h"
#include "attest/journal.h"

namespace attest {
namespace {

using Json = nlohmann::ordered_json;

/// What is wrong with a line; the reader adds where it is.
class BadLine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A line's members, taken by name and type; what is not taken is an error, so that a journal of a later version is
/// refused and not half understood.
class Members {
 public:
  explicit Members(Json json) : json_(std::move(json)) {
    if (!json_.is_object()) throw BadLine("is not a JSON object");
  }

  [[nodiscard]] bool has(const std::string& name) const { return json_.contains(name); }

  Json take(const std::string& name) {
    const auto found = json_.find(name);
    if (found == json_.end()) throw BadLine(fmt::format("has no \"{}\"", name));
    Json value = std::move(*found);
    json_.erase(found);
    return value;
  }
  std::string text(const std::string& name) {
    const Json value = take(name);
    if (!value.is_string()) throw BadLine(fmt::format("\"{}\" must be a string", name));
    return value.get<std::string>();
  }
  std::int64_t integer(const std::string& name, std::int64_t least = 0) { return integer_of(take(name), name, least); }
  std::uint64_t natural(const std::string& name) {
    const Json value = take(name);
    if (!value.is_number_unsigned()) throw BadLine(fmt::format("\"{}\" must be a whole number", name));
    return value.get<std::uint64_t>();
  }
  double number(const std::string& name) {
    const Json value = take(name);
    if (value.is_number()) return value.get<double>();
    if (value == "inf") return std::numeric_limits<double>::infinity();
    if (value == "-inf") return -std::numeric_limits<double>::infinity();
    if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
    throw BadLine(fmt::format("\"{}\" must be a number, \"inf\", \"-inf\" or \"nan\"", name));
  }
  Json array(const std::string& name) {
    Json value = take(name);
    if (!value.is_array()) throw BadLine(fmt::format("\"{}\" must be an array", name));
    return value;
  }
  Json object(const std::string& name) {
    Json value = take(name);
    if (!value.is_object()) throw BadLine(fmt::format("\"{}\" must be an object", name));
    return value;
  }
  void finish() const {
    if (!json_.empty()) throw BadLine(fmt::format("has an unknown member \"{}\"", json_.begin().key()));
  }
  [[nodiscard]] const Json& rest() const { return json_; }

  static std::int64_t integer_of(const Json& value, const std::string& name, std::int64_t least = 0) {
    const bool representable =
        value.is_number_integer() &&
        (!value.is_number_unsigned() ||
         value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    if (!representable || value.get<std::int64_t>() < least) {
      throw BadLine(fmt::format("\"{}\" must be a whole number of at least {}", name, least));
    }
    return value.get<std::int64_t>();
  }

 private:
  Json json_;
};

Subject take_subject(Members& members) {
  return {members.text("property"), members.text("kernel"), members.text("dtype")};
}

RunRecord run_of(Members& members) {
  if (const std::string schema = members.text("schema"); schema != "attest-journal/1") {
    throw BadLine(fmt::format("has the schema \"{}\"; this program reads attest-journal/1", schema));
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
    for (const Json& file : members.array("case_files")) {
      if (!file.is_string()) throw BadLine("\"case_files\" must hold strings");
      record.case_files.push_back(file.get<std::string>());
    }
  }
  members.finish();
  return record;
}

MetaRecord meta_of(Members& members) {
  MetaRecord record{.event = members.text("event"), .facts = {}};
  for (const auto& [name, fact] : members.rest().items()) {
    if (!fact.is_string()) throw BadLine(fmt::format("\"{}\" must be a string", name));
    record.facts[name] = fact.get<std::string>();
  }
  return record;
}

KernelRecord kernel_of(Members& members) {
  KernelRecord record{.id = members.text("id"), .manifest = {}, .not_started = {}};
  if (members.has("manifest")) record.manifest = members.object("manifest").dump();
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

void take_drawn(Tally& tally, const Json& groups) {
  for (const auto& [group, kinds] : groups.items()) {
    if (group.empty() || group.find(':') != std::string::npos || !kinds.is_object())
      throw BadLine("\"drawn\" must hold groups of kinds with their counts");
    for (const auto& [kind, cases] : kinds.items())
      tally.drawn[fmt::format("{}:{}", group, kind)] = Members::integer_of(cases, "drawn", /*least=*/1);
  }
}

/// What stands in a line of "errors": whole numbers and words with a space between two.
class Line {
 public:
  explicit Line(const Json& value) {
    if (!value.is_string()) throw BadLine("\"errors\" must hold strings");
    text_ = value.get_ref<const std::string&>();
  }
  std::int64_t next(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    const std::string_view word = next_word();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < least || value > most)
      throw BadLine(fmt::format("\"errors\" holds \"{}\" for a whole number of {} to {}", word, least, most));
    return value;
  }
  LogCode code() { return static_cast<LogCode>(next(0, infinite_code)); }
  FixedSum sum(std::int64_t least) {
    const std::int64_t whole = next(least);
    return {whole, next(0, (std::int64_t{1} << 40) - 1)};
  }
  std::string word() { return std::string(next_word()); }
  [[nodiscard]] bool more() const { return !text_.empty(); }
  void finish() const {
    if (more()) throw BadLine("\"errors\" holds a line that is too long");
  }

 private:
  std::string_view next_word() {
    if (!more()) throw BadLine("\"errors\" holds a line that is too short");
    const std::size_t end = std::min(text_.find(' '), text_.size());
    const std::string_view word = text_.substr(0, end);
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return word;
  }
  std::string_view text_;
};

/// What follows the class in a line of "cells" or "ordinary".
void take_cell(Line& line, ErrorCell& cell) {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::min();
  if (cell.cases != 0) throw BadLine("\"errors\" holds a class twice");
  cell.cases = line.next(1);
  cell.elements = line.next(1);
  cell.worst_error = line.code(), cell.worst_ulp = line.code(), cell.worst_utilisation = line.code();
  cell.worst_k = line.next(0);
  cell.condition = line.code();
  for (std::uint16_t& share : cell.budget) share = static_cast<std::uint16_t>(line.next(0, 1000));
  cell.worst_scaled = line.code();
  cell.bias = line.sum(any);
  cell.squares = line.sum(0);
  for (LogCode& atol : cell.atol) atol = line.code();
  while (line.more()) {
    const auto bin = static_cast<std::size_t>(line.next(0, utilisation_bins - 1));
    cell.histogram[bin] = line.next(1);
  }
}

ErrorTable errors_of(Members members) {
  ErrorTable table;
  const Json cells = members.array("cells"), scores = members.array("scores"), ordinary = members.array("ordinary");
  for (const Json& text : cells) {
    Line line(text);
    ErrorClass key;
    key.keys = static_cast<std::size_t>(line.next(0, key_classes - 1));
    key.mask = static_cast<MaskEffect>(line.next(0, 3));
    key.values = line.word();
    if (key.values == "-") key.values.clear();
    take_cell(line, table.cells[key]);
  }
  for (const Json& text : ordinary) {
    Line line(text);
    const auto keys = static_cast<std::size_t>(line.next(0, key_classes - 1));
    take_cell(line, table.ordinary[keys]);
  }
  for (const Json& text : scores) {
    Line line(text);
    const auto keys = static_cast<std::size_t>(line.next(0, key_classes - 1));
    WorstOf& worst = table.scores[{keys, line.word()}];
    worst.cases = line.next(1);
    worst.worst = line.code();
    line.finish();
  }
  const Json octaves = members.take("octaves"), ranges = members.take("ranges"), signs = members.take("signs");
  for (Line line(octaves); line.more();) {
    ScaledError& octave = table.octaves[static_cast<int>(line.next(0, 62))];
    octave.error = line.code();
    octave.allowed = line.code();
  }
  for (Line line(ranges); line.more();) {
    ScaledError& range = table.ranges[static_cast<int>(line.next(first_range, last_range))];
    range.error = line.code();
    range.allowed = line.code();
  }
  for (Line line(signs); line.more();) {
    const auto bin = static_cast<std::size_t>(line.next(0, utilisation_bins - 1));
    table.signs[0][bin] = line.next(0);
    table.signs[1][bin] = line.next(0);
  }
  members.finish();
  return table;
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
  const Json level = members.array("level");
  if (level.size() != tally.level.size()) throw BadLine("\"level\" must hold 4 counts");
  for (std::size_t i = 0; i < tally.level.size(); ++i) tally.level[i] = Members::integer_of(level[i], "level");
  for (const Json& pair : members.array("histogram")) {
    if (!pair.is_array() || pair.size() != 2) throw BadLine("\"histogram\" must hold pairs of bin and count");
    const std::int64_t bin = Members::integer_of(pair[0], "histogram");
    if (bin >= static_cast<std::int64_t>(tally.histogram.size())) throw BadLine("\"histogram\" has 64 bins");
    tally.histogram[static_cast<std::size_t>(bin)] = Members::integer_of(pair[1], "histogram");
  }
  const Json reasons = members.object("reasons");
  for (const auto& [reason, count] : reasons.items()) {
    tally.reasons[reason] = Members::integer_of(count, "reasons");
  }
  if (members.has("same_bits")) {
    const Json bits = members.array("same_bits");
    if (bits.size() != 2) throw BadLine("\"same_bits\" must hold agreed and compared");
    tally.bits_agreed = Members::integer_of(bits[0], "same_bits");
    tally.bits_compared = Members::integer_of(bits[1], "same_bits", std::max<std::int64_t>(tally.bits_agreed, 1));
  }
  if (members.has("drawn")) take_drawn(tally, members.object("drawn"));
  if (members.has("errors")) tally.errors = errors_of(Members(members.object("errors")));
  if (members.has("alarm")) tally.alarm = alarm_of(Members(members.object("alarm")));
  return tally;
}

BatchRecord batch_of(Members& members) {
  BatchRecord record;
  record.subject = take_subject(members);
  record.first_k = members.integer("first");
  record.last_k = members.integer("last");
  if (record.last_k < record.first_k) throw BadLine("\"last\" must be at least \"first\"");
  if (members.has("shard")) {
    const Json shard = members.array("shard");
    if (shard.size() != 2) throw BadLine("\"shard\" must hold index and count");
    record.shard = {Members::integer_of(shard[0], "shard"), Members::integer_of(shard[1], "shard", /*least=*/1)};
    if (record.shard.index >= record.shard.count) throw BadLine("\"shard\" must have its index below its count");
  }
  record.tally = take_tally(members);
  members.finish();
  return record;
}

Outcome outcome_named(const std::string& name) {
  for (const Outcome outcome :
       {Outcome::held, Outcome::violated, Outcome::skipped, Outcome::excused, Outcome::inconclusive}) {
    if (name == name_of(outcome)) return outcome;
  }
  throw BadLine(fmt::format("has no outcome \"{}\"", name));
}

FindingRecord finding_of(Members& members) {
  FindingRecord record;
  record.subject = take_subject(members);
  record.k = members.integer("k");
  const std::string kind = members.text("class");
  record.case_file = members.text("case");
  Members verdict(members.object("verdict"));
  record.verdict.outcome = outcome_named(verdict.text("outcome"));
  if (record.verdict.outcome == Outcome::violated) {
    const std::optional<Violation> violation = violation_named(kind);
    if (!violation) throw BadLine(fmt::format("has no class of violation \"{}\"", kind));
    record.verdict.violation = *violation;
  }
  record.verdict.utilisation = verdict.number("utilisation");
  record.verdict.error = verdict.number("error");
  record.verdict.allowed = verdict.number("allowed");
  record.verdict.element = verdict.integer("element", /*least=*/-1);
  record.verdict.level = static_cast<int>(std::min<std::int64_t>(verdict.integer("level"), 3));
  record.verdict.reason = verdict.text("reason");
  verdict.finish();
  members.finish();
  return record;
}

ProofRecord proof_of(Members& members) {
  ProofRecord record{.property = members.text("property"),
                     .level = members.text("level"),
                     .subject = members.text("subject"),
                     .words = members.text("words")};
  members.finish();
  return record;
}

void read_line(Journal& journal, std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw BadLine("is not JSON");
  Members members(std::move(json));
  const std::string kind = members.text("kind");
  if (kind == "run") {
    const RunRecord record = run_of(members);
    if (journal.run && *journal.run != record) throw BadLine("is of another run than the first line");
    journal.run = record;
  } else if (kind == "meta") {
    journal.meta.push_back(meta_of(members));
  } else if (kind == "kernel") {
    journal.kernels.push_back(kernel_of(members));
  } else if (kind == "batch") {
    journal.batches.push_back(batch_of(members));
  } else if (kind == "finding") {
    journal.findings.push_back(finding_of(members));
  } else if (kind == "proof") {
    journal.proofs.push_back(proof_of(members));
  } else {
    throw BadLine(fmt::format("has the unknown kind \"{}\"", kind));
  }
}

}  // namespace

Journal parse_journal(std::string_view text, std::string_view source) {
  Journal journal;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      journal.torn = true;
      break;
    }
    ++number;
    try {
      read_line(journal, text.substr(0, end));
    } catch (const BadLine& bad) {
      throw UsageError(fmt::format("{}, line {}: {}; this journal was changed or is of another version", source, number,
                                   bad.what()));
    }
    text.remove_prefix(end + 1);
  }
  if (!journal.run) throw UsageError(fmt::format("{}: holds no run (its first line is missing)", source));
  return journal;
}

Journal read_journal(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(file_or_folder, ignored);
  const std::filesystem::path file = folder ? file_or_folder / "run.jsonl" : file_or_folder;
  return parse_journal(read_file(file), file.string());
}

bool Journal::unfinished() const {
  return meta.empty() || meta.back().event != "end";
}

bool Journal::interrupted() const {
  return !meta.empty() && meta.back().event == "end" && meta.back().facts.contains("interrupted");
}

}  // namespace attest
