// Merging tallies is associative and commutative, and the same as counting in one go: for any verdicts.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/journal.h"

namespace rc {

/// Numbers of all kinds in the place of RapidCheck's doubles, which are never infinite, nor 0 with a sign.
Gen<double> utilisations() {
  return gen::oneOf(gen::map(gen::inRange(0, 4000), [](int n) { return n / 1000.0; }),
                    gen::element(0.0, 1.0, 2.0, 1e-300, 1e300, std::numeric_limits<double>::infinity()));
}

template <>
struct Arbitrary<attest::Verdict> {
  static Gen<attest::Verdict> arbitrary() {
    using V = attest::Verdict;
    return gen::build<V>(
        gen::set(&V::outcome, gen::map(gen::inRange(0, 5), [](int o) { return static_cast<attest::Outcome>(o); })),
        gen::set(&V::reason, gen::element<std::string>("", "has 3 queries", "memory ran out; says 7", "é\n")),
        gen::set(&V::utilisation, utilisations()), gen::set(&V::level, gen::inRange(0, 4)),
        gen::set(&V::bits_agreed, gen::inRange<std::int64_t>(0, 9)),
        gen::set(&V::bits_compared, gen::inRange<std::int64_t>(9, 99)));
  }
};

}  // namespace rc

namespace attest {
namespace {

using Verdicts = std::vector<Verdict>;

/// Case `first` and those after it.
Tally counted(const Verdicts& verdicts, std::int64_t first) {
  Tally tally;
  for (const Verdict& verdict : verdicts) tally.add(first++, verdict, "scores:gaussian mask:none");
  return tally;
}

Tally merged(Tally a, const Tally& b) {
  a.merge(b);
  return a;
}

std::int64_t size(const Verdicts& verdicts) {
  return static_cast<std::int64_t>(verdicts.size());
}

RC_GTEST_PROP(TallyLaws, MergesInAnyOrder, (const Verdicts& first, const Verdicts& second, const Verdicts& third)) {
  const Tally a = counted(first, 0), b = counted(second, size(first)), c = counted(third, size(first) + size(second));
  RC_ASSERT(merged(a, b) == merged(b, a));
  RC_ASSERT(merged(merged(a, b), c) == merged(a, merged(b, c)));
}

RC_GTEST_PROP(TallyLaws, CountsInPartsWhatItCountsInOneGo, (const Verdicts& first, const Verdicts& second)) {
  Verdicts both = first;
  both.insert(both.end(), second.begin(), second.end());
  RC_ASSERT(merged(counted(first, 0), counted(second, size(first))) == counted(both, 0));
  RC_ASSERT(counted(both, 0).cases() == size(both));
}

}  // namespace
}  // namespace attest
