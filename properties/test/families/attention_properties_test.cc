// The properties of attention on kernels that are right, which must hold, and on wrong ones, which must be found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>

#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/catalogue/property.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

const Property& the(std::string_view name) {
  return *std::ranges::find(attention_properties(), name, &Property::name);
}

Verdict verdict_on(const Property& property, Kernel& kernel, DType dtype, std::int64_t k) {
  return check_case(property, kernel, project(generate(property, dtype, /*run_seed=*/1, k), kernel.manifest()));
}

TEST(AttentionProperties, HoldOnEveryBuiltinKernel) {
  for (const KernelEntry& entry : builtin_kernels()) {
    const auto kernel = entry.make();
    for (const DType dtype : kernel->manifest().dtypes) {
      for (const Property& property : attention_properties()) {
        int held = 0;
        for (std::int64_t k = 0; k < 300; ++k) {
          const Verdict verdict = verdict_on(property, *kernel, dtype, k);
          ASSERT_TRUE(verdict.outcome != Outcome::violated && verdict.outcome != Outcome::inconclusive)
              << entry.id << ' ' << name_of(dtype) << ' ' << property.name << " k = " << k << ": " << verdict.reason;
          held += verdict.outcome == Outcome::held;
        }
        EXPECT_GE(held, 150) << entry.id << ' ' << name_of(dtype) << ' ' << property.name;
      }
    }
  }
}

/// The first k below `cases` that is violated, or -1.
std::int64_t first_violation(const Property& property, Kernel& kernel, DType dtype, std::int64_t cases) {
  for (std::int64_t k = 0; k < cases; ++k) {
    if (verdict_on(property, kernel, dtype, k).outcome == Outcome::violated) return k;
  }
  return -1;
}

struct Fault {
  std::string name;
  Tampered::Question question;
  std::int64_t cases_f32, cases_bf16;  ///< within how many cases it must be found; 0: hidden by the format's tolerance
};

void drop_last_key(Case& c) {
  if (keys_of(c) % 16 != 1 || keys_of(c) < 2) return;
  Selection s = everything(c);
  s.keys.pop_back();
  c = select(c, s);
}

const Fault faults[] = {
    {"scale x 1.01", [](Case& c) { c.scale *= 1.01; }, 20, 100},
    {"scale ignored", [](Case& c) { c.scale = 1.0; }, 20, 20},
    {"mask ignored", [](Case& c) { c[Slot::mask] = Tensor(); }, 20, 20},
    {"causal form ignored", [](Case& c) { c.causal = Causal::none; }, 60, 60},
    {"causal alignment exchanged",
     [](Case& c) {
       if (c.causal != Causal::none) {
         c.causal = c.causal == Causal::top_left ? Causal::bottom_right : Causal::top_left;
       }
     },
     60, 60},
    {"mask convention exchanged",
     [](Case& c) {
       c.mask_convention =
           c.mask_convention == MaskConvention::post_scale ? MaskConvention::pre_scale : MaskConvention::post_scale;
     },
     60, 100},
    {"mask of the first batch entry for all",
     [](Case& c) {
       if (!c.mask().present() || c.mask().shape()[0] == 1) return;
       Selection s = everything(c);
       for (std::int64_t& b : s.batch) b = 0;
       c[Slot::mask] = select(c, s).mask();
     },
     300, 300},
    {"last key dropped at N = 17, 33, ...", drop_last_key, 600, 600},
    {"columns of q beyond 64 dropped",
     [](Case& c) {
       const Extents e = extents_of(c);
       if (e.dk <= 64) return;
       const double scale = c.scale;
       Selection s = everything(c);
       s.dk.resize(64);
       c = select(c, s);
       c.scale = scale;
     },
     2000, 2000},
    {"heads read the wrong group",
     [](Case& c) {
       const Extents e = extents_of(c);
       if (e.kv_heads == 1 || e.kv_heads == e.heads) return;
       Selection s = everything(c);
       std::rotate(s.kv_heads.begin(), s.kv_heads.begin() + 1, s.kv_heads.end());
       c = select(c, s);
     },
     300, 300},
};

TEST(AttentionOracle, FindsWrongKernelsSoon) {
  for (const Fault& fault : faults) {
    Tampered kernel(registered("builtin:two-pass"), fault.question);
    for (const auto& [dtype, cases] :
         {std::pair{DType::f32, fault.cases_f32}, std::pair{DType::bf16, fault.cases_bf16}}) {
      const std::int64_t k = first_violation(the("attention.oracle"), kernel, dtype, cases);
      EXPECT_GE(k, 0) << fault.name << " in " << name_of(dtype);
      if (k >= 0) std::cout << fmt::format("{} in {}: case {}\n", fault.name, name_of(dtype), k);
    }
  }
}

