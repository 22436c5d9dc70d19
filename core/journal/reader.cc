#include "core/journal/reader.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/journal/journal.h"
#include "core/journal/lines.h"
#include "core/journal/record_reader.h"
#include "core/support/errors.h"
#include "core/support/members.h"
#include "core/support/names.h"

namespace attest {
namespace {

namespace dom = simdjson::dom;

/// Whole numbers beyond 64 bits, which are numbers here and none to simdjson, with a point: 1 with 20 zeros behind it
/// becomes as many with ".0". So does what may be beyond them: of 19 digits some negative numbers are.
std::string with_points(std::string_view line) {
  constexpr std::size_t most_digits = 18;
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

/// Lines as JSON, records of them, and what must hold between lines.
class LineReader {
 public:
  LineReader(ReadScope scope, const JournalRules& rules) : scope_(scope), rules_(rules) {}

  /// Nothing for a line that is not asked for. Throws BadLine.
  std::optional<Record> read(std::string_view line) {
    misplaced_.clear();
    const Checksum checksum = checksum_of(line);
    if (checksum == Checksum::wrong) throw BadLine("does not match its checksum");
    Members members(parsed(line));
    const bool stamped = checksum == Checksum::right;
    const std::int64_t number = stamped ? members.integer("line", /*least=*/1) : 0;
    if (stamped) (void)members.text("crc");
    const std::string_view kind = members.text("kind");
    if (kind == "run") return begin(members, stamped, number);
    if (!run_) throw BadLine("has no run in front of it: the journal holds no run, or its first line is missing");
    if (stamped != stamped_) throw BadLine(stamped ? "has a checksum, and its run has none" : "has no checksum");
    std::optional<Record> record = record_of(kind, members);
    if (stamped) follow(number);
    return record;
  }

  [[nodiscard]] bool has_run() const { return run_.has_value(); }
  /// A run without checksums.
  [[nodiscard]] bool unstamped() const { return unstamped_; }
  /// Why the line is not the next of its run; empty where it is. Only where damage is salvaged: else it is refused.
  [[nodiscard]] const std::string& misplaced() const { return misplaced_; }
  /// Lines that the run's first one speaks of and that did not come: its end is gone. Lines may have been appended.
  [[nodiscard]] std::int64_t missing() const { return std::max<std::int64_t>(lines_ - last_, 0); }
  /// Of the lines that may be missing, so many were there and are damaged.
  void note_dropped() { ++dropped_; }

 private:
  std::optional<Record> record_of(std::string_view kind, Members& members) {
    if (kind == "batch") {
      if (scope_ == ReadScope::heads) return head_of(members, rules_);
      return batch_of(members, rules_, *run_);
    }
    if (scope_ == ReadScope::batches) return std::nullopt;
    if (kind == "meta") return meta_of(members);
    if (kind == "kernel") return kernel_of(members);
    if (kind == "finding") return finding_of(members, rules_);
    if (kind == "proof") return proof_of(members, rules_);
    throw BadLine(fmt::format("has the unknown kind {}", in_quotes(kind)));
  }

  /// The line of a run: the first of a journal, of each one in journals behind each other, and of what goes on with one
  /// that had no checksums.
  std::optional<Record> begin(Members& members, bool stamped, std::int64_t number) {
    const std::int64_t lines = stamped && members.has("lines") ? members.integer("lines", /*least=*/1) : 0;
    RunRecord run = run_of(members, stamped);
    if (run_ && *run_ != run) throw BadLine("is of another run than the first line");
    if (stamped && number != 1) throw BadLine(fmt::format("is line {} of a run, which begins with line 1", number));
    if (missing() > 0 && !rules_.salvage)
      throw BadLine(fmt::format("begins a run, and the one in front of it lacks its last {} lines", missing()));
    run_ = run;
    lines_ = lines;
    stamped_ = stamped;
    unstamped_ = unstamped_ || !stamped;
    last_ = number;
    dropped_ = 0;
    if (scope_ == ReadScope::batches) return std::nullopt;
    return run;
  }

  void follow(std::int64_t number) {
    const std::int64_t wanted = last_ + 1;
    if (number != wanted) {
      const std::int64_t missing = number - wanted - dropped_;
      if (!rules_.salvage) {
        throw BadLine(
            fmt::format("is line {} of its run, and {} was to follow: a line is missing, stands twice or "
                        "elsewhere",
                        number, wanted));
      }
      if (missing > 0) misplaced_ = fmt::format("{} lines of its run are missing in front of it", missing);
      if (number < wanted) misplaced_ = "it stands twice, or elsewhere than where it was written";
    }
    last_ = number;
    dropped_ = 0;
  }

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

  const ReadScope scope_;
  const JournalRules& rules_;
  dom::parser parser_;
  std::optional<RunRecord> run_;
  bool stamped_ = false, unstamped_ = false;
  std::int64_t last_ = 0, dropped_ = 0, lines_ = 0;
  std::string misplaced_;
};

/// Lines that were left out for one reason, one behind the other.
struct Dropped {
  std::int64_t first, last;
  std::string why;
};

std::string lines_text(const Dropped& dropped) {
  return dropped.first == dropped.last ? fmt::format("line {}", dropped.first)
                                       : fmt::format("lines {} to {}", dropped.first, dropped.last);
}

}  // namespace

ReadEnd read_records(const Lines& lines, std::string_view source, ReadScope scope, const JournalRules& rules,
                     const std::function<void(Record&&)>& use) {
  LineReader reader(scope, rules);
  ReadEnd end;
  std::vector<Dropped> dropped;
  std::int64_t number = 0;
  const LinesEnd why = lines([&](std::string_view line) {
    ++number;
    try {
      std::optional<Record> record = reader.read(line);
      if (!reader.misplaced().empty()) end.notes.push_back(fmt::format("line {}: {}", number, reader.misplaced()));
      if (record) use(std::move(*record));
    } catch (const BadLine& bad) {
      if (!rules.salvage) {
        throw UsageError(fmt::format(
            "{}, line {}: {}; this journal was changed or is of another version: attest merge --salvage reads the rest",
            source, number, bad.what()));
      }
      reader.note_dropped();
      if (!dropped.empty() && dropped.back().last == number - 1 && dropped.back().why == bad.what())
        dropped.back().last = number;
      else
        dropped.push_back({number, number, bad.what()});
    }
  });
  if (!reader.has_run()) {
    throw UsageError(fmt::format("{}: holds no run (its first line is missing{})", source,
                                 dropped.empty() ? "" : " or damaged, without which there is nothing to salvage"));
  }
  if (reader.missing() > 0) {
    const std::string what = fmt::format("its last {} lines are missing", reader.missing());
    if (!rules.salvage) {
      throw UsageError(
          fmt::format("{}: {}, which its first line speaks of: attest merge --salvage reads the rest", source, what));
    }
    end.notes.push_back(what);
  }
  for (const Dropped& one : dropped) end.notes.push_back(fmt::format("left out {}: {}", lines_text(one), one.why));
  end.torn = why != LinesEnd::whole || !end.notes.empty();
  if (why == LinesEnd::torn)
    end.notes.push_back(fmt::format("the last line is torn, as a kill leaves it; {} are read", number));
  if (why == LinesEnd::zeros) {
    end.notes.push_back(
        fmt::format("zero bytes stand behind line {}, as a power cut leaves them; what stands in front "
                    "of them is read, and --salvage reads what is sound behind them",
                    number));
  }
  if (reader.unstamped()) {
    end.notes.emplace_back(
        "of attest-journal/1, whose lines have no checksum: a changed figure may not be seen; attest merge -o FILE "
        "writes it with checksums");
  }
  return end;
}

namespace {

Journal collected(const Lines& lines, std::string_view source, const JournalRules& rules) {
  Journal journal;
  ReadEnd end = read_records(lines, source, ReadScope::whole, rules, [&](Record&& record) {
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
  journal.torn = end.torn;
  journal.notes = std::move(end.notes);
  return journal;
}

}  // namespace

Journal parse_journal(std::string_view text, std::string_view source, const JournalRules& rules) {
  return collected([&](const auto& use) { return for_each_line(text, use, rules.salvage); }, source, rules);
}

std::filesystem::path journal_file(const std::filesystem::path& file_or_folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(file_or_folder, ignored) ? file_or_folder / "run.jsonl" : file_or_folder;
}

LineFile lines_of_journal(const std::filesystem::path& file_or_folder) {
  const std::filesystem::path name = journal_file(file_or_folder);
  return name == file_or_folder ? LineFile(name) : LineFile(file_or_folder, name.filename().native());
}

Journal read_journal(const std::filesystem::path& file_or_folder, const JournalRules& rules) {
  const std::filesystem::path name = journal_file(file_or_folder);
  const LineFile file = lines_of_journal(file_or_folder);
  return collected([&](const auto& use) { return file.for_each_line(use, rules.salvage); }, name.string(), rules);
}

bool Journal::unfinished() const {
  return meta.empty() || meta.back().event != "end";
}

bool Journal::interrupted() const {
  return !meta.empty() && meta.back().event == "end" && meta.back().facts.contains("interrupted");
}

bool Journal::time_over() const {
  return !meta.empty() && meta.back().event == "end" && meta.back().facts.contains("time_over");
}

}  // namespace attest
