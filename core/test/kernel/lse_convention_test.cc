// Log-sum-exps as kernels return them, put into the form of the contract: of scores that are larger by a slope times
// the position, without the sink, and of rows that see no key.
#include "core/kernel/lse_convention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/test/cases.h"

namespace attest {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Returns these log-sum-exps, whatever it is asked.
class Says final : public Kernel {
 public:
  using Kernel::run;
  Says(Manifest manifest, std::vector<double> lse) : manifest_(std::move(manifest)), lse_(std::move(lse)) {}
  [[nodiscard]] const std::string& id() const override { return manifest_.name; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    const Shape shape = c.out_shape();
    Reply reply;
    reply.out = Tensor(output.value_or(c.dtype()), shape);
    if (want_lse) reply.lse = Tensor(DType::f64, {shape[0], shape[1], shape[2]}, lse_);
    return reply;
  }
  [[nodiscard]] Reply backward(const Case& /*c*/, const BackwardCall& call, DType /*output*/) override {
    EXPECT_FALSE(call.own_lse.present());
    Reply reply;
    reply.gradients = {call.out, call.lse};
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<Says>(manifest_, lse_); }

 private:
  Manifest manifest_;
  std::vector<double> lse_;
};

Manifest manifest_with(const std::string& keys) {
  return parse_manifest(
      R"({"name": "x", "dtypes": ["f32"], "lse": true, "causal": ["top-left", "bottom-right"], )" + keys + "}", "mine");
}

/// What comes of log-sum-exps of a kernel whose manifest has these keys.
std::vector<double> seen(const std::string& keys, const Case& c, const std::vector<double>& lse) {
  const std::unique_ptr<Kernel> kernel = with_lse_of_contract(std::make_unique<Says>(manifest_with(keys), lse));
  const Reply reply = kernel->run(c, std::nullopt, /*want_lse=*/true);
  const std::vector<double> found = reply.lse.tensor().to_doubles();
  // A backward pass is given what was returned, whatever that means.
  const Tensor &out = reply.out, own(DType::f64, reply.lse.shape(), lse);
  const Reply back = kernel->backward(c, {out, reply.lse, all_gradients, reply.own_lse}, DType::f32);
  EXPECT_TRUE(same_bits(back.gradients[0], out));
  EXPECT_TRUE(same_bits(back.gradients[1], own));
  EXPECT_THROW(static_cast<void>(kernel->backward(c, {out, reply.lse}, DType::f32)), std::logic_error);
  // Who asks for none gets none, and a clone says the same.
  EXPECT_FALSE(kernel->run(c, std::nullopt, /*want_lse=*/false).lse.present());
  const std::vector<double> cloned = kernel->clone()->run(c, std::nullopt, /*want_lse=*/true).lse.tensor().to_doubles();
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_TRUE(found[i] == cloned[i] || (std::isnan(found[i]) && std::isnan(cloned[i])));
  return found;
}

/// Of two heads with the slopes 0.5 and -2, in two entries of the batch.
Case sloped(std::int64_t queries, std::int64_t keys, Causal causal) {
  Case c = test::attention_of({.batch = 2, .heads = 2, .queries = queries, .keys = keys},
                              [](Slot, const Shape& shape) { return Tensor(DType::f32, shape); });
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 2}, std::vector<double>{0.5, -2});
  c.causal = causal;
  c.alignment = causal == Causal::none ? Causal::bottom_right : causal;
  return c;
}

const std::string columns = R"("variants": {"alibi": {}}, "lse_convention": {"alibi": "column"})";

TEST(LseConvention, LeavesWhatTheContractMeans) {
  Kernel* own = nullptr;
  auto kernel =
      std::make_unique<Says>(manifest_with(R"("variants": {"alibi": {}, "sink": {}})"), std::vector<double>{});
  own = kernel.get();
  EXPECT_EQ(with_lse_of_contract(std::move(kernel)).get(), own);
}

TEST(LseConvention, OfColumnsIsLargerByTheSlopeTimesThePosition) {
  const std::vector<double> lse{1, 2, 3, 4, 5, 6, 7, 8};
  // Positions are 0 and 1.
  EXPECT_EQ(seen(columns, sloped(2, 5, Causal::top_left), lse), (std::vector<double>{1, 1.5, 3, 6, 5, 5.5, 7, 10}));
  // 3 and 4.
  EXPECT_EQ(seen(columns, sloped(2, 5, Causal::bottom_right), lse),
            (std::vector<double>{-0.5, 0, 9, 12, 3.5, 4, 13, 16}));
  // Without a causal form it is the distance that is taken off, and nothing is larger.
  EXPECT_EQ(seen(columns, sloped(2, 5, Causal::none), lse), lse);
  Case plain = sloped(2, 5, Causal::bottom_right);
  plain[Slot::alibi_slopes] = Tensor(), plain.alignment = Causal::none;
  EXPECT_EQ(seen(columns, plain, lse), lse);
}

TEST(LseConvention, OfColumnsTakesEachEntrysOwnSlopes) {
  Case c = sloped(1, 3, Causal::bottom_right);
  c[Slot::alibi_slopes] = Tensor(DType::f32, {2, 2}, std::vector<double>{0.5, -2, 8, 0});
  const std::string keys = R"("variants": {"alibi": {"per_batch": true}}, "lse_convention": {"alibi": "column"})";
  EXPECT_EQ(seen(keys, c, {1, 2, 3, 4}), (std::vector<double>{0, 6, -13, 4}));
}

