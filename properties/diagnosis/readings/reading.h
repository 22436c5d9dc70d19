// Readings: other problems that a wrong kernel may have taken a case for. Each file beside this one has those of one
// subject; misreadings.cc asks which of them its answers are right answers to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/problem/selection.h"
#include "properties/diagnosis/other_sights.h"

namespace attest {

/// Tiles and paths have such sizes.
inline constexpr std::int64_t tile_sizes[] = {2, 4, 8, 16, 32, 64, 128, 256};
inline constexpr const char* zero_values = "all values were 0";

/// A reading of one case.
struct MisreadProblem {
  std::string words;      ///< with a # for the size, where there is one
  std::int64_t size = 0;  ///< 0: none
  bool is_told = true;    ///< by a problem; else there is none of the case, which tells nothing of the reading then
  Case problem = {};
  /// Where its elements lie in an output that is no [batch, heads, M, dv].
  std::function<Tensor(const Tensor& out)> rearranged = {};
};

/// Collects those of a case, which outlives it, that are other problems than it is.
class Readings {
 public:
  explicit Readings(const Case& c) : c_(c), extents_(extents_of(c)) {}
  [[nodiscard]] const Case& problem() const { return c_; }
  [[nodiscard]] const Extents& extents() const { return extents_; }

  void add(std::string words, Case problem, std::function<Tensor(const Tensor&)> rearranged = {});
  void add_sized(std::string words, std::int64_t size, Case problem);
  void add_sight_of(MisreadSight reading);
  [[nodiscard]] std::vector<MisreadProblem> take() { return std::move(found_); }

 private:
  const Case& c_;
  const Extents extents_;
  std::vector<MisreadProblem> found_;
};

// What each subject adds. Of one sequence: lengths and packed sequences are taken apart before.
void read_scores(Readings& r);
void read_masks(Readings& r);
void read_causal_forms(Readings& r);
void read_windows_and_tiles(Readings& r);  ///< of sight, where the case says nothing of them
void read_keys(Readings& r);
void read_heads(Readings& r);
void read_batch_entries(Readings& r);
void read_columns(Readings& r);
void read_memory(Readings& r);
/// All of these, and those of variants.
[[nodiscard]] std::vector<MisreadProblem> readings_of(const Case& c);

/// The tensor with element e read from where `from` says.
[[nodiscard]] Tensor gathered(const Tensor& tensor, const std::function<std::int64_t(std::int64_t e)>& from);

}  // namespace attest
