// Every property that can be proved, at the shapes that each commit is held to.
#include <gtest/gtest.h>

#include "properties/test/proofs/prove_everything.h"

namespace attest {
namespace {

TEST(ProveShapes, EveryPropertyAtAllSmallShapes) {
  std::vector<ProofShape> shapes;
  for (std::int64_t M = 2; M <= 4; ++M)
    for (std::int64_t N = 2; N <= 4; ++N)
      for (const std::int64_t dv : {1, 2})
        for (const std::int64_t heads : {1, 2}) shapes.push_back({M, N, 2, dv, heads});
  prove_everything(shapes);
}

TEST(ProveShapes, EveryPropertyAtFourByFour) {
  prove_everything({{4, 4, 4, 4, 2}});
}

TEST(ProveShapes, EveryPropertyAtSixteenKeys) {
  prove_everything({{16, 16, 2, 2, 1}});
}

}  // namespace
}  // namespace attest
