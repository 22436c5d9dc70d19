// Keys and values in formats of their own, arithmetics by path and promises, from the manifest to the verdict.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/call/function_kernel.h"
#include "core/kernels/builtin.h"
#include "core/kernels/kernel_families.h"
#include "core/test/says.h"
#include "properties/catalogue/property.h"
#include "properties/road/fit_form.h"
#include "properties/test/toy_kernels.h"

namespace attest {
namespace {

const Property& the(std::string_view name) {
  return *properties_matching(std::string(name)).at(0);
}
Manifest manifest_of(const char* id) {
  return open_kernels(id, {}).at(0)->manifest();
}

/// What becomes of the first cases of a property.
struct Counts {
  int held = 0, violated = 0, skipped = 0, others = 0;
  std::set<std::string> formats;  ///< of k and v
};
Counts counted(const Property& property, Kernel& kernel, DType dtype, std::int64_t cases) {
  Counts counts;
  for (std::int64_t k = 0; k < cases; ++k) {
    const Case c = project(generate(property, dtype, 1, k), kernel.manifest());
    const Verdict verdict = check_case(property, kernel, c);
    counts.held += verdict.outcome == Outcome::held;
    counts.violated += verdict.outcome == Outcome::violated;
    counts.skipped += verdict.outcome == Outcome::skipped;
    counts.others += verdict.outcome == Outcome::excused || verdict.outcome == Outcome::inconclusive;
    if (verdict.outcome == Outcome::held)
      counts.formats.insert(std::string(name_of(c.k().dtype())) + " " + std::string(name_of(c.v().dtype())));
  }
  return counts;
}

/// builtin:mixed, after `spoil` has had its way with the problem.
template <class Spoil>
std::unique_ptr<Kernel> spoilt(Spoil spoil) {
  return function_kernel("spoilt", manifest_of("builtin:mixed"),
                         [spoil](const attest_problem& problem, attest_result& result, std::string& message) {
                           attest_problem other = problem;
                           spoil(other);
                           return run_builtin(mixed_kernel(), other, result, message);
                         });
}

TEST(KvDtypesOfARun, AreAllThatTheManifestLists) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const auto kernel = std::move(open_kernels("builtin:mixed", {}).at(0));
    const Counts counts = counted(the("attention.oracle"), *kernel, dtype, 150);
    EXPECT_EQ(counts.violated, 0) << name_of(dtype);
    EXPECT_GT(counts.held, 90) << name_of(dtype);
    std::set<std::string> listed;
    for (const auto& [k, v] : kernel->manifest().kv_dtypes_for(dtype))
      listed.insert(std::string(name_of(k)) + " " + std::string(name_of(v)));
    EXPECT_EQ(counts.formats, listed) << name_of(dtype);
    const Case c = project(generate(the("attention.oracle"), dtype, 1, 0), kernel->manifest());
    EXPECT_NE(c.provenance.kinds->find("kv-dtypes:" + kind_of({c.k().dtype(), c.v().dtype()})), std::string::npos);
  }
}

TEST(KvDtypesOfARun, LeaveEveryLawOfARightKernelHeld) {
  const auto kernel = std::move(open_kernels("builtin:mixed", {}).at(0));
  for (const Property* property : properties_matching("*")) {
    if (property->operation != Operation::attention) continue;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      EXPECT_EQ(counted(*property, *kernel, dtype, 40).violated, 0) << property->name << " in " << name_of(dtype);
  }
}

TEST(KvDtypesOfARun, ShowWhoReadsOneFormatForAnother) {
  const auto as_keys = spoilt([](attest_problem& p) { p.v.dtype = p.k.dtype; });
  EXPECT_GT(counted(the("attention.oracle"), *as_keys, DType::f32, 60).violated, 5);
  const auto swapped = spoilt([](attest_problem& p) { std::swap(p.v.dtype, p.k.dtype); });
  EXPECT_GT(counted(the("attention.oracle"), *swapped, DType::f32, 60).violated, 5);
  const auto right = spoilt([](attest_problem&) {});
  EXPECT_EQ(counted(the("attention.oracle"), *right, DType::f32, 60).violated, 0);
}

/// builtin:flash, whose queries are rounded to bf16 first where there are fewer than 8.
std::unique_ptr<Kernel> narrow_below_eight(Manifest manifest) {
  return function_kernel(
      "narrow", std::move(manifest), [](const attest_problem& problem, attest_result& result, std::string& message) {
        attest_problem other = problem;
        std::vector<float> q;
        if (problem.q.shape[2] < 8) {
          const attest_tensor& t = problem.q;
          for (std::int64_t b = 0; b < t.shape[0]; ++b)
            for (std::int64_t h = 0; h < t.shape[1]; ++h)
              for (std::int64_t i = 0; i < t.shape[2]; ++i)
                for (std::int64_t c = 0; c < t.shape[3]; ++c)
                  q.push_back(static_cast<float>(
                      round_to(DType::bf16, load_element(t.data, DType::f32, offset_in(t, b, h, i, c)))));
          other.q.data = q.data();
          other.q.stride[3] = 1, other.q.stride[2] = t.shape[3];
          other.q.stride[1] = t.shape[2] * t.shape[3];
          other.q.stride[0] = t.shape[1] * other.q.stride[1];
        }
        return run_builtin(flash_kernel(), other, result, message);
      });
}

