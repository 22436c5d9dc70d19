// One query row of a planted kernel.
#pragma once

#include <cstdint>

#include "properties/faults/make.h"

namespace attest {

/// Which row of which problem.
struct Place {
  std::int64_t batches, heads, queries;  ///< of the problem
  std::int64_t b, h, i;
};

/// Of a key outside the window that is not hidden but has a finite score.
inline constexpr std::uint8_t outside_window = 2;

/// The row's tensors, row-major in Real (exact), and where its answer goes.
template <class Real>
struct PlantedRow {
  const Make& make;
  Slip slip;
  DType dtype;  ///< of q, k, v and out; Real is f64 for f64, else f32
  Place place;
  std::int64_t call;  ///< calls of the kernel before this one
  std::int64_t keys, head_dim, value_dim;
  const Real* q;                ///< [dk]
  const Real* k;                ///< [N, dk]
  const Real* v;                ///< [N, dv]
  const std::uint8_t* visible;  ///< [N]: 0, 1 or outside_window
  const Real* bias;             ///< [N]; nullptr: none
  Real sink;                    ///< -inf: none
  Real softcap;                 ///< 0: none
  const Real* factors;          ///< [N]: of the row's product with a key, where a slip has them apart; nullptr: in both
  const Real* slopes;           ///< [N]: what slopes add to the scores; nullptr: nothing
  const std::uint8_t* kept;     ///< [N]: 0 drops the weight of a key; nullptr: none is dropped
  Real gain;                    ///< multiplies what is kept; 1: nothing is dropped
  Real scale;
  bool pre_scale;
  Real* x;        ///< [N]: scores, of a folding make without the factor that is folded
  Real* weights;  ///< [N], kept from row to row
  Real* part;     ///< [max(2, splits), dv]
  Real* tile;     ///< [dv]
  Real* out;      ///< [dv]
  Real* lse;
};

/// Attention of a row that sees at least one key.
template <class Real>
void attend(const PlantedRow<Real>& row);

extern template void attend(const PlantedRow<float>&);
extern template void attend(const PlantedRow<double>&);

}  // namespace attest
