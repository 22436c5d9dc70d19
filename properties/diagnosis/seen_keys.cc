#include "properties/diagnosis/seen_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/kernel/limits.h"
#include "properties/arrangement/arrange.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

std::vector<std::int64_t> keys_of(const Sight& sight) {
  std::vector<std::int64_t> keys;
  for (std::int64_t j = sight.first; j < sight.last; ++j) keys.push_back(j);
  return keys;
}

/// "keys 3..5", "keys 0..1 and 4", "no key".
std::string words_of(const std::vector<std::int64_t>& keys) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < keys.size();) {
    std::size_t last = first;
    while (last + 1 < keys.size() && keys[last + 1] == keys[last] + 1) ++last;
    runs.push_back(last == first ? fmt::format("{}", keys[first]) : fmt::format("{}..{}", keys[first], keys[last]));
    first = last + 1;
  }
  if (keys.empty()) return "no key";
  return fmt::format("{} {}", keys.size() == 1 ? "key" : "keys", fmt::join(runs, " and "));
}

bool fits_row(const SeenKeys& seen, const Sight& sight, std::int64_t keys) {
  const std::vector<std::int64_t> expected = keys_of(sight);
  if (!seen) return expected.empty();
  return *seen == expected || (expected.empty() && static_cast<std::int64_t>(seen->size()) == keys);
}

bool is_as_asked(const SeenRows& rows) {
  return rows.fits(sight);
}

/// The weights of `columns` more keys, by row; why there are none where heads or batch entries differ.
std::string take(const Values& out, std::int64_t columns, std::vector<std::vector<double>>& weights) {
  const Shape shape = out.shape();
  const std::int64_t rows = shape[2], dv = shape[3], heads = shape[0] * shape[1];
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const double weight = out[i * dv + j];
      for (std::int64_t h = 1; h < heads; ++h) {
        const double other = out[(h * rows + i) * dv + j];
        if (other != weight && !(std::isnan(other) && std::isnan(weight)))
          return fmt::format("row {} of head {} answers {:.6g} where head 0 answers {:.6g}", i, h, other, weight);
      }
      weights[static_cast<std::size_t>(i)].push_back(weight);
    }
  }
  return {};
}

/// The keys with weights; all must have the same, 1 over how many they are.
SeenKeys seen_in(const std::vector<double>& weights, std::string& why) {
  if (std::ranges::all_of(weights, [](double w) { return std::isnan(w); })) return std::nullopt;
  if (std::ranges::all_of(weights, [](double w) { return w == 0; })) return std::nullopt;
  std::vector<std::int64_t> keys;
  for (std::size_t j = 0; j < weights.size(); ++j)
    if (weights[j] != 0) keys.push_back(static_cast<std::int64_t>(j));
  const double even = 1.0 / static_cast<double>(keys.size());
  // Further than any format rounds.
  const auto is_even = [&](std::int64_t j) {
    return std::fabs(weights[static_cast<std::size_t>(j)] - even) <= even / 4;
  };
  if (!std::ranges::all_of(keys, is_even))
    why = fmt::format("answers the weights {:.4g}, which are not 1/n on n keys", fmt::join(weights, " "));
  return keys;
}

/// The row that shows best what is wrong: of the fewest keys among those that see some, where some are asked for.
std::string difference(std::span<const SeenRows> all, std::string (*words_of_rule)(const SightRule& asked)) {
  std::string words;
  std::size_t least = 0;
  for (const SeenRows& one : all) {
    for (std::int64_t i = 0; i < one.rows; ++i) {
      const SeenKeys& seen = one.seen[static_cast<std::size_t>(i)];
      const Sight asked = sight(one.asked, i, one.rows, one.keys);
      if (fits_row(seen, asked, one.keys)) continue;
      const std::vector<std::int64_t> found = seen.value_or(std::vector<std::int64_t>()), right = keys_of(asked);
      const std::size_t size = found.empty() || right.empty() ? 1000000 : found.size() + right.size();
      if (!words.empty() && size >= least) continue;
      least = size;
      words = fmt::format("Row {} sees {} where {} asks for {} ({})", i, words_of(found), words_of_rule(one.asked),
                          words_of(right), one.place());
    }
  }
  return words;
}

}  // namespace

std::string SeenRows::place() const {
  return fmt::format("{}, {} queries and {} keys", name_of(asked.alignment), rows, keys);
}

bool SeenRows::fits(const SightOf& reading) const {
  for (std::int64_t i = 0; i < rows; ++i)
    if (!fits_row(seen[static_cast<std::size_t>(i)], reading(asked, i, rows, keys), keys)) return false;
  return true;
}

