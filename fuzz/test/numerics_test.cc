// The fuzz targets of the catalogue: right kernels hold, a kernel that answers wrong is a finding of every target, and
// nothing that a target names is there for show.
#include "fuzz/targets/numerics.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "core/test/says.h"
#include "core/test/temporary_folder.h"
#include "properties/test/catalogue/tampered.h"

namespace attest {
namespace {

struct NumericsRow {
  const char* name;
  const char* properties;
  const char* kernels;
};
/// As fuzz/targets/CMakeLists.txt has them.
constexpr NumericsRow rows[] = {
#include "numerics_targets.inc"
};

class EachTarget : public testing::TestWithParam<NumericsRow> {};
INSTANTIATE_TEST_SUITE_P(NumericsTargets, EachTarget, testing::ValuesIn(rows),
                         [](const auto& row) { return std::string(row.param.name); });

bool is_finding(const std::optional<Numerics::Result>& result) {
  return result && (result->verdict.outcome == Outcome::violated || result->verdict.outcome == Outcome::inconclusive);
}

/// Another answer in every call, each third one of NaN; a rejection where a wide scalar's own numbers are asked for.
class Wrong final : public ForwardingKernel {
 public:
  using ForwardingKernel::ForwardingKernel;
  Reply run(const Case& c, std::optional<DType> output, bool want_lse) override {
    if (!output && is_wide()) return {CallStatus::rejected, "no", {}, {}};
    Reply reply = ForwardingKernel::run(c, output, want_lse);
    const double added = ++calls_ % 3 == 0 ? std::numeric_limits<double>::quiet_NaN() : 100.0 * calls_;
    if (reply.status == CallStatus::ok) each_out([added](double old) { return old + added; })(reply);
    return reply;
  }
  Reply backward(const Case& c, const BackwardCall& call, DType output) override {
    Reply reply = ForwardingKernel::backward(c, call, output);
    for (Values& gradient : reply.gradients)
      for (std::int64_t e = 0; e < gradient.elements(); ++e) gradient.set(e, gradient[e] + 100.0 * ++calls_);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<Wrong>(inner().clone()); }

 private:
  int calls_ = 0;
};

/// Of every kernel, some fresh input of some property is found, and the first found names what it is about.
TEST_P(EachTarget, FindsEachOfItsKernelsWhereItAnswersWrong) {
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (auto& kernel : kernels_matching(GetParam().kernels))
    kernels.push_back(std::make_unique<Wrong>(std::move(kernel)));
  std::set<std::string> missing;
  for (const auto& kernel : kernels) missing.insert(kernel->id());
  const Numerics target(GetParam().properties, std::move(kernels));
  const test::TemporaryFolder folder;
  Stream stream(1);
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, choice] : target.choices()) numbers.push_back(number);
  for (int tries = 0; tries < 5000 && !missing.empty(); ++tries) {
    const std::uint64_t number =
        numbers[static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(numbers.size())))];
    const Numerics::Choice& choice = target.choices().at(number);
    if (!missing.contains(choice.kernel->id())) continue;
    const std::optional<Numerics::Result> result = target.run(target.fresh(number, stream));
    if (!is_finding(result)) continue;
    const std::string line = finding_of(*result, folder.path());
    EXPECT_THAT(line, Says(choice.kernel->id(), choice.property->name, name_of(choice.dtype), result->verdict.reason,
                           "; attest replay " + folder.path().string()));
    EXPECT_THAT(line, NeverSays("\n"));
    missing.erase(choice.kernel->id());
  }
  EXPECT_EQ(missing, std::set<std::string>());
}

