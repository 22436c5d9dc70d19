// What of a case's gradients is judged where all of them would take too long. A row's gradient by q needs that row
// alone; those of a key need every row of the heads that read it, so that of keys and values whole heads are judged.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem/problem.h"
#include "core/problem/sequences.h"

namespace attest::detail {

class Portion {
 public:
  /// About `rows` rows of the output in all, 0 being all: the same share of each head, and those that read one head of
  /// k and v at the least where a gradient by these is `wanted`. All rows where one by an argument is that rows of
  /// several heads may share, a mask or sinks: it is a sum over them.
  Portion(const Problem& c, std::int64_t rows, const GradientChoice& wanted);

  /// Are they judged as a whole, head kv of k and v of sequence number s and the rows that read it?
  [[nodiscard]] bool is_whole(std::int64_t s, std::int64_t kv) const { return whole_[at(s, kv)]; }
  /// Of each head that reads it, how many rows are judged where it is not.
  [[nodiscard]] std::vector<std::int64_t> rows_of(std::int64_t s, std::int64_t kv) const;

  /// Rows of a gradient by q, k or v that are judged, and that there are, over all heads.
  [[nodiscard]] std::int64_t judged(Gradient of) const;
  [[nodiscard]] std::int64_t all(Gradient of) const;

 private:
  [[nodiscard]] std::size_t at(std::int64_t s, std::int64_t kv) const {
    return static_cast<std::size_t>(s * kv_heads_ + kv);
  }
  [[nodiscard]] std::int64_t group_rows(std::int64_t s) const {
    return sequences_[static_cast<std::size_t>(s)].queries * group_;
  }
  void choose_groups(std::int64_t rows);

  std::vector<Sequence> sequences_;
  std::int64_t kv_heads_ = 0, group_ = 0;  ///< the heads that read one of them
  std::vector<bool> whole_;
  std::int64_t share_ = 0, rest_ = 0;  ///< of each head, and how many of the first have one more
};

}  // namespace attest::detail