void Served::add(const Looked& looked) {
  ++asked;
  if (!looked.why.empty()) {
    if (looked.status != CallStatus::unsupported) right = false;
    // What is wrong is worth more than what is refused.
    if (why.empty() || (refusal == CallStatus::unsupported && looked.status != refusal))
      refusal = looked.status, why = looked.why;
  } else if (!looked.rows.seen.empty()) {
    ++answered;
    right = right && is_as_asked(looked.rows);
    seen.push_back(looked.rows);
  }
}

std::vector<std::pair<std::int64_t, std::int64_t>> lengths_to_look_at(const Manifest& m) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (const auto& [rows, keys] : {std::pair(6, 9), std::pair(9, 5), std::pair(7, 7)}) {
    std::pair one{allowed_queries(m).nearest(rows), allowed_keys(m).nearest(keys)};
    if (m.same_lengths) one.first = one.second = allowed_tokens(m).nearest(keys);
    if (one.second > 0 && std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
  return all;
}

Case case_to_look_at(ProbeQuestions& probe, const VariantTerms& terms, const SightRule& rule, std::int64_t rows,
                     std::int64_t keys) {
  ProbeSize s = probe.size();
  s.queries = rows, s.keys = keys;
  Case c = probe.plain(s);
  c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
  const auto required = [&](Feature feature) { return std::ranges::count(terms.required, feature) > 0; };
  const bool causal = required(Feature::causal) || required(Feature::top_left) || required(Feature::bottom_right);
  c.causal = causal ? rule.alignment : rule.causal;
  if (required(Feature::mask) || required(Feature::bool_mask) || required(Feature::additive_mask)) {
    const bool boolean = probe.manifest().bool_masks && !required(Feature::additive_mask);
    const Tensor zeros(boolean ? DType::boolean : probe.dtype(), {1, 1, rows, keys});
    c[Slot::mask] = mapped(zeros, [&](std::int64_t, double) { return boolean ? 1.0 : 0.0; });
  }
  c.window_left = rule.window_left, c.window_right = rule.window_right, c.attention_chunk = rule.chunk;
  c.alignment = rule.alignment;
  return c;
}

Looked look_at(ProbeQuestions& probe, Case c, const std::string& words) {
  const std::int64_t rows = queries_of(c), keys = attest::keys_of(c), dv = c.v().shape()[3];
  Looked looked{.rows = {sight_rule(c), rows, keys, {}}};
  std::vector<std::vector<double>> weights(static_cast<std::size_t>(rows));
  for (std::int64_t first = 0; first < keys; first += dv) {
    c[Slot::v] = mapped(c.v(), [&](std::int64_t e, double) { return e / dv % keys == first + e % dv ? 1.0 : 0.0; });
    const Reply reply = probe.kernel().run(c);
    looked.status = reply.status;
    if (reply.status != CallStatus::ok) {
      // Rows without a key are invalid to some.
      if (reply.status != CallStatus::rejected || !has_fully_masked_row(c))
        looked.why = ending_text(reply.status, reply.message);
      return looked;
    }
    looked.why = take(reply.out, std::min(dv, keys - first), weights);
    if (looked.why.empty()) continue;
    looked.status = CallStatus::failed;
    return looked;
  }
  std::vector<SeenKeys> seen;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    seen.push_back(seen_in(weights[i], looked.why));
    if (looked.why.empty()) continue;
    looked.why = fmt::format("{}, {}: row {} {}", words, looked.rows.place(), i, looked.why);
    looked.status = CallStatus::failed;
    return looked;
  }
  looked.rows.seen = std::move(seen);
  return looked;
}

ProbeAnswer answer_about_sights(std::string question, bool declared, const Served& served, const SightsFound& found,
                                std::string_view what, std::string (*words)(const SightRule& asked)) {
  ProbeAnswer answer{.question = std::move(question), .declared = yes_or_no(declared), .found = ""};
  if (served.asked == 0) {
    answer.found = fmt::format("not asked: no {} are allowed beside what else the manifest asks for", what);
  } else if (!served.why.empty() && (served.seen.empty() || served.refusal != CallStatus::unsupported)) {
    answer.found = served.why;
    answer.contradicts = declared && served.refusal != CallStatus::unsupported;
  } else {
    const std::string shown = difference(served.seen, words);
    answer.found = found.words.empty() ? "keys that fit no reading" : fmt::format("{}", fmt::join(found.words, " or "));
    answer.evidence =
        shown.empty() ? fmt::format("Every row of {} {} sees the keys asked for", served.seen.size(), what) : shown;
    if (!shown.empty() && !found.remedy.empty()) answer.evidence += ". " + found.remedy;
    answer.contradicts = declared && !shown.empty();
    answer.beyond = !declared && shown.empty();
  }
  return answer;
}

}  // namespace attest
