// A right kernel that makes something else of a variant.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {

/// Answers another problem of cases that `has` says, or where that tensor is there, in f64, so that it is no further
/// off than the answer is rounded; of its own the log-sum-exp, and that `made` to something else.
class OtherVariant : public ForwardingKernel {
 public:
  using Change = std::function<void(Case&)>;
  using MadeLse = std::function<double(const Case& c, std::int64_t row, double lse)>;
  using Has = std::function<bool(const Case&)>;
  OtherVariant(
      Has has, Change output, Change lse = [](Case&) {},
      MadeLse made = [](const Case&, std::int64_t, double lse) { return lse; })
      : ForwardingKernel(registered("builtin:two-pass")),
        has_(std::move(has)),
        manifest_(inner().manifest()),
        output_(std::move(output)),
        lse_(std::move(lse)),
        made_(std::move(made)) {}
  OtherVariant(
      Slot slot, Change output, Change lse = [](Case&) {},
      MadeLse made = [](const Case&, std::int64_t, double lse) { return lse; })
      : OtherVariant([slot](const Case& c) { return c[slot].present(); }, std::move(output), std::move(lse),
                     std::move(made)) {}

  const Manifest& manifest() const override { return manifest_; }
  Manifest& manifest() { return manifest_; }
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    if (!has_(c) || reply.status != CallStatus::ok) return reply;
    Reply other = exact(c, output_, /*want_lse=*/false);
    if (other.status != CallStatus::ok) return other;
    reply.out = mapped(reply.out, [&](std::int64_t e, double) { return other.out[e]; });
    if (!reply.lse.present()) return reply;
    Reply other_lse = exact(c, lse_, /*want_lse=*/true);
    if (other_lse.status != CallStatus::ok) return other_lse;
    reply.lse = mapped(reply.lse, [&](std::int64_t row, double) { return made_(c, row, other_lse.lse[row]); });
    return reply;
  }
  std::unique_ptr<Kernel> clone() const override { return std::make_unique<OtherVariant>(has_, output_, lse_, made_); }

 private:
  Reply exact(const Case& c, const Change& change, bool want_lse) {
    Case asked = c;
    set_layouts(asked, Layouts());
    for (const Slot slot : {Slot::q, Slot::k, Slot::v})
      asked[slot] = mapped(Tensor(DType::f64, c[slot].shape()), [&](std::int64_t e, double) { return c[slot][e]; });
    change(asked);
    // Beside f64 factors are powers of two: others have multiplied before.
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) asked[slot] = dequantised(asked, slot);
    drop_variant(asked, descale_variant.name);
    return ForwardingKernel::run(asked, DType::f64, want_lse);
  }

  Has has_;
  Manifest manifest_;
  Change output_, lse_;
  MadeLse made_;
};

}  // namespace attest
