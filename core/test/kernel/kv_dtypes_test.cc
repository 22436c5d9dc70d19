// Keys and values in formats of their own: what a manifest lists, and what a problem may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/manifest.h"
#include "core/test/refusal.h"
#include "core/test/says.h"

namespace attest {
namespace {

Manifest parse(const std::string& keys) {
  return parse_manifest(R"({"name": "x", "dtypes": ["f32", "bf16"], )" + keys + "}", "mine");
}
Case problem_of(DType q, DType k, DType v) {
  Case c;
  c[Slot::q] = Tensor(q, {1, 1, 2, 2});
  c[Slot::k] = Tensor(k, {1, 1, 3, 2});
  c[Slot::v] = Tensor(v, {1, 1, 3, 2});
  return c;
}

TEST(KvDtypes, AreQsOwnWhereNoneAreStated) {
  const Manifest m = parse(R"("claims": [])");
  EXPECT_EQ(m.kv_dtypes_for(DType::f32), (std::vector{KvDtypes{DType::f32, DType::f32}}));
  EXPECT_EQ(why_unsupported(m, problem_of(DType::f32, DType::f32, DType::f32)), "");
  EXPECT_EQ(why_unsupported(m, problem_of(DType::f32, DType::f16, DType::f32)),
            "has k in f16 and v in f32 beside q in f32; the manifest's kv_dtypes are f32 and f32");
}

TEST(KvDtypes, AreThoseThatAreListedAlone) {
  const Manifest m = parse(R"("kv_dtypes": {"f32": ["f16", ["f16", "bf16"], "f16"]})");
  EXPECT_EQ(m.kv_dtypes_for(DType::f32),
            (std::vector{KvDtypes{DType::f16, DType::f16}, KvDtypes{DType::f16, DType::bf16}}));
  EXPECT_EQ(why_unsupported(m, problem_of(DType::f32, DType::f16, DType::bf16)), "");
  EXPECT_THAT(why_unsupported(m, problem_of(DType::f32, DType::bf16, DType::f16)), Says("f16 and f16, f16 and bf16"));
  EXPECT_THAT(why_unsupported(m, problem_of(DType::f32, DType::f32, DType::f32)), Says("has k in f32"));
  EXPECT_EQ(why_unsupported(m, problem_of(DType::bf16, DType::bf16, DType::bf16)), "") << "its own";
  EXPECT_EQ(parse_manifest(to_json(m), "written"), m);
  const Manifest all = parse(R"("kv_dtypes": ["f16"])");
  EXPECT_EQ(why_unsupported(all, problem_of(DType::bf16, DType::f16, DType::f16)), "");
}

TEST(KvDtypes, NameWhatIsWrongInThem) {
  const auto fault_of = [](const std::string& keys) { return refusal([&] { (void)parse(keys); }); };
  const char* const rule = R"(it must list dtypes of k and v, as ["f16", ["f16", "bf16"]])";
  for (const char* list :
       {"[]", "[\"f17\"]", "[\"bool\"]", "[[\"f16\"]]", "[[\"f16\", \"f16\", \"f16\"]]", "[16]", "\"f16\""})
    EXPECT_THAT(fault_of(std::string("\"kv_dtypes\": ") + list), Says(rule)) << list;
  EXPECT_THAT(fault_of(R"("kv_dtypes": {"f16": ["f16"]})"), Says("\"dtypes\" does not list it"));
  // Sums in f32 do not hold every number of f64, and sums of values in bf16 none of f16's.
  EXPECT_THAT(fault_of(R"("kv_dtypes": [["f64", "f32"]])"), Says("do not hold every number of k in f64 and v in f32"));
  EXPECT_THAT(fault_of(R"("kv_dtypes": ["f16"], "arithmetic": {"accumulate": "bf16"})"),
              Says("weighted values in bf16, which do not hold every number of k in f16 and v in f16"));
  EXPECT_THAT(
      fault_of(R"("kv_dtypes": ["f16"], "arithmetic": {"paths": [{"when": {"keys": "1"}, "score_sums": "bf16"}]})"),
      Says("sums q.k in bf16"));
  EXPECT_THAT(fault_of(R"("kv_dtypes": ["f16"], "promises": {"accumulate": "bf16"})"), Says("weighted values in bf16"));
  EXPECT_THAT(fault_of(R"("kv_dtypes": ["f16"], "operations": ["multihead"])"), Says("only \"operations\" with"));
}

TEST(KvDtypes, OfAProblemAreFloating) {
  validate(problem_of(DType::f32, DType::f16, DType::bf16));
  EXPECT_THAT(refusal([] { validate(problem_of(DType::f32, DType::boolean, DType::f32)); }),
              Says("k is bool; it must be of a floating dtype"));
  Case multihead;
  multihead.operation = Operation::multihead;
  for (const Slot slot : {Slot::q, Slot::k, Slot::v}) multihead[slot] = Tensor(DType::f32, {1, 2, 2});
  for (const Slot slot : {Slot::w_q, Slot::w_k, Slot::w_v}) multihead[slot] = Tensor(DType::f32, {2, 2});
  validate(multihead);
  multihead[Slot::k] = Tensor(DType::f16, {1, 2, 2});
  EXPECT_THAT(refusal([&] { validate(multihead); }), Says("k is f16 and q is f32"));
}

}  // namespace
}  // namespace attest