TEST(AttentionOracle, RaisesNoAlarmOnABuiltinKernelAndOneOnAScaleThatIsALittleOff) {
  const Property& property = the("attention.oracle");
  const auto alarms = [&](Kernel& kernel) {
    Alarm all;
    for (std::int64_t k = 0; k < 400; ++k) {
      const Case c = project(generate(property, DType::f32, 1, k), kernel.manifest());
      const Verdict verdict = check_case(property, kernel, c, {.alarm = 1e-9});
      EXPECT_EQ(verdict.outcome, check_case(property, kernel, c).outcome);
      if (verdict.alarm) all.merge(*verdict.alarm);
    }
    return all;
  };
  const std::unique_ptr<Kernel> right = registered("builtin:two-pass");
  EXPECT_EQ(alarms(*right).beyond, 0);
  EXPECT_GT(alarms(*right).elements, 1000);
  Tampered wrong(registered("builtin:two-pass"), [](Case& c) { c.scale *= 1 + 0x1p-20; });
  EXPECT_GT(alarms(wrong).beyond, 0);
}

TEST(AttentionOracle, JudgesTheLogSumExpWhereItIsOffered) {
  Tampered kernel = answered_otherwise([](Reply& reply) {
    if (reply.lse.present() && reply.lse.elements() > 0) reply.lse.set(0, reply.lse[0] + 1);
  });
  ASSERT_TRUE(kernel.manifest().lse);
  EXPECT_GE(first_violation(the("attention.oracle"), kernel, DType::f32, 20), 0);
}

TEST(AttentionOracle, ShrinksAWrongScaleToTwoKeys) {
  Tampered kernel(registered("builtin:flash"), [](Case& c) { c.scale *= 1.01; });
  const Property& oracle = the("attention.oracle");
  const std::int64_t k = first_violation(oracle, kernel, DType::f32, 20);
  ASSERT_GE(k, 0);
  const Case small = shrink(oracle, kernel, generate(oracle, DType::f32, 1, k));
  const Extents e = extents_of(small);
  EXPECT_LE(e.batch * e.heads * e.queries, 1);
  EXPECT_LE(e.keys, 2);
  EXPECT_LE(e.dk * e.dv, 1);
}

TEST(AttentionFinite, FindsANaNInARowThatMustBeFinite) {
  Tampered kernel = answered_otherwise([](Reply& reply) {
    const std::int64_t last = reply.out.elements() - 1;
    if (last >= 0 && std::abs(reply.out[last]) > 1e4) reply.out.set(last, NAN);
  });
  const Property& finite = the("attention.finite");
  const std::int64_t k = first_violation(finite, kernel, DType::f32, 100);
  ASSERT_GE(k, 0);
  const Verdict verdict = verdict_on(finite, kernel, DType::f32, k);
  EXPECT_EQ(verdict.violation, Violation::not_finite);
  EXPECT_TRUE(verdict.reason.starts_with("non-finite: element ")) << verdict.reason;
  EXPECT_TRUE(std::isinf(verdict.utilisation));
  EXPECT_GE(verdict.element, 0);
}

/// Flips the last bit of the last element on every second call.
Tampered unsteady(const std::shared_ptr<int>& calls) {
  return answered_otherwise([calls](Reply& reply) {
    if (++*calls % 2 == 0 && reply.out.elements() > 0)
      reply.out.tensor().bytes()[reply.out.tensor().bytes().size() - 4] ^= std::byte{1};
  });
}

TEST(AttentionRepeatable, HoldsAKernelToWhatItClaimsAndNoMore) {
  const auto calls = std::make_shared<int>(0);
  Tampered kernel = unsteady(calls);
  const Property& repeatable = the("attention.repeatable");
  ASSERT_TRUE(kernel.manifest().claims_to(Claim::deterministic));
  const Verdict verdict = verdict_on(repeatable, kernel, DType::f32, 0);
  EXPECT_EQ(verdict.outcome, Outcome::violated);
  EXPECT_EQ(verdict.violation, Violation::bits);
  EXPECT_TRUE(verdict.reason.starts_with("not-repeatable: element ")) << verdict.reason;
  std::erase(kernel.manifest().claims, Claim::deterministic);
  int held = 0;
  for (std::int64_t k = 0; k < 50; ++k) held += verdict_on(repeatable, kernel, DType::f32, k).outcome == Outcome::held;
  EXPECT_GE(held, 35);  // the last bit lies within the bound, but for values of a single rounding
}

/// Shares of excused cases in f32 per kind: few on the whole, so that a run judges what it draws.
TEST(AttentionOracle, ExcusesFewCasesInF32) {
  constexpr int cases = 4000;
  const auto kernel = registered("builtin:flash");
  std::map<std::string, std::pair<int, int>> share;
  int excused = 0, skipped = 0;
  for (std::int64_t k = 0; k < cases; ++k) {
    const Case c = generate(the("attention.oracle"), DType::f32, 1, k);
    const Verdict verdict = check_case(the("attention.oracle"), *kernel, c);
    excused += verdict.outcome == Outcome::excused;
    skipped += verdict.outcome == Outcome::skipped;
    std::istringstream kinds(c.provenance.kinds.value());
    for (std::string word; kinds >> word;) {
      ++share[word].second;
      share[word].first += verdict.outcome == Outcome::excused;
    }
  }
  EXPECT_LE(excused, cases / 10);
  EXPECT_EQ(skipped, 0);
  std::cout << fmt::format("excused {} of {}\n", excused, cases);
  for (const auto& [word, counts] : share) {
    if (counts.first > 0) std::cout << fmt::format("  {:32} {:4} of {:4}\n", word, counts.first, counts.second);
  }
}

}  // namespace
}  // namespace attest
