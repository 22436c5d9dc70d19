// Each planted fault is refuted, by the check that is about it. The core here is the real one with one named deviation.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/proof/sign.h"
#include "core/proof/taint.h"
#include "core/test/definition/specification_checks.h"
#include "core/test/planted/planted.h"
#include "planted_names.h"

namespace attest::test {
namespace {

struct PlantedFault {
  std::string name;
  std::string check;  ///< what must refute it
  friend std::ostream& operator<<(std::ostream& out, const PlantedFault& fault) { return out << fault.name; }
};

const std::vector<PlantedFault> faults{
    {"scale-dropped", "attention"},
    {"scale-applied-twice", "attention"},
    // Every relation between two runs holds with 2B in place of B: the formula alone refutes it.
    {"mask-added-twice", "mask.additive-post-scale"},
    {"mask-not-added", "mask.additive-post-scale"},
    {"mask-of-another-row", "mask.additive-post-scale"},
    {"conventions-exchanged", "mask.additive-pre-scale"},
    {"cap-dropped", "mask.softcap"},
    {"cap-without-its-factor", "mask.softcap"},
    {"cap-after-the-mask", "mask.softcap"},
    {"slope-dropped", "mask.slope"},
    {"slope-added-to-the-score", "mask.slope"},
    {"slope-from-the-first-key", "mask.slope"},
    {"dropped-where-it-is-kept", "mask.dropout"},
    {"kept-of-the-first-row", "mask.dropout"},
    {"kept-of-the-first-block", "mask.dropout"},
    {"kept-and-not-divided", "mask.dropout"},
    {"kept-and-multiplied", "mask.dropout"},
    {"key-of-the-next-position", "attention"},
    {"one-term-not-shifted", "softmax"},
    {"first-term-left-out-of-the-sum", "softmax"},
    {"not-normalised", "softmax"},
    {"weight-of-the-others", "softmax"},
    {"mask-after-the-softmax", "mask.boolean"},
    {"reference-left-out-of-the-log-sum-exp", "attention.log-sum-exp"},
    {"values-of-the-first-block", "partial.state"},
    {"renormalised-over-all-keys", "mask.renormalised"},
    {"groups-interleaved", "grouped-queries"},
    {"rescale-missing", "partial.split-and-merge"},
    {"rescaled-by-another-row", "partial.split-and-merge"},
    {"causal-off-by-one", "mask.causal-top-left"},
    {"bottom-right-is-top-left", "mask.causal-bottom-right"},
    {"window-exclusive-on-the-left", "mask.window"},
    {"window-exclusive-on-the-right", "mask.window"},
    {"chunk-of-the-next-position", "mask.chunk"},
    {"chunk-without-an-end", "mask.chunk"},
    {"appended-key-is-causal", "mmhattn.bias-kv"},
    {"pages-transposed", "mmhattn.batch"},
    {"bias-dropped", "projection"},
    {"key-weights-not-transposed", "bilinear-scores"},
    {"interleaved-keys-are-queries", "packed-qkv.interleaved"},
    {"product-loses-its-last-term", "product"},
    {"heads-swapped", "mhattn"},
    {"every-head-takes-the-first-block-of-w_o", "mmhattn.as-sum"},
    {"out-projection-not-transposed", "torch.packed"},
    {"softmax-along-the-other-axis", "columns.attention"},
    {"every-token-at-the-first-position", "ladder.positions"},
};

/// Turns a fault on while it lives.
class Planted {
 public:
  explicit Planted(const std::string& name) { planted_fault() = name; }
  ~Planted() { planted_fault().clear(); }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

template <class Scope>
const SpecificationCheck<Scope>* named(const std::vector<SpecificationCheck<Scope>>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& check) { return check.name == name; });
  return found == all.end() ? nullptr : &*found;
}
Comparison compared(const SpecificationCheck<SymbolicScope>& check) {
  SymbolicScope scope(/*room=*/192);
  Comparison comparison;
  check.run(scope, comparison);
  return comparison;
}
Comparison compared(const SpecificationCheck<FieldScope>& check) {
  FieldScope scope;
  Comparison comparison;
  check.run(scope, comparison);
  return comparison;
}
constexpr auto none = [] { return std::vector<std::string>{}; };

class PlantedFaults : public ::testing::TestWithParam<PlantedFault> {
 protected:
  template <class Scope>
  static void expect_refuted(const std::vector<SpecificationCheck<Scope>>& all) {
    const SpecificationCheck<Scope>* found = named(all, GetParam().check);
    ASSERT_NE(found, nullptr) << "there is no check " << GetParam().check;
    const SpecificationCheck<Scope>& check = *found;
    EXPECT_EQ(compared(check).different, none()) << "without the fault";
    {
      const Planted on(GetParam().name);
      EXPECT_NE(compared(check).different, none());
    }
    EXPECT_TRUE(reached_faults().contains(GetParam().name)) << "its place is never reached";
  }
};

TEST_P(PlantedFaults, AreRefutedSymbolically) {
  static const std::vector<SpecificationCheck<SymbolicScope>> all = symbolic_checks();
  expect_refuted(all);
}
class PlantedFaultsOfNumbers : public PlantedFaults {};
TEST_P(PlantedFaultsOfNumbers, AreRefutedInAFiniteField) {
  static const std::vector<SpecificationCheck<FieldScope>> all = field_checks();
  expect_refuted(all);
}

constexpr auto test_name = [](const auto& fault) {
  std::string name = fault.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(Core, PlantedFaults, ::testing::ValuesIn(faults), test_name);
// Residues have no logarithms.
std::vector<PlantedFault> without_logarithms() {
  std::vector<PlantedFault> rest = faults;
  std::erase_if(rest, [](const PlantedFault& fault) { return fault.check == "attention.log-sum-exp"; });
  return rest;
}
INSTANTIATE_TEST_SUITE_P(Core, PlantedFaultsOfNumbers, ::testing::ValuesIn(without_logarithms()), test_name);

TEST(PlantedFaults, AreAllListed) {
  std::vector<std::string> listed, written = planted_names;
  for (const PlantedFault& fault : faults) listed.push_back(fault.name);
  std::sort(listed.begin(), listed.end());
  std::sort(written.begin(), written.end());
  EXPECT_EQ(listed, written);
}

// What sign_test.cc and taint_test.cc prove of the core is not true of one with a fault.
TEST(PlantedFaults, ThatTurnWeightsAroundAreRefutedBySigns) {
  const auto matrix = [](Index rows, unsigned bits) { return Matrix<Sign>::Constant(rows, 2, Sign::number(bits)); };
  const auto output = [&] {
    return attention<Sign>(matrix(1, SignSet::any), matrix(3, SignSet::any), matrix(3, SignSet::negative),
                           Sign::number(SignSet::positive))(0, 0);
  };
  EXPECT_EQ(output().signs(), SignSet(SignSet::negative));
  const Planted on("weight-of-the-others");
  EXPECT_NE(output().signs(), SignSet(SignSet::negative));
}
TEST(PlantedFaults, ThatLeakAreRefutedByTaints) {
  constexpr std::uint32_t key = 7;
  const Taint one = Taint::constant();
  const auto leaks = [&](const Mask<Taint>& mask) {
    const Matrix<Taint> q = Matrix<Taint>::Constant(3, 2, one);
    Matrix<Taint> k = q, v = q;
    k(2, 0) = Taint::input(key);
    return mattn(q, k, v, one, mask)(1, 0).depends_on(key);
  };
  BoolMatrix allowed = BoolMatrix::Constant(3, 3, true);
  allowed(1, 2) = false;
  const Mask<Taint> hiding = boolean_mask<Taint>(allowed), causal = causal_mask<Taint>();
  EXPECT_FALSE(leaks(hiding) || leaks(causal));
  {
    const Planted on("mask-after-the-softmax");
    EXPECT_TRUE(leaks(hiding));
  }
  const Planted on("causal-off-by-one");
  EXPECT_TRUE(leaks(causal));
}

// The copies are the core while no fault is on.
TEST(PlantedFaults, LeaveTheCoreAsItIsWhileOff) {
  for (const SpecificationCheck<SymbolicScope>& check : symbolic_checks())
    EXPECT_EQ(compared(check).different, none()) << check.name;
  for (const SpecificationCheck<FieldScope>& check : field_checks())
    EXPECT_EQ(compared(check).different, none()) << check.name;
}

}  // namespace
}  // namespace attest::test
