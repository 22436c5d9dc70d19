#include "core/measure/error_statistics.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <ranges>

#include "core/measure/kinds.h"
#include "core/support/json_writer.h"

namespace attest {
namespace {

constexpr std::int64_t fraction_end = std::int64_t{1} << 40;
/// The code of 2 significant bits beyond the first of 2^-14, which ends the first bin.
constexpr std::int64_t first_edge = (1023 - 14) * 4;

/// Whole numbers and a word with a space between two: a tenth of the cost of JSON's own arrays, to write and to read.
class Line {
 public:
  Line& operator<<(std::integral auto number) {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), end);
  }
  Line& operator<<(std::string_view word) {
    if (!text_.empty()) text_ += ' ';
    text_ += word;
    return *this;
  }
  Line& operator<<(const FixedSum& sum) { return *this << sum.whole << sum.fraction; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// The generators' own words need no escapes, which are most of the cost of writing; a journal may hold others.
void write_line(JsonWriter& json, const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](char c) {
    return c == ' ' || c == '-' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  });
  plain ? json.raw('"' + text + '"') : json.value(text);
}

/// A class of captured cases has no word.
std::string_view word_or_dash(const std::string& word) {
  return word.empty() ? std::string_view("-") : std::string_view(word);
}

void take_worst(ErrorCell& cell, LogCode utilisation, std::int64_t k, LogCode condition, const Budget& budget) {
  const bool worse =
      utilisation > cell.worst_utilisation || (utilisation == cell.worst_utilisation && k < cell.worst_k);
  if (k < 0 || (cell.worst_k >= 0 && !worse)) return;
  cell.worst_utilisation = utilisation;
  cell.worst_k = k;
  cell.condition = condition;
  cell.budget = budget;
}

void take_error(ErrorCell& cell, LogCode error, std::int64_t k) {
  if (error < cell.worst_error) return;
  const bool first = error > cell.worst_error || cell.error_k < 0;
  cell.error_k = first ? k : k < 0 ? cell.error_k : std::min(cell.error_k, k);
  cell.worst_error = error;
}

bool is_one_of(std::string_view word, std::string_view words) {
  for (const auto known : std::views::split(words, ' '))
    if (std::string_view(known.begin(), known.end()) == word) return true;
  return false;
}

/// What follows the class in a line.
void write_cell(Line& line, const ErrorCell& cell) {
  line << cell.cases << cell.elements;
  line << cell.worst_error << cell.worst_ulp << cell.worst_utilisation << cell.worst_k << cell.condition;
  for (const std::uint16_t share : cell.budget) line << share;
  line << cell.worst_scaled << cell.bias << cell.squares;
  for (const LogCode atol : cell.atol) line << atol;
  // The histogram last: bin, count, bin, count, …
  for (std::size_t bin = 0; bin < utilisation_bins; ++bin)
    if (cell.histogram[bin] != 0) line << bin << cell.histogram[bin];
}

}  // namespace

void FixedSum::add(double term) {
  const double down = std::floor(term);
  merge({static_cast<std::int64_t>(down), static_cast<std::int64_t>(std::nearbyint((term - down) * 0x1p40))});
}

void FixedSum::merge(const FixedSum& other) {
  whole += other.whole;
  fraction += other.fraction;
  // A fraction that was rounded up to 1 makes the sum of two at most 2 - 2^-40.
  if (fraction >= fraction_end) {
    fraction -= fraction_end;
    ++whole;
  }
}

std::size_t utilisation_bin(double utilisation) {
  if (!(utilisation <= 0x1.fffffffffffffp1023)) return utilisation_bins - 1;
  const std::uint64_t up = (std::bit_cast<std::uint64_t>(utilisation) + ((std::uint64_t{1} << 50U) - 1)) >> 50U;
  const std::int64_t bin = static_cast<std::int64_t>(up) - first_edge;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(bin, 0, utilisation_bins - 1));
}

double utilisation_edge(std::size_t bin) {
  if (bin + 1 >= utilisation_bins) return std::numeric_limits<double>::infinity();
  return std::bit_cast<double>(static_cast<std::uint64_t>(first_edge + static_cast<std::int64_t>(bin)) << 50U);
}

