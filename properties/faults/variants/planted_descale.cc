#include "properties/faults/variants/planted_descale.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/value/tensor.h"

namespace attest {
namespace {

bool has_factors(const attest_problem& p) {
  return (p.variants & ATTEST_DESCALE) != 0;
}

/// The factors that the slip takes for the tensor's.
RowFactors factors_of(const attest_problem& p, Slip slip, attest_tensor attest_problem::* tensor) {
  const bool exchanges = slip == Slip("descale-of-k-for-v") && tensor == &attest_problem::v && has_factors(p) &&
                         p.k_descale.data != nullptr;
  RowFactors factors = row_factors(p, exchanges ? &attest_problem::k : tensor);
  if (slip == Slip("descale-one-length-of-blocks") && has_factors(p) && p.q_descale_block > 0)
    factors.block = p.q_descale_block;
  return factors;
}

}  // namespace

bool has_factors_apart(const attest_problem& p, Slip slip) {
  if (!has_factors(p)) return false;
  if (slip == Slip("descale-after-softcap")) return (p.variants & ATTEST_SOFTCAP) != 0;
  return slip == Slip("descale-of-the-mask");
}

template <class Real>
PlantedFactors<Real>::PlantedFactors(const attest_problem& p, Slip slip, const Rows& rows)
    : p_(p), slip_(slip), rows_(rows), factors_(factors_of(p, slip, rows.tensor)) {}

template <class Real>
bool PlantedFactors<Real>::are_ignored() const {
  if (is("descale-of-q-ignored")) return are_of(&attest_problem::q);
  if (is("descale-of-k-ignored")) return are_of(&attest_problem::k);
  if (is("descale-of-v-ignored")) return are_of(&attest_problem::v);
  return is("descale-ignored-for-one-query") && p_.q.shape[2] == 1;
}

template <class Real>
std::int64_t PlantedFactors<Real>::block_of(std::int64_t i) const {
  const std::int64_t last = factors_.factors.shape[2] - 1;
  if (last == 0) return 0;
  std::int64_t row = rows_.first + i;
  if (is("descale-blocks-of-each-sequence")) row = i;
  if (rows_.tile > 0) {
    if (is("descale-block-in-its-tile")) row = i % rows_.tile;
    if (is("descale-block-of-the-tiles-first-row")) row -= i % rows_.tile;
  }
  std::int64_t block = row / factors_.block;
  // As many blocks are counted as are whole.
  const bool partial = (rows_.first + count_) % factors_.block != 0;
  if (is("descale-of-whole-blocks") && block == last && partial) --block;
  // What lies beyond the tensor's memory is not the mistake that is planted.
  return std::clamp<std::int64_t>(block, 0, last);
}

template <class Real>
double PlantedFactors<Real>::given(std::int64_t i) const {
  const attest_tensor& t = factors_.factors;
  std::int64_t h = is("descale-of-query-head") ? std::min(rows_.query_head, t.shape[1] - 1) : rows_.h;
  if (t.shape[1] == 1 || is("descale-of-first-head")) h = 0;
  const std::int64_t b = t.shape[0] == 1 || is("descale-of-first-batch") ? 0 : rows_.b, block = block_of(i);
  std::int64_t at = offset_in(t, b, h, block);
  if (is("descale-strides-ignored")) {
    const std::int64_t last = offset_in(t, t.shape[0] - 1, t.shape[1] - 1, t.shape[2] - 1);
    at = std::min((b * t.shape[1] + h) * t.shape[2] + block, last);
  }
  return load_element(t.data, static_cast<DType>(t.dtype), at);
}

template <class Real>
Real PlantedFactors<Real>::of_row(std::int64_t i) const {
  if (!factors_.present() || are_ignored()) return 1;
  const std::int64_t tile = rows_.tile;
  if (is("descale-skips-the-last-tile") && tile > 0 && count_ > tile && i >= count_ / tile * tile) return 1;
  const double given_factor = given(i);
  const auto factor = static_cast<Real>(given_factor);
  if (is("descale-divides")) return 1 / factor;
  // In what is loaded, and in the scale that multiplies the products.
  if (is("descale-of-k-twice") && are_of(&attest_problem::k)) return factor * factor;
  return is("descale-in-bf16") ? static_cast<Real>(round_to(DType::bf16, given_factor)) : factor;
}

template <class Real>
void PlantedFactors<Real>::multiply(std::vector<Real>& loaded) const {
  if (!factors_.present()) return;
  if (is("descale-after-softcap") && has_factors_apart(p_, slip_) && !are_of(&attest_problem::v)) return;
  const std::int64_t columns = (p_.*rows_.tensor).shape[3];
  auto next = loaded.begin();
  for (std::int64_t i = 0; i < count_; ++i) {
    const Real factor = of_row(i);
    for (std::int64_t c = 0; c < columns; ++c) *next++ *= factor;
  }
}

template class PlantedFactors<float>;
template class PlantedFactors<double>;

}  // namespace attest
