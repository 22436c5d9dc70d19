#include "core/journal/error_table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

namespace attest {
namespace {

namespace dom = simdjson::dom;

/// What stands in a line of "errors": whole numbers and words with a space between two.
class Line {
 public:
  explicit Line(const dom::element& value) {
    if (value.get(text_) != simdjson::SUCCESS) throw BadLine("\"errors\" must hold strings");
  }
  std::int64_t next(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    const std::string_view word = next_word();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || value < least || value > most)
      throw BadLine(fmt::format("\"errors\" holds {} for a whole number of {} to {}", in_quotes(word), least, most));
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

/// What follows the class in a line of "cells" or "ordinary". `earlier`: from before there were budgets, which had no
/// worst scaled error either.
void take_cell(Line& line, ErrorCell& cell, bool earlier) {
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::min();
  if (cell.cases != 0) throw BadLine("\"errors\" holds a class twice");
  cell.cases = line.next(1);
  cell.elements = line.next(1);
  cell.worst_error = line.code(), cell.worst_ulp = line.code(), cell.worst_utilisation = line.code();
  cell.worst_k = line.next(0);
  cell.condition = line.code();
  if (!earlier) {
    for (std::uint16_t& share : cell.budget) share = static_cast<std::uint16_t>(line.next(0, 1000));
    cell.worst_scaled = line.code();
  }
  cell.bias = line.sum(any);
  cell.squares = line.sum(0);
  for (LogCode& atol : cell.atol) atol = line.code();
  while (line.more()) {
    const auto bin = static_cast<std::size_t>(line.next(0, utilisation_bins - 1));
    cell.histogram[bin] = line.next(1);
  }
}

}  // namespace

ErrorTable read_errors(Members members) {
  ErrorTable table;
  const bool earlier = !members.has("ordinary");
  const dom::array cells = members.array("cells"), scores = members.array("scores");
  std::vector<ErrorCell*> read;  // as their lines come
  for (const dom::element text : cells) {
    Line line(text);
    ErrorClass key;
    key.keys = static_cast<std::size_t>(line.next(0, key_classes - 1));
    key.mask = static_cast<MaskEffect>(line.next(0, 3));
    key.values = line.word();
    if (key.values == "-") key.values.clear();
    take_cell(line, *read.emplace_back(&table.cells[key]), earlier);
  }
  if (!earlier) {
    for (const dom::element text : members.array("ordinary")) {
      Line line(text);
      const auto keys = static_cast<std::size_t>(line.next(0, key_classes - 1));
      take_cell(line, *read.emplace_back(&table.ordinary[keys]), earlier);
    }
  }
  for (const dom::element text : scores) {
    Line line(text);
    const auto keys = static_cast<std::size_t>(line.next(0, key_classes - 1));
    WorstOf& worst = table.scores[{keys, line.word()}];
    worst.cases = line.next(1);
    worst.worst = line.code();
    line.finish();
  }
  const dom::element octaves = members.take("octaves"), signs = members.take("signs");
  for (Line line(octaves); line.more();) {
    ScaledError& octave = table.octaves[static_cast<int>(line.next(0, 62))];
    octave.error = line.code();
    octave.allowed = line.code();
  }
  if (!earlier) {
    for (Line line(members.take("ranges")); line.more();) {
      ScaledError& range = table.ranges[static_cast<int>(line.next(first_range, last_range))];
      range.error = line.code();
      range.allowed = line.code();
    }
  }
  for (Line line(signs); line.more();) {
    const auto bin = static_cast<std::size_t>(line.next(0, utilisation_bins - 1));
    table.signs[0][bin] = line.next(0);
    table.signs[1][bin] = line.next(0);
  }
  if (members.has("error_k")) {
    Line line(members.take("error_k"));
    for (ErrorCell* const cell : read) cell->error_k = line.next(-1);
    line.finish();
  }
  if (members.has("apart")) {
    Line line(members.take("apart"));
    for (ErrorCell* const cell : read) cell->worst_normal = line.code(), cell->worst_subnormal = line.code();
    line.finish();
  } else {
    for (ErrorCell* const cell : read) cell->worst_normal = cell->worst_utilisation;
  }
  members.finish();
  return table;
}

}  // namespace attest
