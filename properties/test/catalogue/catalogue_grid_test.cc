// Every property on every scalar of the core and on built-in kernels: one test a cell,
// Catalogue.masked.suppression/core_mpfi_f64, so that `ctest -R masked` and JUnit output see each.
#include <attest/gtest.h>

#include "core/test/sanitizers.h"

namespace attest {
namespace {

struct GridColumn {
  std::string kernel;
  DType dtype;
};
const GridColumn grid_columns[] = {{"core:float", DType::f32},
                                   {"core:double", DType::f64},
                                   {"core:half", DType::f16},
                                   {"core:bfloat16", DType::bf16},
                                   {"core:cpp_bin_float_50", DType::f64},
                                   {"core:cpp_bin_float_100", DType::f64},
                                   {"core:mpfr", DType::f64},
                                   {"core:mpfi", DType::f64},
                                   {"core:arb", DType::f64},
                                   {"builtin:flash", DType::f32},
                                   {"builtin:flash-exp2", DType::f16},
                                   {"builtin:split-k", DType::bf16},
                                   {"builtin:online", DType::f64}};

std::unique_ptr<Kernel> registered_kernel(const std::string& id) {
  for (const auto& entries : {core_kernels(), builtin_kernels()}) {
    for (const KernelEntry& entry : entries)
      if (entry.id == id) return entry.make();
  }
  throw std::invalid_argument(id);
}

// Sanitizers look for mistakes of memory, for which a few cases of everything serve as well as many.
constexpr std::int64_t cases_a_cell = under_address_sanitizer ? 3 : 100;

class CellTest : public testing::Test {
 public:
  explicit CellTest(CatalogueCell cell) : cell_(std::move(cell)) {}
  void TestBody() override { check_cell(cell_); }

 private:
  CatalogueCell cell_;
};

/// With underscores: '-' has a meaning in --gtest_filter.
std::string test_name(const std::string& property, const GridColumn& column) {
  std::string name = property + "/" + column.kernel + "_" + std::string(name_of(column.dtype));
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == ':'; }, '_');
  return name;
}

void register_cells() {
  for (const std::string& property : property_names()) {
    for (const GridColumn& column : grid_columns) {
      const CatalogueCell cell{.property = property,
                               .dtype = column.dtype,
                               .make = [id = column.kernel] { return registered_kernel(id); },
                               .cases = cases_a_cell,
                               .kernel_option = column.kernel};
      testing::RegisterTest("Catalogue", test_name(property, column).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                            [cell]() -> CellTest* { return new CellTest(cell); });
    }
  }
}

// A property that every cell skips says nothing at all.
TEST(CatalogueGrid, HoldsEveryPropertyInSomeCell) {
  for (const std::string& property : property_names()) {
    PropertyReport report;
    for (const GridColumn& column : grid_columns) {
      const std::unique_ptr<Kernel> kernel = registered_kernel(column.kernel);
      report = check_property(property, *kernel, column.dtype, /*cases=*/20);
      if (report.outcome == Outcome::held) break;
    }
    EXPECT_EQ(report.outcome, Outcome::held) << property << ": " << report.text;
  }
}

}  // namespace
}  // namespace attest

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  attest::register_cells();
  return RUN_ALL_TESTS();
}
