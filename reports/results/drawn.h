// What a run drew, what of it was too little, and which laws about bits hold without a claim.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/journal/journal.h"

namespace attest {

/// A kind of cases that a property means little without (Property::wants) and that a kernel was judged on too rarely.
struct Scarce {
  std::string property, kernel, dtype;
  std::string what;         ///< "a mask that hides keys"
  std::int64_t cases = 0;   ///< judged cases that have it
  std::int64_t judged = 0;  ///< all judged cases
  std::int64_t enough = 0;  ///< so many would have done
  bool ruled_out = false;   ///< the kernel's manifest lets no case have it
};

/// How many judged cases of a wanted kind mean something where `cases` were asked for: 10, with which a fault that
/// shows in one such case of four is missed once in 18 runs; of less than 500 cases one in fifty, which a kind that is
/// drawn as often as the generators mean it to be reaches, so that a handful of cases, asked for on purpose, warns of
/// nothing.
[[nodiscard]] std::int64_t enough_of(std::int64_t cases);

/// What was scarce for one subject; nothing for a property that is not in the catalogue, for captured cases and where
/// no case was judged, which the verdict says already.
/// `masks_ruled_out`: as rules_masks_out says of the kernel's manifest.
[[nodiscard]] std::vector<Scarce> scarce_of(const Subject& subject, const Tally& tally, bool masks_ruled_out = false);

/// The manifest (JSON, as a journal has it) lists no kind of mask, so that none is sent. False where it does not say.
[[nodiscard]] bool rules_masks_out(const std::string& manifest);

/// A line for each property, with its scarcest subject and how many more there are; then one for each kernel whose
/// manifest rules out what properties are about, of which its user has nothing to be warned.
[[nodiscard]] std::vector<std::string> warning_lines(const std::vector<Scarce>& scarce);

/// Counts of a whole run, of all of its kernels. A case counts for every kernel that was judged on it.
struct DrawnTotals {
  struct Part {
    std::int64_t judged = 0;
    DrawnCounts counts;
    void add(const Tally& tally);
  };
  Part run;
  std::map<std::string, Part> by_dtype;
  std::map<std::pair<std::string, std::string>, Part> by_property;  ///< (property, dtype)

  void add(std::string_view property, std::string_view dtype, const Tally& tally);
};

/// Words of the generators for the kinds of cases of each operation that was drawn, in their order.
[[nodiscard]] std::vector<std::string> drawable(const DrawnCounts& counts);
/// Those of which no judged case was.
[[nodiscard]] std::set<std::string> never_drawn(const DrawnCounts& counts);

/// "satisfied bitwise", "not bitwise (99.2 % of elements agree)"; empty where nothing was compared without a claim.
[[nodiscard]] std::string bits_text(const Tally& tally);
/// "99.2 %", rounded down: "100 %" only where all agree. compared > 0.
[[nodiscard]] std::string share_text(std::int64_t part, std::int64_t whole);

}  // namespace attest
