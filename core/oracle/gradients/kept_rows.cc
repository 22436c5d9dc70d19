#include "core/oracle/gradients/kept_rows.h"

#include "core/support/room.h"

namespace attest::detail {

void KeptRows::start(std::int64_t keys, std::int64_t dk, std::int64_t dv) {
  keys_ = keys, dk_ = dk, dv_ = dv;
  // An odd number of lines of a cache: rows a power of two apart would all lie in one place of it.
  pitch_ = (keys + 7) / 8 * 8;
  if (pitch_ % 16 == 0) pitch_ += 8;
  fit(of_q_, 3 * most * pitch_), fit(of_g_, 3 * most * pitch_), fit(q_, most * dk), fit(g_, most * dv);
  empty();
}

void KeptRows::empty() {
  count_ = 0, first_ = keys_, last_ = 0;
}

KeptRow KeptRows::add(const double* q, const double* g) {
  std::copy_n(q, dk_, q_.data() + count_ * dk_), std::copy_n(g, dv_, g_.data() + count_ * dv_);
  const KeptRow row{pitch_, of_q_.data() + 3 * count_ * pitch_, of_g_.data() + 3 * count_ * pitch_};
  std::fill_n(row.of_q, 3 * pitch_, 0.0), std::fill_n(row.of_g, 3 * pitch_, 0.0);
  ++count_;
  return row;
}

void KeptRows::flush(GradientSumsHere& k, GradientSumsHere& v) {
  for (std::int64_t j = first_; j < last_; ++j) {
    inner_loops().add_terms(terms(of_q_, j), count_, q_.data(), nullptr, dk_, dk_, k.row(j));
    inner_loops().add_terms(terms(of_g_, j), count_, g_.data(), nullptr, dv_, dv_, v.row(j));
  }
  empty();
}

}  // namespace attest::detail
