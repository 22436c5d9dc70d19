// Noise: how far the figures of two runs of one kernel may lie apart, so that what lies farther is a change.
#pragma once

#include <cstdint>

#include "reports/results/figures.h"

namespace attest {

/// No difference is called a change whose chance, between two runs of one kernel, is larger than this: by subject.
inline constexpr double noise_chance = 1e-8;

/// Growth by less than this factor is none, however certain: the width of a bin of utilisation, a quarter octave.
inline constexpr double least_growth = 1.189207115002721;

/// An upper bound of the chance that of `now` cases as many as `now_above`, or more, lie above a mark where of `before`
/// cases `before_above` do, if both are drawn alike: exp(-n D), n the number above in both, D the relative entropy of
/// their share of the second run to its share of the cases. Holds for independent draws, for draws without replacement
/// (Hoeffding, 1963, theorems 1 and 4) and so whatever the distribution. 1 where the share did not grow.
[[nodiscard]] double chance_of_growth(std::int64_t before_above, std::int64_t before, std::int64_t now_above,
                                      std::int64_t now);

/// The bin of utilisation (Tally::histogram) above whose upper edge more cases lie now, by more than noise_chance
/// allows, than lay before above an edge that is least_growth lower: the errors grew by more than that. -1: none.
[[nodiscard]] int grown_beyond(const SubjectFigures& before, const SubjectFigures& now);

/// What the worst utilisation of `judged` cases exceeds with a chance of about worst_chance if they are drawn as those
/// before were: the tail above the largest twenty of them, or a few more, continued as an exponential one (Pickands,
/// 1975; utilisation ends at 1 for kernels that are right, so no tail is heavier in the end) with the mean excess two
/// standard errors above its estimate. Between seeds of one kernel 1 of 12 096 pairs exceeded what was expected with
/// a chance of 1e-4. Infinite where fewer than twenty cases had an error, or a case of before was violated.
inline constexpr double worst_chance = 1e-5;
[[nodiscard]] double worst_expected(const SubjectFigures& before, std::int64_t judged);

}  // namespace attest
