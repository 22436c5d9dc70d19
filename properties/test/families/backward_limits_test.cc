// Laws of gradients that take rows and keys away or add some, on kernels that take whole tiles alone: there silent rows
// and hidden keys fill up, and nothing is seen of less.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/tampered.h"
#include "properties/test/property_fixture.h"

namespace attest {
namespace {

/// builtin:flash for whole tiles of queries and keys alone, with another backward pass around its own.
class OfTiles final : public Tampered {
 public:
  using Around = std::function<Reply(const std::function<Reply(const Case&)>& own, const Case&)>;
  explicit OfTiles(Around around, bool same_lengths = false)
      : Tampered(std::move(open_kernels("builtin:flash", {}).front()), [](Case&) {}), around_(std::move(around)) {
    Manifest& m = manifest();
    m.head_dims = {16};
    m.queries_multiple = 16, m.keys_multiple = same_lengths ? 16 : 8;
    m.same_lengths = same_lengths;
    m.strides = false;
    m.variants.clear();
  }
  [[nodiscard]] Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    return around_([&](const Case& asked) { return Tampered::backward(asked, call, output); }, c);
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<OfTiles>(around_); }

 private:
  Around around_;
};

OfTiles::Around changing(Gradient which, std::function<double(const Case&, std::int64_t, double)> value) {
  return [which, value = std::move(value)](const std::function<Reply(const Case&)>& own, const Case& c) {
    Reply reply = own(c);
    if (reply.status != CallStatus::ok) return reply;
    Tensor& t = reply.gradients[static_cast<std::size_t>(which)].tensor();
    for (std::int64_t e = 0; e < t.elements(); ++e) t.set(e, value(c, e, t[e]));
    return reply;
  };
}

constexpr const char* laws[] = {"backward.split-keys", "backward.query-additivity", "backward.zero-row-deletes",
                                "backward.query-duplication"};

TEST(BackwardLimits, ARightKernelOfWholeTilesIsJudgedAndHolds) {
  for (const bool same_lengths : {false, true}) {
    OfTiles right([](const std::function<Reply(const Case&)>& own, const Case& c) { return own(c); }, same_lengths);
    for (const char* const law : laws) {
      const Tried t = tried(law, right, DType::f32, 60);
      EXPECT_EQ(t.violated, 0) << law << ": " << t.reason;
      EXPECT_GE(t.held, 30) << law << (same_lengths ? " where M = N" : "");
    }
  }
}

// What is the same in whichever part it stands adds up to another sum, whatever the tiles.
TEST(BackwardLimits, EachGradientOfEachLawIsLookedAt) {
  const auto size = [](const Case&, std::int64_t, double found) { return std::fabs(found); };
  const auto by_place = [](const Case& c, std::int64_t e, double found) {
    return e / c.q().shape()[3] % 2 == 0 ? found : 1.25 * found;
  };
  const auto by_tile = [](const Case& c, std::int64_t e, double found) {
    return e / c.q().shape()[3] % queries_of(c) < 16 ? found : 1.25 * found;
  };
  const auto by_all_queries = [](const Case& c, std::int64_t, double found) {
    double sum = 0;
    for (std::int64_t e = 0; e < c.q().elements(); ++e) sum += std::fabs(c.q()[e]);
    return found + sum;
  };
  const auto expect_seen = [](const char* law, Gradient of, auto value) {
    OfTiles wrong(changing(of, value));
    const Tried t = tried(law, wrong, DType::f32, 60);
    EXPECT_GT(t.violated, 10) << law << ", " << name_of(of);
  };
  expect_seen("backward.split-keys", Gradient::q, size);
  expect_seen("backward.split-keys", Gradient::k, by_place);
  expect_seen("backward.split-keys", Gradient::v, by_place);
  expect_seen("backward.query-additivity", Gradient::q, by_place);
  expect_seen("backward.query-additivity", Gradient::k, size);
  expect_seen("backward.query-additivity", Gradient::v, size);
  expect_seen("backward.zero-row-deletes", Gradient::k, by_all_queries);
  expect_seen("backward.zero-row-deletes", Gradient::v, by_all_queries);
  expect_seen("backward.query-duplication", Gradient::q, by_tile);
}

// Two copies of a row weigh as much as one with twice its answer's gradient: not where that is cut off.
TEST(BackwardLimits, ARowThatIsRepeatedCountsTwice) {
  OfTiles wrong([](const std::function<Reply(const Case&)>& own, const Case& c) {
    Case cut = c;
    cut[Slot::d_out] = mapped(c[Slot::d_out], [](std::int64_t, double g) { return std::clamp(g, -0.5, 0.5); });
    return own(cut);
  });
  EXPECT_GT(tried("backward.query-duplication", wrong, DType::f32, 60).violated, 10);
}

}  // namespace
}  // namespace attest
