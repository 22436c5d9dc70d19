// Queries are deleted one at a time and many: a path of its own for one query shows against a claim of batch
// invariance.
#include <gtest/gtest.h>

#include "core/call/function_kernel.h"
#include "core/kernels/builtin.h"
#include "core/kernels/kernel_families.h"
#include "properties/arrangement/within_limits.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

const Property& the(std::string_view name) {
  return *properties_matching(std::string(name)).at(0);
}

/// Sums key by key, but where there are at most so many queries.
std::unique_ptr<Kernel> another_path_up_to(std::int64_t queries) {
  return function_kernel("paths", open_kernels("builtin:pairwise", {}).at(0)->manifest(),
                         [queries](const attest_problem& p, attest_result& r, std::string& message) {
                           return run_builtin(p.q.shape[2] <= queries ? pairwise_kernel() : online_kernel(), p, r,
                                              message);
                         });
}

int violations(const Property& property, Kernel& kernel, std::int64_t cases) {
  int count = 0;
  for (std::int64_t k = 0; k < cases; ++k) {
    const Verdict verdict =
        check_case(property, kernel, project(generate(property, DType::f32, 1, k), kernel.manifest()));
    count += verdict.outcome == Outcome::violated;
  }
  return count;
}

TEST(QueryDeletion, ShowsAPathOfItsOwnForFewQueries) {
  for (const char* name : {"attention.query-deletion", "masked.query-deletion"}) {
    for (const std::int64_t queries : {1, 2, 4})
      EXPECT_GT(violations(the(name), *another_path_up_to(queries), 200), 3) << name << ", up to " << queries;
    EXPECT_EQ(violations(the(name), *another_path_up_to(0), 200), 0) << name;
  }
}

TEST(QueryDeletion, LeavesOneQueryOrSomeOrAllButOne) {
  int one = 0, some = 0, all_but_one = 0;
  for (std::int64_t k = 0; k < 400; ++k) {
    const Case c = generate(the("attention.query-deletion"), DType::f32, 1, k);
    const std::int64_t M = c.q().shape()[2];
    const Indices left = queries_left(c);
    EXPECT_TRUE(std::ranges::is_sorted(left));
    EXPECT_TRUE(std::ranges::adjacent_find(left) == left.end()) << "each once";
    if (M < 4) continue;
    EXPECT_LT(std::ssize(left), M);
    EXPECT_LT(left.back(), M);
    one += std::ssize(left) == 1;
    some += std::ssize(left) > 1 && std::ssize(left) < M - 1;
    all_but_one += std::ssize(left) == M - 1;
  }
  EXPECT_GT(one, 10);
  EXPECT_GT(some, 10);
  EXPECT_GT(all_but_one, 40);
}

}  // namespace
}  // namespace attest
