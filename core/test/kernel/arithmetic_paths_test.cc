// Paths of an arithmetic, and promises: what a manifest says of some shapes, and what its documents say.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/manifest.h"
#include "core/support/errors.h"
#include "core/test/refusal.h"
#include "core/test/says.h"

namespace attest {
namespace {

Manifest parse(const std::string& keys) {
  return parse_manifest(R"({"name": "x", "dtypes": ["f32", "bf16"], )" + keys + "}", "mine");
}
Manifest with_paths(const std::string& paths) {
  return parse(R"("arithmetic": {"f32": {"max": "lazy", "lazy_nats": 8, "paths": [)" + paths + "]}}");
}
std::string fault_of(const std::string& paths) {
  return refusal([&] { (void)with_paths(paths); });
}
Case problem_of(std::int64_t queries, std::int64_t keys, std::int64_t dk, DType dtype = DType::f32) {
  Case c;
  c[Slot::q] = Tensor(dtype, {1, 1, queries, dk});
  c[Slot::k] = Tensor(dtype, {1, 1, keys, dk});
  c[Slot::v] = Tensor(dtype, {1, 1, keys, 2});
  return c;
}

TEST(ArithmeticPaths, AreTakenByTheShapesThatTheyState) {
  const Manifest m = with_paths(R"({"when": {"queries": "<8"}, "weights": "f16"},
                                   {"when": {"queries": ">=64", "keys": "65..128"}, "weights": "bf16"},
                                   {"when": {"head_dim": "64"}, "weights": "f64"},
                                   {"when": {"queries": ">8", "head_dim": "<=4"}, "weights": "f8_e5m2"})");
  const auto weights = [&](std::int64_t queries, std::int64_t keys, std::int64_t dk) {
    return m.arithmetic_for(problem_of(queries, keys, dk)).weights;
  };
  for (const std::int64_t queries : {0, 1, 7}) EXPECT_EQ(weights(queries, 65, 64), DType::f16) << "the first counts";
  EXPECT_EQ(weights(8, 65, 8), DType::f32);
  EXPECT_EQ(weights(8, 65, 4), DType::f32) << "all of a path's ranges must hold";
  EXPECT_EQ(weights(9, 65, 4), DType::f8_e5m2);
  EXPECT_EQ(weights(9, 65, 5), DType::f32);
  EXPECT_EQ(weights(8, 1, 64), DType::f64);
  EXPECT_EQ(weights(63, 65, 8), DType::f32);
  for (const std::int64_t keys : {65, 128}) EXPECT_EQ(weights(64, keys, 64), DType::bf16);
  for (const std::int64_t keys : {64, 129}) EXPECT_EQ(weights(64, keys, 8), DType::f32);
  EXPECT_EQ(m.arithmetic_for(problem_of(1, 65, 8, DType::bf16)), universal_arithmetic(DType::bf16, DType::bf16))
      << "of another dtype";
}

TEST(ArithmeticPaths, DifferFromTheArithmeticAroundThem) {
  const Manifest m = with_paths(R"({"when": {"queries": "1"}, "accumulate": "f16"},
                                   {"when": {"queries": "2"}, "max": "running"})");
  Arithmetic wanted = m.arithmetic.usual_for(DType::f32);
  EXPECT_EQ(wanted.max, MaxPolicy::lazy);
  wanted.accumulate = DType::f16;
  EXPECT_EQ(m.arithmetic_for(problem_of(1, 3, 2)), wanted) << "lazy as around it";
  EXPECT_EQ(m.arithmetic_for(problem_of(2, 3, 2)).max, MaxPolicy::running);
  EXPECT_EQ(parse_manifest(to_json(m), "written"), m);
}

TEST(ArithmeticPaths, NameWhatIsWrongInThem) {
  const std::string at = R"(mine: "arithmetic"."f32"."paths"[0])";
  EXPECT_EQ(fault_of(R"({"weights": "f16"})"),
            at + R"(."when" is missing; a path states its shapes, as {"queries": ">=64"})");
  EXPECT_THAT(fault_of(R"({"when": {}, "weights": "f16"})"), Says("a path states its shapes"));
  EXPECT_THAT(fault_of(R"({"when": {"rows": "1"}})"), Says(R"("when": unknown key "rows"; known: "queries", "keys")"));
  EXPECT_THAT(fault_of(R"({"when": {"keys": "1"}, "paths": []})"), Says(R"(unknown key "paths")"));
  for (const char* range : {"", "a", "-1", ">", "<0", "5..4", "1..", "1.5", ">=2 ", "99999999999999999999", "=3"}) {
    EXPECT_THAT(fault_of(fmt::format(R"({{"when": {{"keys": "{}"}}}})", range)),
                Says(R"(it must be as "64", ">=64", "<64" or "64..128", and hold a number)"))
        << range;
  }
  EXPECT_THAT(fault_of(R"({"when": {"head_dim": "<1"}})"), Says("hold a number")) << "no head has no column";
  EXPECT_THAT(fault_of(R"({"when": {"keys": 64}})"), Says(R"("keys" is 64; it must be a string)"));
  EXPECT_THAT(refusal([] { (void)parse(R"("arithmetic": {"paths": {}})"); }),
              Says("\"paths\" is {}; it must be an array"));
}

TEST(Promises, AreOfTheDtypesThatAreStated) {
  const Manifest none = parse(R"("arithmetic": {})");
  EXPECT_EQ(none.promises.find(problem_of(1, 1, 1)), nullptr);
  const Manifest m =
      parse(R"("promises": {"bf16": {"weights": "f32", "paths": [{"when": {"keys": "1"}, "exp_ulp": 2}]}})");
  EXPECT_EQ(m.promises.find(problem_of(1, 1, 1)), nullptr);
  ASSERT_NE(m.promises.find(problem_of(1, 2, 1, DType::bf16)), nullptr);
  EXPECT_EQ(m.promises.find(problem_of(1, 2, 1, DType::bf16))->weights, DType::f32);
  EXPECT_EQ(m.promises.find(problem_of(1, 1, 1, DType::bf16))->exp_ulp, 2);
  EXPECT_EQ(m.arithmetic_for(problem_of(1, 1, 1, DType::bf16)), universal_arithmetic(DType::bf16, DType::bf16));
  EXPECT_EQ(parse_manifest(to_json(m), "written"), m);
  EXPECT_THAT(refusal([] { (void)parse(R"("promises": {"f16": {}})"); }), Says("\"dtypes\" does not list it"));
}

}  // namespace
}  // namespace attest
