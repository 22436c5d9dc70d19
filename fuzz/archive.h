// Archive: the worst case so far in each cell of a grid of features, from which a campaign breeds the next ones
// (Mouret and Clune 2015, MAP-Elites, with utilisation in the place of fitness). A corpus that keeps the smallest input
// per feature, as libFuzzer's does, forgets how bad an input was; this keeps just that.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/measure/verdict.h"
#include "fuzz/input.h"
#include "properties/generators/stream.h"

namespace attest {

/// What kind of case it is, as far as a search should not give up one kind for another: how many keys (0, 1, 2, 4, 8,
/// 16, 32, 64 or more), whether the mask hides, adds or does both, whether a score can be larger than 64, and how far
/// the bound lies below the largest value (in steps of twelve octaves). Few cells on purpose: on correct kernels 224
/// filled ones found worse cases than 800 did, and those worse than 4500, as each cell is bred from the more often.
[[nodiscard]] std::uint32_t cell_of(const Case& c, const Verdict& verdict);
inline constexpr std::uint32_t cell_count = 256;

/// attention.finite or multihead.finite: held or not, and no error says how nearly.
[[nodiscard]] bool asks_for_finiteness(const Property& property);

/// How bad a held case is, larger is worse; negative: it says nothing (skipped, excused, not decided, violated). For a
/// property that asks for finiteness how near to the largest number of the dtype its products come, 0 to 1; for every
/// other property the utilisation. That leaves out rows whose bound accepts every mean of the values: they are
/// excused (ElementBound::vacuous).
[[nodiscard]] double quality_of(const Property& property, const Case& c, const Verdict& verdict);

/// A coarse kind of case, by which findings that are probably one are told apart: "no mask, 2 to 16 keys".
[[nodiscard]] std::string place_of(const Case& c);

/// One thread at a time. A value type.
class Archive {
 public:
  struct Entry {
    std::uint32_t cell = 0;
    double quality = 0;
    std::int64_t k = 0;     ///< the run that found it
    std::int64_t work = 0;  ///< of judging its case (work_of)
    Input input;
  };

  /// Keeps the input where the cell is empty or holds a better case. True when it did.
  bool offer(Entry entry);
  /// Whether offer would keep it.
  [[nodiscard]] bool wants(std::uint32_t cell, double quality) const;
  /// Of a random cell, or, one time in two, the worst of four; a case that costs many times cheap_work is taken that
  /// many times less often, so that a few long ones do not use up the time. The archive is not empty.
  [[nodiscard]] const Input& pick(Stream& stream) const;
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// 0 where it is empty.
  [[nodiscard]] double worst() const { return worst_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::uint32_t, std::size_t> place_;
  double worst_ = 0;
};

/// A line that names the form, then one per entry, in the order of the cells; inputs as hexadecimal digits.
[[nodiscard]] std::string to_text(const Archive& archive);
/// Throws UsageError "SOURCE, line 3: …" for a line that is not what to_text writes.
[[nodiscard]] Archive parse_archive(std::string_view text, std::string_view source, const Property& property,
                                    DType dtype);

}  // namespace attest