Budget budget_of(const std::array<double, stage_count>& parts) {
  const double most = *std::ranges::max_element(parts);
  // Divided by the largest first: their sum may leave the range.
  double sum = 0;
  for (const double part : parts) sum += part / most;
  if (!(most > 0) || !std::isfinite(sum)) return {};
  Budget shares{};
  std::array<double, stage_count> rest{};
  int missing = 1000;
  for (std::size_t i = 0; i < stage_count; ++i) {
    const double share = 1000 * (parts[i] / most / sum);
    shares[i] = static_cast<std::uint16_t>(share);
    rest[i] = share - shares[i];
    missing -= shares[i];
  }
  for (; missing > 0; --missing) {
    const auto next = static_cast<std::size_t>(std::ranges::max_element(rest) - rest.begin());
    ++shares[next];
    rest[next] = -1;
  }
  return shares;
}

int range_octave(double range) {
  if (!(range > 0)) return first_range;
  return std::isfinite(range) ? std::clamp(std::ilogb(range), first_range, last_range) : last_range;
}

bool is_ordinary(std::string_view kinds) {
  const std::string_view loss = kind_in(kinds, "loss:");
  return is_one_of(kind_in(kinds, "scores:"),
                   "gaussian gaussian-0.1 exact-ties near-ties duplicate-keys "
                   "zero-queries") &&
         is_one_of(kind_in(kinds, "values:"), "gaussian ones half-ones one-hot low-weight-one-hot") &&
         (loss.empty() || is_one_of(loss, "gaussian one-hot zero-rows integers")) &&
         kind_in(kinds, "scale:") == "inverse-root" && kind_in(kinds, "mask:") != "finite-sentinel" &&
         kind_in(kinds, "overrides:").empty();
}

std::size_t key_class(std::int64_t keys) {
  return keys <= 1 ? 0 : keys <= 16 ? 1 : keys <= 64 ? 2 : 3;
}

std::string_view key_class_name(std::size_t which) {
  constexpr std::array<std::string_view, key_classes> names{"1 key", "2..16 keys", "17..64 keys", "more than 64 keys"};
  return names[which];
}

void ErrorCell::add(std::int64_t k, const ErrorSample& sample) {
  ++cases;
  elements += sample.elements;
  take_error(*this, code_of(sample.worst_error), k);
  worst_ulp = std::max(worst_ulp, code_of(sample.worst_ulp));
  take_worst(*this, code_of(sample.worst_utilisation), k, code_of(sample.condition), sample.budget);
  worst_normal = std::max(worst_normal, code_of(sample.worst_normal));
  worst_subnormal = std::max(worst_subnormal, code_of(sample.worst_subnormal));
  worst_scaled = std::max(worst_scaled, code_of(sample.scaled_error));
  bias.add(sample.bias);
  squares.add(sample.squares);
  for (std::size_t i = 0; i < atol.size(); ++i) atol[i] = std::max(atol[i], code_of(sample.atol[i]));
  for (std::size_t bin = 0; bin < utilisation_bins; ++bin)
    histogram[bin] += std::int64_t{sample.histogram[0][bin]} + sample.histogram[1][bin];
}

void ErrorCell::merge(const ErrorCell& other) {
  cases += other.cases;
  elements += other.elements;
  take_error(*this, other.worst_error, other.error_k);
  worst_ulp = std::max(worst_ulp, other.worst_ulp);
  take_worst(*this, other.worst_utilisation, other.worst_k, other.condition, other.budget);
  worst_normal = std::max(worst_normal, other.worst_normal);
  worst_subnormal = std::max(worst_subnormal, other.worst_subnormal);
  worst_scaled = std::max(worst_scaled, other.worst_scaled);
  bias.merge(other.bias);
  squares.merge(other.squares);
  for (std::size_t i = 0; i < atol.size(); ++i) atol[i] = std::max(atol[i], other.atol[i]);
  for (std::size_t bin = 0; bin < utilisation_bins; ++bin) histogram[bin] += other.histogram[bin];
}

double ErrorCell::quantile(double fraction) const {
  if (elements == 0) return 0;
  const auto wanted = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(elements)));
  std::int64_t seen = 0;
  for (std::size_t bin = 0; bin < utilisation_bins; ++bin) {
    seen += histogram[bin];
    if (seen >= wanted) return std::min(utilisation_edge(bin), size_of_code(worst_utilisation));
  }
  return size_of_code(worst_utilisation);
}

