// Stand-ins for the tests of the engine: a kernel, properties and a road whose verdicts follow from k alone.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "properties/language/answer.h"
#include "reports/run/engine.h"
#include "reports/test/shell.h"

namespace attest::fake {

class FakeKernel final : public Kernel {
 public:
  explicit FakeKernel(std::string id, CallStatus status = CallStatus::ok) : id_(std::move(id)), status_(status) {
    manifest_.name = id_;
    manifest_.dtypes = {DType::f32, DType::bf16};
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool) override {
    Reply reply;
    reply.status = status_;
    reply.message = "as it was told";
    if (status_ == CallStatus::ok) reply.out = Tensor(output.value_or(c.dtype()), c.out_shape());
    return reply;
  }
  /// Says that its scalar is wider than every dtype.
  [[nodiscard]] unsigned digits() const override { return id_.starts_with("wide:") ? 50 : 0; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<FakeKernel>(id_, status_); }

 private:
  std::string id_;
  CallStatus status_;
  Manifest manifest_;
};

inline const Property first_property{.name = "fake.first"}, second_property{.name = "fake.second"},
    multihead_property{.name = "fake.multihead", .operation = Operation::multihead};

inline std::string kinds_at(std::int64_t k) {
  return k % 3 == 0 ? "scores:heavy mask:none" : "scores:gaussian mask:padding";
}
/// The bits that a tiny case of k sends.
inline BitClasses bits_at(std::int64_t k) {
  return set_of(BitClass::zero) | (k % 2 == 0 ? 0 : set_of(BitClass::power_of_two));
}

/// One query, one key, one value; k in the provenance.
inline Case tiny_case(DType dtype, std::int64_t k) {
  Case c;
  const Shape shape{1, 1, 1, 1};
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) c[slot] = Tensor(dtype, shape);
  if (k % 2 != 0) c[Slot::v].set(0, 1.0);
  c.provenance.k = std::to_string(k);
  c.provenance.kinds = kinds_at(k);
  return c;
}

/// Violated at every k with k % 50 == 7, skipped, excused and inconclusive now and then, else held.
inline Verdict verdict_at(std::int64_t k) {
  if (k % 50 == 7) {
    return {.outcome = Outcome::violated,
            .violation = Violation::bound,
            .utilisation = 2.0 + static_cast<double>(k % 7),
            .error = 0.5,
            .reason = "off by " + std::to_string(k)};
  }
  if (k % 13 == 4) return {.outcome = Outcome::skipped, .reason = "has too many keys"};
  if (k % 29 == 5) return {.outcome = Outcome::excused, .reason = "overflows"};
  if (k % 101 == 9) return {.outcome = Outcome::inconclusive, .reason = "undecided"};
  return {.utilisation = static_cast<double>((k * 37) % 100) / 128, .level = 1 + static_cast<int>(k % 3)};
}

/// Calls the kernel once, so that its status is seen, and judges by k.
inline Road road() {
  return {.generate = [](const Property&, DType dtype, std::uint64_t, std::int64_t k) { return tiny_case(dtype, k); },
          .project = [](Case c, const Manifest&) { return c; },
          .check =
              [](const Property&, Kernel& kernel, const Case& c) {
                try {
                  (void)answer(kernel, c);
                } catch (NoAnswer& none) {
                  return std::move(none.verdict);
                }
                return verdict_at(std::stoll(c.provenance.k.value()));
              },
          .shrink =
              [](const Property&, Kernel&, const Case& c, int) {
                Case smaller = c;
                smaller.provenance.shrunk = "yes";
                return smaller;
              }};
}

class CountingObserver final : public Observer {
 public:
  void batch_done(const BatchRecord& batch) override { cases += batch.tally.cases(); }
  void found(const FindingRecord&) override { ++findings; }
  void tick() override {}
  std::int64_t cases = 0;
  int findings = 0;
};

}  // namespace attest::fake