/// Every property is judged on some kernel, of which nothing is found: its cases are not all too large or skipped.
TEST_P(EachTarget, JudgesEachOfItsPropertiesAndFindsNothing) {
  const Numerics target(GetParam().properties, kernels_matching(GetParam().kernels));
  std::map<std::string_view, std::vector<std::uint64_t>> of_property;
  for (const auto& [number, choice] : target.choices()) of_property[choice.property->name].push_back(number);
  Stream stream(2);
  for (const auto& [property, numbers] : of_property) {
    bool judged = false;
    for (int tries = 0; tries < 200 && !judged; ++tries) {
      const auto at = static_cast<std::size_t>(stream.below(static_cast<std::int64_t>(numbers.size())));
      const std::optional<Numerics::Result> result = target.run(target.fresh(numbers[at], stream));
      if (!result) continue;
      EXPECT_FALSE(is_finding(result)) << finding_of(*result, testing::TempDir());
      judged = result->verdict.outcome == Outcome::held;
    }
    EXPECT_TRUE(judged) << property;
  }
}

TEST(NumericsTargets, ReachEveryPropertyOfTheCatalogueByItsFamily) {
  std::set<std::string_view> reached;
  for (const NumericsRow& row : rows) {
    if (std::string_view(row.properties) == "*") continue;
    const Numerics target(row.properties, kernels_matching(row.kernels));
    for (const auto& [number, choice] : target.choices()) reached.insert(choice.property->name);
  }
  for (const Property* const property : catalogue())
    EXPECT_EQ(reached.contains(property->name), !property->floating_point.starts_with("statistical")) << property->name;
}

TEST(Numerics, NumbersChooseAndKeepTheirMeaningBesideOthers) {
  const Numerics few("attention.oracle", kernels_matching("builtin:flash"));
  const Numerics many("attention.*", kernels_matching("builtin:*"));
  EXPECT_EQ(few.choices().size(), 4U);
  Stream stream(3);
  for (const auto& [number, choice] : few.choices()) {
    const auto bytes = few.fresh(number, stream);
    EXPECT_EQ(&few.chosen(bytes), &choice);
    const Numerics::Choice& there = many.chosen(bytes);
    EXPECT_EQ(there.property, choice.property);
    EXPECT_EQ(there.kernel->id(), choice.kernel->id());
    EXPECT_EQ(there.dtype, choice.dtype);
  }
}

TEST(Numerics, MakesInputsOfAnyBytes) {
  const Numerics target("attention.oracle multihead.oracle", kernels_matching("builtin:two-pass"));
  Stream stream(4);
  std::vector<std::uint8_t> last;
  std::set<const Property*> properties;
  for (int n = 0; n < 300; ++n) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(stream.below(64)));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(stream.next());
    const std::uint64_t seed = stream.next();
    EXPECT_EQ(target.mutated(bytes, seed), target.mutated(bytes, seed));
    for (const auto& made : {bytes, target.mutated(bytes, seed), target.crossed(bytes, last, seed)}) {
      const auto result = target.run(made);
      EXPECT_FALSE(is_finding(result)) << finding_of(*result, testing::TempDir());
      if (result) properties.insert(result->choice.property);
    }
    last = bytes;
  }
  EXPECT_EQ(properties.size(), 2U);
}

TEST(Numerics, LeavesLargeCasesAlone) {
  // Batch, heads, queries, keys and dimensions of 64 each.
  std::vector<std::uint8_t> bytes(8 + input_header_bytes);
  Input input;
  Recipe& r = input.recipe;
  r.queries = r.keys = r.dk = r.dv = 64;
  const Numerics target("attention.oracle", kernels_matching("core:double"));
  const std::vector<std::uint8_t> large = bytes_of(input);
  std::ranges::copy(large, bytes.begin() + 8);
  EXPECT_FALSE(target.run(bytes));
  r.keys = 2;
  std::ranges::copy(bytes_of(input), bytes.begin() + 8);
  EXPECT_TRUE(target.run(bytes));
}

TEST(Numerics, RefusesWhatIsNothing) {
  EXPECT_THROW((void)kernels_matching("builtin:none"), UsageError);
  EXPECT_THROW(Numerics("none.*", kernels_matching("builtin:flash")), UsageError);
  EXPECT_THROW(Numerics("multihead.oracle", kernels_matching("fault:all-zeros")), UsageError);
}

}  // namespace
}  // namespace attest
