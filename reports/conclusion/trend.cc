#include "reports/conclusion/trend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "reports/text/text.h"

namespace attest {
namespace {

using Key = std::pair<std::string, std::string>;  ///< kernel and dtype

/// The name, unless another kernel of the run has it in the same dtype.
std::string name_in(const Figures& run, const KernelFigures& kernel) {
  const auto same = [&](const KernelFigures& other) {
    return other.id != kernel.id && other.name == kernel.name && other.dtype == kernel.dtype;
  };
  return std::ranges::any_of(run.kernels, same) ? kernel.id : kernel.name;
}

TrendPoint point_of(const Figures& run, const KernelFigures& kernel) {
  TrendPoint point;
  bool any = false;
  for (const SubjectFigures& one : run.subjects) {
    if (one.subject.kernel != kernel.id || one.subject.dtype != kernel.dtype) continue;
    point.judged += one.judged;
    const double worst =
        std::isnan(one.worst_utilisation) ? std::numeric_limits<double>::infinity() : one.worst_utilisation;
    if (one.judged > 0) point.worst = std::max(point.worst, worst);
    if (one.verdict == Outcome::skipped) continue;
    if (!any || distance_from_held(one.verdict) > distance_from_held(point.verdict)) point.verdict = one.verdict;
    any = true;
  }
  return point;
}

std::string_view mark_of(const std::optional<TrendPoint>& point) {
  static constexpr std::array<std::string_view, 8> eighths{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (!point) return "·";
  if (point->verdict == Outcome::violated || !(point->worst <= 1)) return "!";
  return eighths.at(std::min<std::size_t>(static_cast<std::size_t>(point->worst * 8), 7));
}

/// "worst share 0.31 to 0.62, highest 0.62 in night-3; violated in night-4"
std::string words_of(const Trend& trend, std::span<const std::string> names) {
  const TrendPoint *first = nullptr, *last = nullptr, *highest = nullptr;
  std::string highest_in;
  std::vector<std::string> violated;
  for (std::size_t i = 0; i < trend.points.size(); ++i) {
    if (!trend.points[i]) continue;
    const TrendPoint& point = *trend.points[i];
    if (point.verdict == Outcome::violated) violated.push_back(one_line(names[i]));
    if (point.verdict == Outcome::violated || point.judged == 0) continue;
    if (first == nullptr) first = &point;
    last = &point;
    if (highest == nullptr || point.worst > highest->worst) highest = &point, highest_in = one_line(names[i]);
  }
  std::string words;
  if (first != nullptr) {
    words = fmt::format("worst share {} to {}, highest {} in {}", short_number(first->worst), short_number(last->worst),
                        short_number(highest->worst), highest_in);
  }
  if (!violated.empty()) words += fmt::format("{}violated in {}", words.empty() ? "" : "; ", fmt::join(violated, ", "));
  return words.empty() ? "no case was judged" : words;
}

}  // namespace

int distance_from_held(Outcome outcome) {
  switch (outcome) {
    case Outcome::held:
      return 0;
    case Outcome::skipped:
    case Outcome::excused:
      return 1;
    case Outcome::inconclusive:
      return 2;
    case Outcome::violated:
      return 3;
  }
  return 3;
}

std::vector<Trend> trends_of(std::span<const Figures> runs) {
  std::map<Key, std::vector<std::optional<TrendPoint>>> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const KernelFigures& kernel : runs[i].kernels) {
      auto& points = all[{name_in(runs[i], kernel), kernel.dtype}];
      points.resize(runs.size());
      points[i] = point_of(runs[i], kernel);
    }
  }
  std::vector<Trend> trends;
  trends.reserve(all.size());
  for (auto& [key, points] : all) trends.push_back({key.first, key.second, std::move(points)});
  return trends;
}

std::string trends_text(std::span<const Trend> trends, std::span<const std::string> names) {
  std::size_t kernels = 0, dtypes = 0;
  for (const Trend& trend : trends) {
    kernels = std::max(kernels, one_line(trend.kernel).size());
    dtypes = std::max(dtypes, trend.dtype.size());
  }
  std::string text;
  for (const Trend& trend : trends) {
    text += fmt::format("{:<{}}  {:<{}}  ", one_line(trend.kernel), kernels, one_line(trend.dtype), dtypes);
    for (const std::optional<TrendPoint>& point : trend.points) text += mark_of(point);
    text += fmt::format("  {}\n", words_of(trend, names));
  }
  return text;
}

void write_trends(JsonWriter& json, std::span<const Trend> trends, std::span<const std::string> names) {
  json.begin_array();
  for (const Trend& trend : trends) {
    json.begin_object().member("kernel", trend.kernel).member("dtype", trend.dtype).key("runs").begin_array();
    for (std::size_t i = 0; i < trend.points.size(); ++i) {
      const std::optional<TrendPoint>& point = trend.points[i];
      if (!point) {
        json.raw("null");
        continue;
      }
      json.begin_object().member("run", names[i]).member("verdict", name_of(point->verdict));
      json.member("judged", point->judged).member("worst", point->worst).end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

}  // namespace attest
