#include "reports/results/drawn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "properties/catalogue/property.h"
#include "properties/generators/recipe.h"
#include "reports/text/text.h"

namespace attest {

std::int64_t enough_of(std::int64_t cases) {
  return std::min<std::int64_t>(10, cases / 50);
}

namespace {

/// Every word of the want is of a mask.
bool is_about_masks(const Want& want) {
  return std::ranges::all_of(want.any_of | std::views::split(' '), [](const auto& word) {
    return std::string_view(word.begin(), word.end()).starts_with("mask:");
  });
}

}  // namespace

bool rules_masks_out(const std::string& manifest) {
  const auto json = nlohmann::json::parse(manifest, nullptr, /*allow_exceptions=*/false);
  const auto empty = [&](const char* list) {
    const auto found = json.find(list);
    return found != json.end() && found->is_array() && found->empty();
  };
  return json.is_object() && empty("masks");
}

std::vector<Scarce> scarce_of(const Subject& subject, const Tally& tally, bool masks_ruled_out) {
  const auto property = std::ranges::find(catalogue(), subject.property, &Property::name);
  if (property == catalogue().end() || tally.drawn.empty()) return {};
  std::vector<Scarce> scarce;
  const std::int64_t enough = enough_of(tally.cases());
  for (const Want& want : (*property)->wants) {
    const std::int64_t cases = tally.drawn_of(want.any_of);
    if (cases >= enough) continue;
    scarce.push_back({subject.property, subject.kernel, subject.dtype, std::string(want.what), cases, tally.judged(),
                      enough,
                      /*ruled_out=*/masks_ruled_out && cases == 0 && is_about_masks(want)});
  }
  return scarce;
}

std::vector<std::string> warning_lines(const std::vector<Scarce>& scarce) {
  std::map<std::string, const Scarce*> scarcest;
  std::map<std::string, std::set<std::pair<std::string, std::string>>> subjects;
  // Properties by kernel, and by whether it is causal forms that the manifest does not list, or masks.
  std::map<std::pair<std::string, bool>, std::set<std::string>> ruled_out;
  for (const Scarce& one : scarce) {
    if (one.ruled_out) {
      ruled_out[{one.kernel, one.what == "a causal form"}].insert(one.property);
      continue;
    }
    const Scarce*& kept = scarcest[one.property];
    if (kept == nullptr || one.cases < kept->cases) kept = &one;
    subjects[one.property].emplace(one.kernel, one.dtype);
  }
  std::vector<std::string> lines;
  for (const auto& [property, one] : scarcest) {
    const std::size_t more = subjects[property].size() - 1;
    lines.push_back(
        fmt::format("warning: {} says little about {} in {}: {} of its {} judged cases {} {}, fewer than {}{}\n",
                    one_line(property), one_line(one->kernel), one_line(one->dtype), one->cases, one->judged,
                    one->cases == 1 ? "has" : "have", one->what, one->enough,
                    more == 0 ? "" : fmt::format("; the same for {} more in the report", more)));
  }
  for (const auto& [kernel_and_what, properties] : ruled_out) {
    const auto& [kernel, causal] = kernel_and_what;
    lines.push_back(
        fmt::format("note on {}: its manifest {}: {}\n", one_line(kernel),
                    causal ? "lists no causal form; judged without one" : "rules masks out; judged without a mask",
                    some_of(properties)));
  }
  return lines;
}

void DrawnTotals::Part::add(const Tally& tally) {
  judged += tally.judged();
  for (const auto& [word, cases] : tally.drawn) counts[word] += cases;
}

void DrawnTotals::add(std::string_view property, std::string_view dtype, const Tally& tally) {
  if (tally.drawn.empty()) return;
  run.add(tally);
  by_dtype[std::string(dtype)].add(tally);
  by_property[{std::string(property), std::string(dtype)}].add(tally);
}

std::vector<std::string> drawable(const DrawnCounts& counts) {
  std::vector<std::string> words;
  for (const Operation operation : {Operation::attention, Operation::multihead}) {
    const std::string_view first = operation == Operation::attention ? "scores:" : "matrices:";
    if (std::ranges::none_of(counts, [&](const auto& one) { return one.first.starts_with(first); })) continue;
    const bool has_gradients =
        std::ranges::any_of(counts, [](const auto& one) { return one.first.starts_with("loss:"); });
    std::ranges::copy_if(all_kinds(operation), std::back_inserter(words),
                         [&](const std::string& word) { return has_gradients || !word.starts_with("loss:"); });
  }
  return words;
}

std::set<std::string> never_drawn(const DrawnCounts& counts) {
  std::set<std::string> never;
  for (const std::string& word : drawable(counts))
    if (!counts.contains(word)) never.insert(word);
  return never;
}

std::string share_text(std::int64_t part, std::int64_t whole) {
  if (part == whole) return "100 %";
  const double thousandths = std::floor(1000.0 * static_cast<double>(part) / static_cast<double>(whole));
  return fmt::format("{:.1f} %", std::min(thousandths, 999.0) / 10);
}

std::string bits_text(const Tally& tally) {
  if (tally.bits_compared == 0) return {};
  if (tally.bits_agreed == tally.bits_compared) return "satisfied bitwise";
  return fmt::format("not bitwise ({} of elements agree)", share_text(tally.bits_agreed, tally.bits_compared));
}

}  // namespace attest
