#include "reports/judge/cells.h"

#include <gtest/gtest.h>

#include <set>

#include "core/problem/memory.h"
#include "properties/catalogue/property.h"
#include "reports/judge/contract.h"

namespace attest {
namespace {

using Mask = ContractForm::Mask;

Manifest law_of(std::string_view more) {
  return parse_manifest(
      std::string(R"({"name": "law", "dtypes": ["f32", "bf16"], "strides": true, )") + std::string(more) + "}", "law");
}
constexpr Extents square{.batch = 1, .heads = 2, .kv_heads = 2, .queries = 20, .keys = 20, .dk = 8, .dv = 8};
constexpr Extents wide{.batch = 2, .heads = 1, .kv_heads = 1, .queries = 3, .keys = 33, .dk = 16, .dv = 4};

TEST(Cells, AreOfEachShapeDtypeAndForm) {
  const Extents shapes[] = {square, wide};
  const Manifest law = law_of(R"("masks": ["additive", "bool"], "causal": ["top-left"])");
  const std::vector<ContractCell> cells = cells_of(law, shapes);
  EXPECT_EQ(cells.size(), 2U * 2 * 3 * 2 * 2);
  const std::set<ContractCell> once(cells.begin(), cells.end());
  EXPECT_EQ(once.size(), cells.size());
}

TEST(Cells, AreNoneThatTheLawRulesOut) {
  const Extents shapes[] = {square, wide};
  const Manifest law =
      law_of(R"("masks": ["bool"], "causal": ["top-left"], "requires": ["causal"], "excludes": [["mask", "causal"]])");
  for (const ContractCell& cell : cells_of(law, shapes)) {
    EXPECT_EQ(cell.form.causal, Causal::top_left);
    EXPECT_EQ(cell.form.mask, Mask::none);
  }
  EXPECT_NE(why_ruled_out(law, square, DType::f32, {}), "");
  EXPECT_NE(why_ruled_out(law, square, DType::f16, {.causal = Causal::top_left}), "");
}

TEST(Cells, HaveCasesThatTheirOwnLawTakes) {
  const Extents shapes[] = {square, wide};
  const Manifest law = law_of(R"("masks": ["additive", "bool"], "causal": ["top-left", "bottom-right"])");
  for (const ContractCell& cell : cells_of(law, shapes)) {
    for (const std::uint64_t seed : {1U, 2U, 77U}) {
      const Case c = project(case_of(law, shapes[cell.shape], cell.dtype, cell.form, seed), law);
      validate(c);
      EXPECT_EQ(why_unsupported(law, c), "");
      const std::optional<ContractCell> found = cell_of(shapes, c);
      ASSERT_TRUE(found);
      // What is strided was drawn to be, and a tensor may lack the axis that its layout is about.
      EXPECT_EQ(*found, cell) << text_of(cell.form) << " became " << text_of(found->form) << ", seed " << seed;
    }
    EXPECT_FALSE(case_of(law, shapes[cell.shape], cell.dtype, cell.form, 1) ==
                 case_of(law, shapes[cell.shape], cell.dtype, cell.form, 2));
  }
}

TEST(Cells, AreToldApartByEveryPart) {
  const Extents shapes[] = {square};
  const Manifest law = law_of(R"("masks": ["bool"])");
  Case c = case_of(law, square, DType::f32, {}, 1);
  EXPECT_EQ(cell_of(shapes, c)->form, ContractForm{});
  c.causal = Causal::bottom_right;
  EXPECT_EQ(cell_of(shapes, c)->form.causal, Causal::bottom_right);
  Layouts layouts;
  layouts[Slot::k] = MemoryLayout::padded_rows;
  set_layouts(c, layouts);
  EXPECT_TRUE(cell_of(shapes, c)->form.strided);
  c[Slot::q] = Tensor(DType::f32, {1, 2, 19, 8});
  EXPECT_FALSE(cell_of(shapes, c));
}

}  // namespace
}  // namespace attest
