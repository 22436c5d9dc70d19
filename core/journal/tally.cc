#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "core/journal/journal.h"
#include "core/measure/bins.h"

namespace attest {
namespace {

constexpr int first_exponent_quarters = -56;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Numbers before the first ';' become N; the digits of a word such as "f16" stay.
std::string reason_class(std::string_view reason) {
  const std::size_t own = std::min(reason.find(';'), reason.size());
  std::string text;
  for (std::size_t i = 0; i < own;) {
    if (!is_digit(reason[i]) || (i > 0 && is_word(reason[i - 1]))) {
      text += reason[i++];
      continue;
    }
    // A decimal number, its exponent included: "1.5e-07".
    while (i < own) {
      const bool exponent_sign = (reason[i] == '-' || reason[i] == '+') && reason[i - 1] == 'e';
      const bool point = reason[i] == '.' && i + 1 < own && is_digit(reason[i + 1]);
      if (!is_word(reason[i]) && !exponent_sign && !point) break;
      ++i;
    }
    text += 'N';
  }
  return text.append(reason.substr(own));
}

template <class Use>
void for_each_word(std::string_view words, Use use) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end > 0) use(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

/// Both are sorted, and most words are in both.
template <class Counts>
void add_counts(Counts& counts, const Counts& others) {
  auto place = counts.begin();
  for (const auto& [word, cases] : others) {
    std::strong_ordering order = std::strong_ordering::greater;
    while (place != counts.end() && (order = place->first <=> word) < 0) ++place;
    if (place != counts.end() && order == 0)
      place->second += cases;
    else
      counts.emplace_hint(place, word, cases);
  }
}

void count(DrawnCounts& counts, std::string_view word) {
  const auto found = counts.find(word);
  if (found == counts.end()) {
    counts.emplace(word, 1);
  } else {
    ++found->second;
  }
}

/// The smallest of both, so that the order of adding changes nothing.
void add_violations(std::vector<std::int64_t>& ks, std::span<const std::int64_t> others) {
  const bool ascends = ks.empty() || others.empty() || ks.back() < others.front();
  ks.insert(ks.end(), others.begin(), others.end());
  if (!ascends) std::ranges::sort(ks);
  if (ks.size() > violations_kept) ks.resize(violations_kept);
}

void take_reach(std::optional<Reach>& reach, const std::optional<Reach>& other) {
  if (!other) return;
  if (!reach) reach.emplace();
  reach->merge(*other);
}

/// "bits:zero", … by class.
const std::array<std::string, static_cast<std::size_t>(BitClass::count)>& bit_words() {
  static const auto words = [] {
    std::array<std::string, static_cast<std::size_t>(BitClass::count)> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = fmt::format("bits:{}", name_of(static_cast<BitClass>(i)));
    return all;
  }();
  return words;
}

}  // namespace

std::string Reason::text() const {
  return fmt::format("{}: {}", name_of(outcome), why);
}

std::strong_ordering Reason::operator<=>(const Reason& other) const {
  const std::strong_ordering by_outcome = name_of(outcome) <=> name_of(other.outcome);
  return by_outcome != 0 ? by_outcome : why <=> other.why;
}

std::size_t tally_bin(double utilisation) {
  if (!(utilisation > 0.0)) return 0;
  if (std::isinf(utilisation)) return 63;
  // Comparisons with the edges and no logarithm: every machine puts the same number in the same bin.
  int exponent = 0;
  const double twice = 2.0 * std::frexp(utilisation, &exponent);  // in [1, 2), utilisation = twice * 2^(exponent - 1)
  const int quarter = (twice > 0x1.306fe0a31b715p+0) + (twice > 0x1.6a09e667f3bcdp+0) + (twice > 0x1.ae89f995ad3adp+0);
  const int below = twice == 1.0 ? 1 : 0;  // a power of two is the upper edge of the bin before it
  return static_cast<std::size_t>(std::clamp(4 * (exponent - 1) + quarter - below - first_exponent_quarters, 0, 63));
}

void AlarmTally::add(std::int64_t k, const Alarm& alarm) {
  merge({alarm, alarm.beyond > 0 ? 1 : 0, alarm.elements > 0 ? k : -1});
}

void AlarmTally::merge(const AlarmTally& other) {
  const bool worse = other.all.worst > all.worst || (other.all.worst == all.worst && other.worst_k < worst_k);
  if (other.worst_k >= 0 && (worst_k < 0 || worse)) worst_k = other.worst_k;
  all.merge(other.all);
  cases += other.cases;
}

void Tally::add(std::int64_t k, const Verdict& verdict, std::string_view kinds, BitClasses bits, const Extents* shape) {
  if (verdict.alarm) {
    if (!alarm) alarm.emplace();
    alarm->add(k, *verdict.alarm);
  }
  switch (verdict.outcome) {
    case Outcome::held:
      ++held;
      break;
    case Outcome::violated:
      ++violated;
      add_violations(violated_k, std::span(&k, 1));
      break;
    case Outcome::skipped:
      ++skipped;
      break;
    case Outcome::excused:
      ++excused;
      break;
    case Outcome::inconclusive:
      ++inconclusive;
      break;
  }
  const bool judges = verdict.outcome == Outcome::held || verdict.outcome == Outcome::violated;
  if (shape != nullptr) shapes.add(*shape, judges);
  if (!judges) {
    ++reasons[{verdict.outcome, reason_class(verdict.reason)}];
    return;
  }
  const double utilisation =
      std::isnan(verdict.utilisation) ? std::numeric_limits<double>::infinity() : verdict.utilisation;
  if (worst_k < 0 || utilisation > worst_utilisation || (utilisation == worst_utilisation && k < worst_k)) {
    worst_utilisation = utilisation;
    worst_k = k;
  }
  ++level[static_cast<std::size_t>(std::clamp(verdict.level, 0, 3))];
  ++histogram[tally_bin(utilisation)];
  bits_agreed += verdict.bits_agreed;
  bits_compared += verdict.bits_compared;
  take_reach(reach, verdict.reach);
  if (verdict.errors && verdict.errors->elements > 0) errors.add(k, *verdict.errors, kinds);
  for_each_word(kinds, [&](std::string_view word) {
    if (word.find(':') != std::string_view::npos) count(drawn, word);
  });
  for (unsigned one = 0; one < static_cast<unsigned>(BitClass::count); ++one) {
    if ((bits >> one & 1U) != 0) count(drawn, bit_words()[one]);
  }
}

void Tally::count_drawn(std::string_view word) {
  count(drawn, word);
}

std::int64_t Tally::drawn_of(std::string_view any_of) const {
  std::int64_t cases = 0;
  for_each_word(any_of, [&](std::string_view word) {
    if (const auto found = drawn.find(word); found != drawn.end()) cases += found->second;
  });
  return cases;
}

void Tally::skip(std::int64_t count, std::string_view reason) {
  if (count == 0) return;
  skipped += count;
  reasons[{Outcome::skipped, reason_class(reason)}] += count;
}

void Tally::merge(const Tally& other) {
  held += other.held;
  violated += other.violated;
  skipped += other.skipped;
  excused += other.excused;
  inconclusive += other.inconclusive;
  add_violations(violated_k, other.violated_k);
  const bool worse = other.worst_utilisation > worst_utilisation ||
                     (other.worst_utilisation == worst_utilisation && other.worst_k < worst_k);
  if (other.worst_k >= 0 && (worst_k < 0 || worse)) {
    worst_utilisation = other.worst_utilisation;
    worst_k = other.worst_k;
  }
  for (std::size_t i = 0; i < level.size(); ++i) level[i] += other.level[i];
  for (std::size_t i = 0; i < histogram.size(); ++i) histogram[i] += other.histogram[i];
  add_counts(reasons, other.reasons);
  bits_agreed += other.bits_agreed;
  bits_compared += other.bits_compared;
  add_counts(drawn, other.drawn);
  errors.merge(other.errors);
  take_reach(reach, other.reach);
  shapes.merge(other.shapes);
  if (!other.alarm) return;
  if (!alarm) alarm.emplace();
  alarm->merge(*other.alarm);
}

double Tally::quantile(double fraction) const {
  const auto wanted = static_cast<std::int64_t>(std::ceil(fraction * static_cast<double>(judged())));
  if (judged() == 0) return 0.0;
  std::int64_t seen = 0;
  for (std::size_t i = 0; i + 1 < histogram.size(); ++i) {
    seen += histogram[i];
    const double edge = std::exp2(static_cast<double>(static_cast<int>(i) + 1 + first_exponent_quarters) / 4.0);
    if (seen >= wanted) return std::min(edge, worst_utilisation);
  }
  return worst_utilisation;
}

}  // namespace attest