TEST(LseConvention, CountsInTheRowsOwnSequence) {
  Case c = sloped(2, 5, Causal::bottom_right);
  c[Slot::q_lengths] = Tensor(DType::i32, {2}, std::vector<double>{2, 1});
  c[Slot::kv_lengths] = Tensor(DType::i32, {2}, std::vector<double>{3, 5});
  const std::string keys = R"("variants": {"alibi": {}, "lengths": {}}, "lse_convention": {"alibi": "column"})";
  // Positions 1 and 2 of the first entry, 4 of the second, whose other row is padding and nobody's.
  EXPECT_EQ(seen(keys, c, {1, 2, 3, 4, 5, 6, 7, 8}), (std::vector<double>{0.5, 1, 5, 8, 3, 6, 15, 8}));
}

TEST(LseConvention, IsRoundedOnce) {
  Case c = sloped(1, 3, Causal::bottom_right);
  c[Slot::alibi_slopes] = Tensor(DType::f32, {1, 2}, std::vector<double>{0x1.fffffep-1, 0x1p-60});
  const std::vector<double> lse{0.1, 1, 2, 0};
  const std::vector<double> found = seen(columns, c, lse);
  EXPECT_EQ(found[0], static_cast<double>(static_cast<long double>(0.1) - 0x1.fffffep0L));
  EXPECT_EQ(found[1], 1);
  EXPECT_EQ(found[3], -0x1p-59);
}

/// Row 0 sees nothing, row 1 all keys.
Case half_masked() {
  Case c =
      test::attention_of({.queries = 2, .keys = 2}, [](Slot, const Shape& shape) { return Tensor(DType::f32, shape); });
  c[Slot::mask] = Tensor(DType::boolean, {1, 1, 2, 2}, std::vector<double>{0, 0, 1, 1});
  return c;
}

TEST(LseConvention, OfRowsWithoutAKeyIsMinusInfinity) {
  const auto with = [](const std::string& word) { return R"("lse_convention": {"empty": ")" + word + "\"}"; };
  const Case c = half_masked();
  EXPECT_EQ(seen(with("+inf"), c, {inf, 3}), (std::vector<double>{-inf, 3}));
  EXPECT_EQ(seen(with("nan"), c, {nan, 3}), (std::vector<double>{-inf, 3}));
  // What is right already stays, and so does what the kernel does not say of such rows.
  EXPECT_EQ(seen(with("+inf"), c, {-inf, 3}), (std::vector<double>{-inf, 3}));
  EXPECT_EQ(seen(with("nan"), c, {inf, 3}), (std::vector<double>{inf, 3}));
  EXPECT_TRUE(std::isnan(seen(with("+inf"), c, {nan, 3})[0]));
  EXPECT_EQ(seen(with("+inf"), c, {-3, 3}), (std::vector<double>{-3, 3}));
}

TEST(LseConvention, OfRowsWithKeysIsWhatTheKernelReturned) {
  const auto with = [](const std::string& word) { return R"("lse_convention": {"empty": ")" + word + "\"}"; };
  const Case c = half_masked();
  EXPECT_EQ(seen(with("+inf"), c, {inf, inf})[1], inf);
  EXPECT_TRUE(std::isnan(seen(with("nan"), c, {nan, nan})[1]));
  // Nor is a slope taken from a number that is none.
  Case sloped_row = sloped(2, 5, Causal::bottom_right);
  const std::vector<double> found = seen(columns, sloped_row, {nan, inf, -inf, 4, 5, 6, 7, 8});
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_EQ(found[1], inf);
  EXPECT_EQ(found[2], -inf);
}

TEST(LseConvention, OfACausalFormHasRowsWithoutAKeyToo) {
  // Of three rows from the bottom right of two keys the first sees none.
  Case c = sloped(3, 2, Causal::bottom_right);
  const std::string keys = R"("variants": {"alibi": {}}, "lse_convention": {"alibi": "column", "empty": "+inf"})";
  EXPECT_EQ(seen(keys, c, {inf, 1, 2, inf, 3, 4, inf, 5, 6, inf, 7, 8}),
            (std::vector<double>{-inf, 1, 1.5, -inf, 3, 6, -inf, 5, 5.5, -inf, 7, 10}));
}

TEST(LseConvention, HasTheSinkWhereAKernelLeftItOut) {
  Case c = half_masked();
  c[Slot::sink] = Tensor(DType::f32, {1}, std::vector<double>{2});
  const std::string keys = R"("variants": {"sink": {"lse": "without"}}, "lse_convention": {"empty": "+inf"})";
  const std::vector<double> found = seen(keys, c, {inf, 3});
  EXPECT_EQ(found[0], 2) << "the sink alone";
  EXPECT_NEAR(found[1], std::log(std::exp(3.0) + std::exp(2.0)), 1e-15);
  c[Slot::sink].set(0, -inf);
  EXPECT_EQ(seen(keys, c, {inf, 3}), (std::vector<double>{-inf, 3}));
  // Both: the slope's term leaves the keys' sum before the sink joins it.
  Case both = sloped(1, 3, Causal::bottom_right);
  both[Slot::sink] = Tensor(DType::f32, {2}, std::vector<double>{2, -inf});
  const std::string all =
      R"("variants": {"alibi": {}, "sink": {"lse": "without"}}, "lse_convention": {"alibi": "column"})";
  const std::vector<double> sums = seen(all, both, {4, 5, 6, 7});
  EXPECT_NEAR(sums[0], std::log(std::exp(3.0) + std::exp(2.0)), 1e-15);
  EXPECT_EQ(sums[1], 9);
}

}  // namespace
}  // namespace attest
