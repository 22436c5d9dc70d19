// A right kernel that makes something else of dropout.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {

/// Answers another problem where there is a keep, in f64, so that it is no further off than the answer is rounded; of
/// its own the log-sum-exp, and that `made` to something else.
class OtherDropout : public ForwardingKernel {
 public:
  using Change = std::function<void(Case&)>;
  using MadeLse = std::function<double(const Case& c, double lse)>;
  explicit OtherDropout(
      Change output, Change lse = [](Case&) {}, MadeLse made = [](const Case&, double lse) { return lse; })
      : ForwardingKernel(registered("builtin:two-pass")),
        manifest_(inner().manifest()),
        output_(std::move(output)),
        lse_(std::move(lse)),
        made_(std::move(made)) {}

  const Manifest& manifest() const override { return manifest_; }
  Manifest& manifest() { return manifest_; }
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    if (!c[Slot::keep].present() || reply.status != CallStatus::ok) return reply;
    const Reply other = exact(c, output_, /*want_lse=*/false);
    if (other.status != CallStatus::ok) return other;
    reply.out = mapped(reply.out, [&](std::int64_t e, double) { return other.out[e]; });
    if (!reply.lse.present()) return reply;
    const Reply other_lse = exact(c, lse_, /*want_lse=*/true);
    if (other_lse.status != CallStatus::ok) return other_lse;
    reply.lse = mapped(reply.lse, [&](std::int64_t row, double) { return made_(c, other_lse.lse[row]); });
    return reply;
  }
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<OtherDropout>(output_, lse_, made_); }

 private:
  Reply exact(const Case& c, const Change& change, bool want_lse) {
    Case asked = c;
    set_layouts(asked, Layouts());
    for (const Slot slot : {Slot::q, Slot::k, Slot::v})
      asked[slot] = mapped(Tensor(DType::f64, c[slot].shape()), [&](std::int64_t e, double) { return c[slot][e]; });
    change(asked);
    return ForwardingKernel::run(asked, DType::f64, want_lse);
  }

  Manifest manifest_;
  Change output_, lse_;
  MadeLse made_;
};

inline void forget_dropout(Case& c) {
  drop_variant(c, dropout_variant.name);
}

/// What is dropped becomes what is hidden.
inline void hide_dropped(Case& c) {
  Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    mask.set(e, hidden(c, b, h, i, j) || !keeps(c, b, h, i, j) ? -infinity : bias_of(c, b, h, i, j));
  }
  forget_dropout(c);
  drop_positions(c);
  c[Slot::mask] = std::move(mask);
}

/// What keep says of a place becomes what it said of another one, of its own pages, heads and batch entries shared or
/// not: kept(before, place).
struct KeptPlace {
  std::int64_t b, h, i, j;
};
inline OtherDropout::Change another_keep(std::function<double(const Tensor& keep, const Case& c, KeptPlace at)> kept) {
  return [kept = std::move(kept)](Case& c) {
    const Tensor before = c[Slot::keep];
    c[Slot::keep] = mapped(before, [&](std::int64_t e, double) {
      const auto [b, h, i, j] = before.shape().index_of(e);
      return kept(before, c, {b, h, i, j});
    });
  };
}

}  // namespace attest
