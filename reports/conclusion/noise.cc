#include "reports/conclusion/noise.h"

#include <algorithm>
#include <cmath>

#include "core/support/infinity.h"

namespace attest {
namespace {

constexpr int bins = 64;

/// The upper edge of a bin of Tally::histogram.
double upper_edge(int bin) {
  return std::exp2((bin - 55) / 4.0);
}

std::int64_t above(const SubjectFigures& figures, int bin) {
  std::int64_t cases = 0;
  for (int i = bin + 1; i < bins; ++i) cases += figures.histogram.at(static_cast<std::size_t>(i));
  return cases;
}

}  // namespace

double chance_of_growth(std::int64_t before_above, std::int64_t before, std::int64_t now_above, std::int64_t now) {
  if (before <= 0 || now <= 0 || now_above <= 0) return 1;
  const double all = static_cast<double>(before_above) + static_cast<double>(now_above);
  const double share = static_cast<double>(now_above) / all;
  const double expected = static_cast<double>(now) / (static_cast<double>(before) + static_cast<double>(now));
  if (share <= expected) return 1;
  double entropy = share * std::log(share / expected);
  if (share < 1) entropy += (1 - share) * std::log((1 - share) / (1 - expected));
  return std::exp(-all * entropy);
}

int grown_beyond(const SubjectFigures& before, const SubjectFigures& now) {
  // One chance for every mark.
  for (int bin = bins - 2; bin >= 1; --bin) {
    if (chance_of_growth(above(before, bin - 1), before.judged, above(now, bin), now.judged) < noise_chance / bins)
      return bin;
  }
  return -1;
}

double worst_expected(const SubjectFigures& before, std::int64_t judged) {
  constexpr std::int64_t enough = 20;
  if (!(before.worst_utilisation <= 1)) return infinity;
  int bin = bins - 1;
  std::int64_t tail = 0;
  double sum = 0;
  // What lies in the first bin may be no error at all.
  for (; bin >= 1 && tail < enough; --bin) {
    const std::int64_t cases = before.histogram.at(static_cast<std::size_t>(bin));
    tail += cases;
    // The upper edge stands for the cases below it: a larger excess, a wider band.
    sum += static_cast<double>(cases) * upper_edge(bin);
  }
  if (tail < enough || judged <= 0) return infinity;
  const double start = upper_edge(bin), count = static_cast<double>(tail);
  const double excess = (sum / count - start) * (1 + 2 / std::sqrt(count));
  const double expected = count * static_cast<double>(judged) / static_cast<double>(before.judged);
  return std::max(before.worst_utilisation, start + excess * std::log(std::max(expected / worst_chance, 1.0)));
}

}  // namespace attest
