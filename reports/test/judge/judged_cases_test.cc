#include "reports/judge/judged_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/problem/edge.h"

namespace attest {
namespace {

const Property& oracle() {
  return **std::ranges::find(catalogue(), "attention.oracle", &Property::name);
}

Contract contract_of(bool other_shapes) {
  return parse_contract(
      std::string(R"({"schema": "attest-contract/1", "name": "small", "cases": 400, "other_shapes": )") +
          (other_shapes ? "true" : "false") +
          R"(, "kernel": {"dtypes": ["f32", "bf16"], "causal": ["top-left"]},
                                 "shapes": ["1,2,2,17,17,8", "1,1,1,3,40,8"]})",
      "small");
}

TEST(JudgedCases, HoldACaseOfEveryCell) {
  const Contract contract = contract_of(true);
  const JudgedCases cases(contract, 99);
  std::set<ContractCell> drawn;
  for (const DType dtype : contract.law.dtypes)
    for (std::int64_t k = 0; k < contract.cases; ++k)
      if (const auto cell = cell_of(contract.shapes, project(cases(oracle(), dtype, k), contract.law)))
        drawn.insert(*cell);
  for (const ContractCell& cell : contract.cells) EXPECT_TRUE(drawn.contains(cell)) << text_of(cell.form);
}

TEST(JudgedCases, AskEveryCellOnceMoreBeyondTheContractsNumber) {
  const Contract contract = contract_of(true);
  const JudgedCases cases(contract, 99);
  const std::int64_t most = most_cells_of_a_dtype(contract);
  EXPECT_EQ(most, std::ranges::count(contract.cells, DType::bf16, &ContractCell::dtype));
  for (const DType dtype : contract.law.dtypes) {
    for (const std::int64_t round : {0, 1}) {
      std::set<ContractCell> drawn;
      for (std::int64_t k = 0; k < most; ++k)
        if (const auto cell = cell_of(contract.shapes, cases(oracle(), dtype, contract.cases + round * most + k)))
          drawn.insert(*cell);
      EXPECT_EQ(std::ssize(drawn), std::ranges::count(contract.cells, dtype, &ContractCell::dtype));
    }
    // Of other numbers than before.
    EXPECT_FALSE(static_cast<const Problem&>(cases(oracle(), dtype, contract.cases)) ==
                 static_cast<const Problem&>(cases(oracle(), dtype, contract.cases + most)));
  }
}

TEST(JudgedCases, AreOthersForAnotherSeedAndTheSameForTheSame) {
  const Contract contract = contract_of(true);
  const JudgedCases one(contract, 1), again(contract, 1), other(contract, 2);
  int same = 0;
  for (std::int64_t k = 0; k < 200; ++k) {
    const Case c = one(oracle(), DType::f32, k);
    EXPECT_TRUE(c == again(oracle(), DType::f32, k)) << k;
    same += static_cast<const Problem&>(c) == static_cast<const Problem&>(other(oracle(), DType::f32, k)) ? 1 : 0;
  }
  // Problems without a query or a key have no numbers to differ in.
  EXPECT_LT(same, 20);
}

TEST(JudgedCases, AreOfTheContractsShapesAloneWhereItSaysSo) {
  const Contract contract = contract_of(false);
  const JudgedCases cases(contract, 5);
  for (std::int64_t k = 0; k < 100; ++k)
    EXPECT_TRUE(cell_of(contract.shapes, project(cases(oracle(), DType::bf16, k), contract.law))) << k;
}

TEST(JudgedCases, AskAgainAtAddressesAndShapesOfBefore) {
  const Contract contract = contract_of(true);
  const JudgedCases cases(contract, 3);
  int same_shape = 0, same_numbers = 0;
  for (std::int64_t k = 1; k < contract.cases; ++k) {
    const Case before = cases(oracle(), DType::f32, k - 1), c = cases(oracle(), DType::f32, k);
    if (!(extents_of(before) == extents_of(c)) || c.v().elements() < 2) continue;
    ++same_shape;
    same_numbers += static_cast<const Problem&>(before) == static_cast<const Problem&>(c) ? 1 : 0;
  }
  // One in eight is of the case just before it; a sixth of these has the same numbers.
  EXPECT_GT(same_shape, 20);
  EXPECT_GT(same_numbers, 1);
  EXPECT_LT(same_numbers, same_shape / 2);
}

TEST(Repeats, ChangeTheAnswerAndKeepWhatALazyKeyIsMadeOf) {
  Case c =
      case_of(contract_of(true).law, {.batch = 1, .heads = 2, .kv_heads = 2, .queries = 5, .keys = 6, .dk = 3, .dv = 4},
              DType::f32, {}, 7);
  set_edge(c, Edge::front);
  for (const Repeat how : {Repeat::values_rotated, Repeat::keys_rotated, Repeat::queries_rotated,
                           Repeat::column_negated, Repeat::signs_turned}) {
    const Case other = repeated(c, how, 11);
    validate(other);
    EXPECT_FALSE(static_cast<const Problem&>(other) == static_cast<const Problem&>(c));
    EXPECT_EQ(edge_of(other), Edge::front) << "the addresses";
    for (const Slot slot : {Slot::q, Slot::k, Slot::v}) {
      ASSERT_EQ(other[slot].shape(), c[slot].shape());
      std::multiset<double> sizes, before;
      for (const double x : other[slot].to_doubles()) sizes.insert(std::abs(x));
      for (const double x : c[slot].to_doubles()) before.insert(std::abs(x));
      EXPECT_EQ(sizes, before);
    }
  }
  const Case again = repeated(c, Repeat::again, 11);
  EXPECT_TRUE(static_cast<const Problem&>(again) == static_cast<const Problem&>(c));
  EXPECT_EQ(edge_of(again), Edge::behind);
}

TEST(Repeats, TurnOneColumnOrEveryOtherRow) {
  Case c;
  c[Slot::q] = Tensor(DType::bf16, {1, 1, 1, 1}, std::vector<double>{1});
  c[Slot::k] = Tensor(DType::bf16, {1, 1, 3, 1}, std::vector<double>{1, 2, 3});
  c[Slot::v] = Tensor(DType::bf16, {1, 1, 3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(repeated(c, Repeat::values_rotated, 0).v().to_doubles(), (std::vector<double>{3, 4, 5, 6, 1, 2}));
  EXPECT_EQ(repeated(c, Repeat::keys_rotated, 0).k().to_doubles(), (std::vector<double>{2, 3, 1}));
  EXPECT_EQ(repeated(c, Repeat::signs_turned, 0).v().to_doubles(), (std::vector<double>{-1, -2, 3, 4, -5, -6}));
  const std::vector<double> column = repeated(c, Repeat::column_negated, 5).v().to_doubles();
  EXPECT_TRUE(column == (std::vector<double>{-1, 2, -3, 4, -5, 6}) ||
              column == (std::vector<double>{1, -2, 3, -4, 5, -6}));
}

}  // namespace
}  // namespace attest
