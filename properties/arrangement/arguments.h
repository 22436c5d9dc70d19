// Arguments of a case: what a property chooses beside the tensors (a row, a permutation, a number of repeats). They are
// functions of the case's own seed, so that a saved case replays, and always in range, so that it shrinks.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/case.h"
#include "core/problem/selection.h"

namespace attest {

/// A number in [0, extent), extent >= 1. Metadata "arguments" may state it ("i=2 s=0", taken modulo extent); else it is
/// drawn from the provenance's seed and k, and from the name.
[[nodiscard]] std::int64_t argument(const Case& c, std::string_view name, std::int64_t extent);

/// A permutation of 0 … extent - 1, drawn likewise; never the identity where extent >= 2.
[[nodiscard]] Indices permutation_argument(const Case& c, std::string_view name, std::int64_t extent);

/// 64 random bits, drawn likewise: the seed of whatever else a property draws.
[[nodiscard]] std::uint64_t seed_argument(const Case& c, std::string_view name);

/// The names that this thread has asked for while it lives, with the extents of numbers: "i" where they differ from
/// case to case, "poison/6" where they are one. What a test records of a property. One at a time.
class ArgumentsAsked {
 public:
  ArgumentsAsked();
  ~ArgumentsAsked();
  ArgumentsAsked(const ArgumentsAsked&) = delete;
  ArgumentsAsked& operator=(const ArgumentsAsked&) = delete;
  [[nodiscard]] std::vector<std::string> names() const;
  void note(std::string_view name, std::int64_t extent);

 private:
  std::map<std::string, std::set<std::int64_t>, std::less<>> extents_;
};

}  // namespace attest
