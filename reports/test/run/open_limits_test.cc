// Limits that a manifest leaves open: found before the run, said, and kept with the kernel.
#include "reports/run/open_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/forwarding_kernel.h"
#include "core/problem/sight.h"

namespace attest {
namespace {

using testing::HasSubstr;

/// Of a library that takes multiples of 64 keys, and says so or not.
class OfTiles final : public ForwardingKernel {
 public:
  explicit OfTiles(int& asked, std::string id = "./tiles.so", std::int64_t multiple = 1)
      : ForwardingKernel(std::move(open_kernels("builtin:two-pass", {}).front())),
        asked_(asked),
        id_(std::move(id)),
        manifest_(ForwardingKernel::manifest()) {
    manifest_.keys_multiple = multiple;
  }
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return manifest_; }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<OfTiles>(asked_, id_, manifest_.keys_multiple);
  }
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    ++asked_;
    if (keys_of(c) % 64 != 0) return {.status = CallStatus::unsupported, .message = {}, .out = {}, .lse = {}};
    return ForwardingKernel::run(c, output, want_lse);
  }

 private:
  int& asked_;
  std::string id_;
  Manifest manifest_;
};

struct Opened {
  std::unique_ptr<Kernel> kernel;
  std::vector<MetaRecord> notes{};
  std::string said{};
};
Opened opened(std::unique_ptr<Kernel> kernel, const Journal& earlier = {}) {
  Opened result;
  testing::internal::CaptureStderr();
  result.kernel = within_open_limits(std::move(kernel), earlier, result.notes);
  result.said = testing::internal::GetCapturedStderr();
  return result;
}

TEST(OpenLimits, AreFoundSaidAndKeptWithTheKernel) {
  int asked = 0;
  const Opened found = opened(std::make_unique<OfTiles>(asked));
  EXPECT_EQ(found.kernel->id(), "./tiles.so");
  EXPECT_EQ(found.kernel->manifest().keys_multiple, 64);
  EXPECT_EQ(found.kernel->clone()->manifest().keys_multiple, 64);
  EXPECT_THAT(found.said, HasSubstr("preflight of ./tiles.so: it refused every number of keys that is no multiple of "
                                    "64: it answered 64, 128, 192, 256, 320 keys and refused 1, 2, 3, "));
  EXPECT_THAT(found.said, HasSubstr("taken for \"limits\": {\"keys_multiple\": 64}, which its manifest may state"));
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_EQ(found.notes[0].event, "note");
  EXPECT_EQ(found.notes[0].facts.at("kernel"), "./tiles.so");
}

TEST(OpenLimits, AreThoseOfTheJournalInARunThatGoesOn) {
  int asked = 0;
  const Opened first = opened(std::make_unique<OfTiles>(asked));
  Journal earlier;
  earlier.kernels.push_back({"./tiles.so", to_json(first.kernel->manifest()), ""});
  asked = 0;
  const Opened again = opened(std::make_unique<OfTiles>(asked), earlier);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(again.kernel->manifest(), first.kernel->manifest());
  EXPECT_EQ(again.said, "");
  EXPECT_TRUE(again.notes.empty());
}

TEST(OpenLimits, AreNotLookedForWhereTheyAreStated) {
  int asked = 0;
  const Opened stated = opened(std::make_unique<OfTiles>(asked, "./tiles.so", 64));
  EXPECT_LE(asked, 6);
  EXPECT_EQ(stated.said, "");
  EXPECT_EQ(stated.kernel->manifest().keys_multiple, 64);
  asked = 0;
  const Opened own = opened(std::make_unique<OfTiles>(asked, "builtin:tiles"));
  EXPECT_EQ(asked, 0) << "what comes with the project is known";
  EXPECT_EQ(own.kernel->manifest().keys_multiple, 1);
}

}  // namespace
}  // namespace attest