double ErrorCell::mean() const {
  return elements == 0 ? 0 : bias.value() / static_cast<double>(elements);
}

double ErrorCell::root_mean_square() const {
  return elements == 0 ? 0 : std::sqrt(squares.value() / static_cast<double>(elements));
}

void ErrorTable::add(std::int64_t k, const ErrorSample& sample, std::string_view kinds) {
  const std::size_t shape = key_class(sample.keys);
  cells[{shape, sample.mask, std::string(kind_in(kinds, "values:"))}].add(k, sample);
  if (const std::string_view word = kind_in(kinds, "scores:"); !word.empty()) {
    WorstOf& worst = scores[{shape, std::string(word)}];
    ++worst.cases;
    worst.worst = std::max(worst.worst, code_of(sample.worst_utilisation));
  }
  if (is_ordinary(kinds)) ordinary[shape].add(k, sample);
  if (sample.keys > 0 && sample.scaled_error > 0) {
    const ScaledError scaled{code_of(sample.scaled_error), code_of(sample.scaled_allowed)};
    ScaledError& octave = octaves[static_cast<int>(std::bit_width(static_cast<std::uint64_t>(sample.keys))) - 1];
    ScaledError& range = ranges[range_octave(sample.score_range)];
    octave = std::max(octave, scaled);
    range = std::max(range, scaled);
  }
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t bin = 0; bin < utilisation_bins; ++bin) signs[side][bin] += sample.histogram[side][bin];
}

void ErrorTable::merge(const ErrorTable& other) {
  for (const auto& [key, cell] : other.cells) cells[key].merge(cell);
  for (const auto& [key, one] : other.scores) {
    WorstOf& worst = scores[key];
    worst.cases += one.cases;
    worst.worst = std::max(worst.worst, one.worst);
  }
  for (const auto& [exponent, one] : other.octaves) octaves[exponent] = std::max(octaves[exponent], one);
  for (const auto& [exponent, one] : other.ranges) ranges[exponent] = std::max(ranges[exponent], one);
  for (const auto& [keys, cell] : other.ordinary) ordinary[keys].merge(cell);
  for (std::size_t side = 0; side < 2; ++side)
    for (std::size_t bin = 0; bin < utilisation_bins; ++bin) signs[side][bin] += other.signs[side][bin];
}

void write_errors(JsonWriter& json, const ErrorTable& table) {
  json.begin_object().key("cells").begin_array();
  for (const auto& [key, cell] : table.cells) {
    Line line;
    line << key.keys << static_cast<int>(key.mask) << word_or_dash(key.values);
    write_cell(line, cell);
    write_line(json, line.text());
  }
  json.end_array().key("scores").begin_array();
  for (const auto& [key, worst] : table.scores)
    write_line(json, (Line() << key.first << key.second << worst.cases << worst.worst).text());
  json.end_array().key("ordinary").begin_array();
  for (const auto& [keys, cell] : table.ordinary) {
    Line line;
    line << keys;
    write_cell(line, cell);
    write_line(json, line.text());
  }
  json.end_array();
  // Apart from the cells, whose lines journals of before have too.
  Line octaves, ranges, signs, error_ks, apart;
  const auto write_rest = [&](const ErrorCell& cell) {
    error_ks << cell.error_k;
    apart << cell.worst_normal << cell.worst_subnormal;
  };
  for (const auto& [key, cell] : table.cells) write_rest(cell);
  for (const auto& [keys, cell] : table.ordinary) write_rest(cell);
  for (const auto& [exponent, one] : table.octaves) octaves << exponent << one.error << one.allowed;
  for (const auto& [exponent, one] : table.ranges) ranges << exponent << one.error << one.allowed;
  for (std::size_t bin = 0; bin < utilisation_bins; ++bin) {
    if (table.signs[0][bin] != 0 || table.signs[1][bin] != 0)
      signs << bin << table.signs[0][bin] << table.signs[1][bin];
  }
  json.member("octaves", octaves.text()).member("ranges", ranges.text()).member("signs", signs.text());
  json.member("error_k", error_ks.text()).member("apart", apart.text()).end_object();
}

}  // namespace attest
