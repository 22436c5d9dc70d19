// A right kernel that makes something else of capped scores.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/pair_product.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {

/// Of the scaled product t, what the mask adds (0 of a hidden key) and the cap; nothing: the key is hidden.
struct ScoredPair {
  double t, added, cap;
  bool hidden;
};
using OtherScore = std::function<std::optional<double>(const ScoredPair&)>;

/// Puts the scores into a mask, in the place of products and a cap, and every number into f64, so that they are no
/// further off than the output is rounded. What slopes add, they still add.
inline void with_other_scores(Case& c, const OtherScore& score) {
  const Case before = c;
  Case level = c;
  drop_variant(level, alibi_variant.name);
  drop_variant(c, softcap_variant.name);
  drop_positions(c);
  set_layouts(c, Layouts());
  for (const Slot slot : {Slot::q, Slot::k, Slot::v})
    c[slot] = mapped(Tensor(DType::f64, c[slot].shape()), [&](std::int64_t e, double) { return before[slot][e]; });
  Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    const auto product = static_cast<double>(product_of_pair(c, b, h, i, j));
    const bool is_hidden = hidden(before, b, h, i, j);
    const double t = c.scale * product, added = is_hidden ? 0 : bias_of(level, b, h, i, j);
    const std::optional<double> made = score({t, added, before.softcap, is_hidden});
    mask.set(e, made ? *made : -std::numeric_limits<double>::infinity());
  }
  c[Slot::mask] = std::move(mask);
  c[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
}

class OtherScores : public ForwardingKernel {
 public:
  explicit OtherScores(OtherScore score)
      : ForwardingKernel(registered("builtin:two-pass")), manifest_(inner().manifest()), score_(std::move(score)) {}

  const Manifest& manifest() const override { return manifest_; }
  Manifest& manifest() { return manifest_; }
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    if (c.softcap == 0) return ForwardingKernel::run(c, output, want_lse);
    Case asked = c;
    with_other_scores(asked, score_);
    Reply reply = ForwardingKernel::run(asked, DType::f64, want_lse);
    if (reply.status != CallStatus::ok) return reply;
    const Tensor exact = reply.out;
    reply.out =
        mapped(Tensor(output.value_or(c.dtype()), exact.shape()), [&](std::int64_t e, double) { return exact[e]; });
    return reply;
  }
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<OtherScores>(score_); }

 private:
  Manifest manifest_;
  OtherScore score_;
};

/// Of visible keys alone, what becomes of t before the mask is added.
[[nodiscard]] inline OtherScores of_another_cap(std::function<double(double t, double cap)> capped) {
  return OtherScores([capped = std::move(capped)](const ScoredPair& one) {
    return one.hidden ? std::nullopt : std::optional(capped(one.t, one.cap) + one.added);
  });
}

[[nodiscard]] inline double capped_at(double t, double cap) {
  return cap * std::tanh(t / cap);
}

}  // namespace attest
