#include "reports/judge/timed_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/forwarding_kernel.h"
#include "reports/test/shell.h"

namespace attest {
namespace {

Contract contract() {
  return parse_contract(R"({"schema": "attest-contract/1", "name": "small", "shapes": ["1,2,1,5,6,4"],
                            "kernel": {"dtypes": ["f32"], "causal": ["top-left"], "grouped_query": true}})",
                        "small");
}

/// A right kernel whose calls are counted, wrong from one of them on.
class Tiring final : public ForwardingKernel {
 public:
  explicit Tiring(std::int64_t right)
      : ForwardingKernel(std::move(open_kernels("builtin:flash", {}).front())), right_(right) {}
  using Kernel::run;
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    Reply reply = inner().run(c, output, want_lse);
    if (++calls > right_) reply.out = Tensor(c.dtype(), c.out_shape());
    return reply;
  }
  std::int64_t calls = 0;

 private:
  std::int64_t right_;
};

TEST(TimedCalls, TimeEachCellOnce) {
  const Contract small = contract();
  TimedCalls timed(small, 7, 1);
  Tiring kernel(1000);
  for (int i = 0; i < 3; ++i)
    for (const ContractCell& cell : small.cells)
      EXPECT_FALSE(timed.add(kernel, case_of(small.law, small.shapes.front(), cell.dtype, cell.form, 5)));
  EXPECT_EQ(timed.times().size(), small.cells.size());
  EXPECT_EQ(kernel.calls, 7 * std::ssize(small.cells));
  for (const auto& [cell, time] : timed.times()) {
    EXPECT_EQ(time.calls, 7);
    EXPECT_GT(time.low, 0.0);
    EXPECT_LE(time.low, time.median);
    EXPECT_LE(time.median, time.high);
    // 2 heads of 5 rows that see 6 keys, or 1 to 5 of them; 4 columns in q and 4 in v.
    EXPECT_EQ(time.flops, 2.0 * 2 * (cell.form.causal == Causal::none ? 5 * 6 : 1 + 2 + 3 + 4 + 5) * 8);
  }
  // Of another shape nothing is timed.
  EXPECT_FALSE(timed.add(
      kernel, case_of(small.law, {.batch = 1, .heads = 1, .kv_heads = 1, .queries = 1, .keys = 1, .dk = 1, .dv = 1},
                      DType::f32, {}, 5)));
  EXPECT_EQ(kernel.calls, 7 * std::ssize(small.cells));
}

TEST(TimedCalls, JudgeSomeOfTheirAnswers) {
  const Contract small = contract();
  const Case c = case_of(small.law, small.shapes.front(), DType::f32, {}, 5);
  int found = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    TimedCalls timed(small, 4, seed);
    Tiring kernel(2);  // the clock's third and fourth call are wrong
    const std::optional<Verdict> verdict = timed.add(kernel, c);
    if (!verdict) continue;
    ++found;
    EXPECT_EQ(verdict->outcome, Outcome::violated);
    EXPECT_THAT(verdict->reason, Says("in a call that was timed"));
  }
  EXPECT_GT(found, 8);
  EXPECT_LT(found, 32);
}

}  // namespace
}  // namespace attest
