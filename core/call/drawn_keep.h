// A mask of dropout that Attest's own kernels draw where a call gives them none.
#pragma once

#include <attest/kernel.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace attest {

/// Does the row of a problem keep the key, with probability 1 - p? Rows are counted over all heads and batch entries,
/// keys over one head's. A function of the place and the seed alone, as of a generator that counts.
[[nodiscard]] bool keeps_at(std::int64_t seed, std::int64_t row, std::int64_t key, double p);

/// Is a kernel to draw what it drops?
[[nodiscard]] bool draws_own_dropout(const attest_problem& p);

/// A weight among all of a problem.
struct KeptPlace {
  std::int64_t b, h, i, j;
};

class DrawnKeep {
 public:
  /// With keeps_at of every place where the kernel is to draw; else the problem as it is. Of a problem with sequences
  /// places are counted along the tensors.
  explicit DrawnKeep(const attest_problem& p);
  /// With keeps(place) in its place.
  DrawnKeep(const attest_problem& p, const std::function<bool(const KeptPlace&)>& keeps);
  DrawnKeep(DrawnKeep&&) = default;  // a vector that is moved stays where it is
  DrawnKeep& operator=(DrawnKeep&&) = delete;

  attest_problem problem;  ///< the keep that was drawn among its tensors, [batch, heads, M, N]

 private:
  std::vector<std::uint8_t> memory_;
};

}  // namespace attest
