// The road of a case: drawn, captured or bred, arranged for a kernel, checked. A check, a campaign, an audit, a
// self-test, a trial of a tolerance, a replay and <attest/gtest.h> all send their cases along it; they differ in where
// the cases come from and in what they keep of the verdicts.
#pragma once

#include <cstdint>
#include <functional>

#include "properties/catalogue/property.h"
#include "properties/road/watched_kernel.h"

namespace attest {

/// What is asked of a kernel: a property of cases in a dtype.
struct Target {
  const Property* property = nullptr;
  DType dtype = DType::f32;
};

/// What is done with a case on its way: by the properties' library in the program, by fakes in tests, by the comparison
/// of two kernels (against.h). Called from several threads.
struct Road {
  std::function<Case(const Property&, DType, std::uint64_t seed, std::int64_t k)> generate =
      [](const Property& property, DType dtype, std::uint64_t seed, std::int64_t k) {
        return attest::generate(property, dtype, seed, k, default_shapes);
      };
  std::function<Case(Case, const Manifest&)> project = attest::project;
  std::function<Verdict(const Property&, Kernel&, const Case&)> check =
      [](const Property& property, Kernel& kernel, const Case& c) { return check_case(property, kernel, c); };
  std::function<Case(const Property&, Kernel&, const Case&, int budget)> shrink = attest::shrink;
};
/// The properties' road, on which is judged as it is asked for.
[[nodiscard]] Road road_judging(const Judging& judging);
/// The road with the shapes that a run asks for.
[[nodiscard]] Road with_shapes(Road road, Shapes shapes);
/// A road for cases that are judged as they are: what a manifest rules out is skipped, not cropped.
[[nodiscard]] Road without_projection(Road road);

/// A case that went the road.
struct Walked {
  Case problem;  ///< as the kernel got it; empty where memory ran out as it was drawn
  Verdict verdict;
  BitClasses sent = 0;  ///< in all calls that the verdict took

  [[nodiscard]] bool is(Outcome outcome) const { return verdict.outcome == outcome; }
};

/// Sends a case along the road. Skipped, with that reason, where the kernel has no entry for the property's operation,
/// where memory runs out as the case is drawn, and where the property holds without an answer of the kernel: of no row
/// at all everything is true, and without keys a kernel may refuse. (The core is also looked into by itself.)
/// Throws Abandoned where the run is to end.
[[nodiscard]] Walked walk(const Road& road, const Property& property, WatchedKernel& kernel,
                          const std::function<Case()>& draw);

}  // namespace attest
