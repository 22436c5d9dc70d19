#include "reports/results/error_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <utility>

#include "core/problem/cost.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// "head 2 of 4", "queries 16-31 of 32", "every column"; counted from 0.
std::string axis_text(const std::vector<bool>& wrong, std::string_view one, std::string_view several) {
  const auto size = std::ssize(wrong), count = std::ranges::count(wrong, true);
  if (count == size) return fmt::format("every {}", one);
  if (count == 1) return fmt::format("{} {} of {}", one, std::ranges::find(wrong, true) - wrong.begin(), size);
  constexpr std::size_t most = 4;
  std::vector<std::string> ranges;
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    if (!wrong[static_cast<std::size_t>(i)]) continue;
    std::ptrdiff_t last = i;
    while (last + 1 < size && wrong[static_cast<std::size_t>(last + 1)]) ++last;
    ranges.push_back(last == i ? fmt::format("{}", i) : fmt::format("{}-{}", i, last));
    i = last;
  }
  if (ranges.size() > most) return fmt::format("{} of {} {}", count, size, several);
  return fmt::format("{} {} of {}", several, fmt::join(ranges, ", "), size);
}

}  // namespace

double share_of_allowed(double found, const ElementFacts& facts) {
  if (!facts.required) return 0;
  const double error = std::max(std::abs(found - facts.exact.lower), std::abs(found - facts.exact.upper));
  // NaN first: it compares with nothing.
  if (std::isnan(error) || std::isnan(facts.allowed)) return std::numeric_limits<double>::infinity();
  if (error == 0 || std::isinf(facts.allowed)) return 0;
  return error / facts.allowed;
}

std::int64_t ErrorMap::wrong() const {
  return std::ranges::count_if(shares, [](double share) { return !(share <= 1); });
}

std::optional<ErrorMap> error_map(const AnsweredCase& c, const Manifest& manifest) {
  // A second, say.
  constexpr double most = 1 << 24;
  const Case& problem = c.value;
  if (problem.operation != Operation::attention || !c.found.present() || cost_of(problem) > most) return std::nullopt;
  const Extents e = extents_of(problem);
  Arithmetic arithmetic = manifest.arithmetic_for(problem);
  arithmetic.output = c.found.dtype();
  const std::vector<ElementFacts> facts = exact_elements(problem, arithmetic);
  ErrorMap map{e.batch, e.heads, e.queries, e.dv, {}};
  map.shares.reserve(facts.size());
  for (std::size_t i = 0; i < facts.size(); ++i)
    map.shares.push_back(share_of_allowed(c.found[static_cast<std::int64_t>(i)], facts[i]));
  return map;
}

std::string where_wrong(const ErrorMap& map) {
  const std::int64_t count = map.wrong();
  if (count == 0) return {};
  const std::array extents{map.batch, map.heads, map.queries, map.columns};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> names{
      {{"batch entry", "batch entries"}, {"head", "heads"}, {"query", "queries"}, {"column", "columns"}}};
  std::array<std::vector<bool>, 4> wrong;
  for (std::size_t axis = 0; axis < wrong.size(); ++axis) wrong[axis].resize(static_cast<std::size_t>(extents[axis]));
  for (std::size_t i = 0; i < map.shares.size(); ++i) {
    if (map.shares[i] <= 1) continue;
    std::size_t rest = i;
    for (std::size_t axis = wrong.size(); axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(extents[axis]);
      wrong[axis][rest % extent] = true;
      rest /= extent;
    }
  }
  std::string words = fmt::format("{} of {} elements", with_commas(count), with_commas(std::ssize(map.shares)));
  const char* separator = ": ";
  for (std::size_t axis = 0; axis < wrong.size(); ++axis) {
    if (extents[axis] == 1) continue;
    words += separator + axis_text(wrong[axis], names[axis].first, names[axis].second);
    separator = ", ";
  }
  return words;
}

}  // namespace attest