TEST(PathsOfARun, HoldAKernelToWhatEachOfThemDeclares) {
  const auto violated = [](const char* when) {
    Manifest m = manifest_of("builtin:flash");
    m.dtypes = {DType::f32};
    if (*when != 0) {
      const std::string text = std::string(R"({"name": "x", "dtypes": ["f32"], "arithmetic": {"paths": [{"when": )") +
                               when + R"(, "prescaled_q": "bf16"}]}})";
      ArithmeticPath path = parse_manifest(text, "path").arithmetic.paths.at(DType::f32).at(0);
      path.arithmetic = m.arithmetic.usual_for(DType::f32);
      path.arithmetic.prescaled_q = DType::bf16;
      m.arithmetic.paths[DType::f32] = {path};
    }
    return counted(the("attention.oracle"), *narrow_below_eight(std::move(m)), DType::f32, 120).violated;
  };
  EXPECT_EQ(violated(R"({"queries": "<8"})"), 0);
  EXPECT_GT(violated(""), 20);
  EXPECT_GT(violated(R"({"queries": ">=8"})"), 20);
  EXPECT_GT(violated(R"({"queries": "<4"})"), 5);
}

TEST(PathsOfARun, HaveCasesWhereTheyBegin) {
  Manifest m = manifest_of("builtin:flash");
  ArithmeticPath path{.arithmetic = m.arithmetic.usual_for(DType::f32)};
  path.queries = {37, any_extent}, path.keys = {0, 83};
  m.arithmetic.paths[DType::f32] = {path};
  std::set<std::int64_t> queries, keys;
  for (std::int64_t k = 0; k < 400; ++k) {
    const Case c = project(generate(the("attention.oracle"), DType::f32, 1, k), m);
    queries.insert(c.q().shape()[2]), keys.insert(c.k().shape()[2]);
  }
  for (const std::int64_t at : {36, 37, 38}) EXPECT_TRUE(queries.contains(at)) << at;
  for (const std::int64_t at : {83, 84, 85}) EXPECT_TRUE(keys.contains(at)) << at;
}

TEST(PromisesOfARun, AreJudgedApartFromWhatIsDeclared) {
  Manifest m = manifest_of("builtin:flash");
  m.promises = {};
  m.promises.usual[DType::f32] = m.arithmetic.usual_for(DType::f32);
  m.promises.usual[DType::f32].accumulate = m.promises.usual[DType::f32].score_sums =
      m.promises.usual[DType::f32].weights = DType::f64;
  m.promises.usual[DType::f64] = m.arithmetic.usual_for(DType::f64);
  const auto kernel = function_kernel(
      "promising", m,
      [](const attest_problem& p, attest_result& r, std::string& message) {
        return run_builtin(flash_kernel(), p, r, message);
      },
      [](const attest_multihead_problem& p, attest_result& r, std::string& message) {
        return run_builtin_multihead(flash_kernel(), p, r, message);
      });
  for (const char* entry : {"attention", "multihead"}) {
    const Property &promised = the(std::string(entry) + ".promised"), &oracle = the(std::string(entry) + ".oracle");
    EXPECT_EQ(counted(oracle, *kernel, DType::f32, 60).violated, 0) << entry;
    EXPECT_GT(counted(promised, *kernel, DType::f32, 60).violated, 2) << entry;
    const Counts kept = counted(promised, *kernel, DType::f64, 60);
    EXPECT_EQ(kept.violated, 0) << entry;
    EXPECT_GT(kept.held, 30) << entry;
    EXPECT_EQ(counted(promised, *kernel, DType::bf16, 60).skipped, 60) << "promises nothing there";
  }
}

// A wide output shows what the narrow one rounds away.
TEST(PromisesOfARun, AreOfEveryFormatOfTheOutput) {
  const auto violated = [](bool wide) {
    Manifest m = manifest_of("builtin:flash");
    Arithmetic& promise = m.promises.usual[DType::bf16];
    promise.accumulate = promise.score_sums = promise.weights = DType::f64;
    if (wide) m.out_dtypes[DType::bf16] = {DType::f32};
    m.lse = false;  // which is f64 and would show it, too
    const auto kernel =
        function_kernel("promising", m, [](const attest_problem& p, attest_result& r, std::string& why) {
          return run_builtin(flash_kernel(), p, r, why);
        });
    return counted(the("attention.promised"), *kernel, DType::bf16, 60).violated;
  };
  EXPECT_GT(violated(true), 10);
  EXPECT_LT(violated(false), violated(true));
}

}  // namespace
}  // namespace attest
