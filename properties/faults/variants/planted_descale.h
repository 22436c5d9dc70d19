// Factors of q, k and v, in every planted kernel of rows or of tiles.
#pragma once

#include <cstdint>
#include <vector>

#include "core/call/row_factors.h"
#include "properties/faults/make.h"

namespace attest {

/// The factors of a head of q, k or v, by the slip. The problem outlives them.
template <class Real>
class PlantedFactors {
 public:
  /// Whose they are.
  struct Rows {
    attest_tensor attest_problem::* tensor;
    std::int64_t b, h;        ///< in the tensor
    std::int64_t query_head;  ///< that reads them
    std::int64_t first;       ///< as many rows of the whole tensor lie before those of the problem
    std::int64_t tile = 0;    ///< so many are taken at a time; 0: by a kernel of rows
  };
  PlantedFactors(const attest_problem& p, Slip slip, const Rows& rows);

  /// What row i of the problem counts times itself.
  [[nodiscard]] Real of_row(std::int64_t i) const;
  /// Multiplies the rows, which stand one after another, as they are loaded.
  void multiply(std::vector<Real>& loaded) const;

 private:
  /// Whether this is the mistake.
  [[nodiscard]] bool is(Slip slip) const { return slip_ == slip; }
  [[nodiscard]] bool are_of(attest_tensor attest_problem::* tensor) const { return rows_.tensor == tensor; }
  [[nodiscard]] bool are_ignored() const;
  [[nodiscard]] double given(std::int64_t i) const;
  [[nodiscard]] std::int64_t block_of(std::int64_t i) const;

  const attest_problem& p_;
  Slip slip_;
  Rows rows_;
  RowFactors factors_;
  std::int64_t count_ = (p_.*rows_.tensor).shape[2];  ///< of rows
};

extern template class PlantedFactors<float>;
extern template class PlantedFactors<double>;

/// Whether the slip has what multiplies a product of a row and a key elsewhere than in both.
[[nodiscard]] bool has_factors_apart(const attest_problem& p, Slip slip);

}  // namespace attest
