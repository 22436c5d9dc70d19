// The whole catalogue over a function of your own, in your own GoogleTest binary:
//
//   #include <attest/gtest.h>
//   int mine(const attest_problem& problem, attest_result& result, std::string& message) { … return ATTEST_OK; }
//   ATTEST_CATALOGUE(Mine, R"({"name": "mine", "dtypes": ["f32"]})", mine)
//
// RapidCheck draws and shrinks the cases; RC_PARAMS="seed=5 max_success=1000" in the environment sets seed and number.
// Link attest::properties and GTest::gtest_main. The contract of the function and the manifest: kernel-interface.md. It
// runs in the test's own process: a crash ends the binary (`attest check --kernel ./libmine.so` survives one).
#pragma once

#include <attest/check_property.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/support/errors.h"

namespace attest {

/// One test: a property on a kernel in a dtype.
struct CatalogueCell {
  std::string property;
  DType dtype = DType::f32;
  std::function<std::unique_ptr<Kernel>()> make;
  std::int64_t cases = 100;
  std::string kernel_option{};  ///< what --kernel is told to find a violation again; empty: it cannot be
  std::string error{};          ///< not empty: the test fails with it
};
inline void PrintTo(const CatalogueCell& cell, std::ostream* out) {
  *out << cell.property << " in " << name_of(cell.dtype);
}

/// The body of the test: fails with the shrunk case, or is skipped with the reason where no case was held.
inline void check_cell(const CatalogueCell& cell) {
  if (!cell.error.empty()) FAIL() << cell.error;
  const std::unique_ptr<Kernel> kernel = cell.make();
  const PropertyReport report =
      check_property(cell.property, *kernel, cell.dtype, cell.cases, /*seed=*/1, cell.kernel_option);
  if (report.outcome == Outcome::violated) FAIL() << report.text;
  if (report.outcome != Outcome::held) GTEST_SKIP() << name_of(report.outcome) << ": " << report.text;
}

/// A cell for every property and every dtype of the manifest. A manifest that is wrong is one cell that fails.
[[nodiscard]] inline std::vector<CatalogueCell> catalogue_cells(const std::string& manifest_json,
                                                                const AttentionFunction& attention,
                                                                const MultiheadFunction& multihead = nullptr,
                                                                std::int64_t cases = 100) {
  Manifest manifest;
  try {
    manifest = parse_manifest(manifest_json, "the manifest");
  } catch (const UsageError& error) {
    return {{.property = "manifest", .make = nullptr, .error = error.what()}};
  }
  manifest.attention = attention != nullptr;
  manifest.multihead = multihead != nullptr;
  std::vector<CatalogueCell> cells;
  for (const std::string& property : property_names()) {
    for (const DType dtype : manifest.dtypes) {
      cells.push_back({.property = property,
                       .dtype = dtype,
                       .make = [=] { return function_kernel(manifest.name, manifest, attention, multihead); },
                       .cases = cases});
    }
  }
  return cells;
}

/// The same of every kernel that --kernel would find under this name: "builtin:flash", or what add_scalar made
/// (scalar.h). One that cannot be opened is one cell that fails.
[[nodiscard]] inline std::vector<CatalogueCell> catalogue_cells_of(const std::string& kernel, std::int64_t cases = 20) {
  std::vector<CatalogueCell> cells;
  try {
    for (const std::unique_ptr<Kernel>& opened : open_kernels(kernel, {})) {
      const std::shared_ptr<Kernel> shared = opened->clone();
      for (const std::string& property : property_names()) {
        for (const DType dtype : opened->manifest().dtypes) {
          cells.push_back(
              {.property = property, .dtype = dtype, .make = [shared] { return shared->clone(); }, .cases = cases});
        }
      }
    }
  } catch (const std::exception& error) {
    return {{.property = "kernel", .make = nullptr, .error = error.what()}};
  }
  return cells;
}

/// "masked_query_deletion_f32", as GoogleTest wants the names of parameters.
[[nodiscard]] inline std::string name_of_cell(const testing::TestParamInfo<CatalogueCell>& cell) {
  std::string name = cell.param.property + "_" + std::string(name_of(cell.param.dtype));
  std::ranges::replace_if(name, [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

}  // namespace attest

/// Tests Catalogue/SUITE.holds/masked_query_deletion_f32 and so on, for every property of the catalogue and every dtype
/// of the manifest (a string, JSON): ATTEST_CATALOGUE(SUITE, manifest, attention), …(SUITE, manifest, attention,
/// multihead) or …(SUITE, manifest, attention, multihead, cases), the functions as attest::AttentionFunction and
/// attest::MultiheadFunction, either of them nullptr where there is none. A macro, because GoogleTest's are: the cells
/// are made when it starts, after every global.
#define ATTEST_CATALOGUE(suite, ...)                                                                  \
  class suite : public testing::TestWithParam<attest::CatalogueCell> {};                              \
  TEST_P(suite, holds) {                                                                              \
    attest::check_cell(GetParam());                                                                   \
  }                                                                                                   \
  INSTANTIATE_TEST_SUITE_P(Catalogue, suite, testing::ValuesIn(attest::catalogue_cells(__VA_ARGS__)), \
                           attest::name_of_cell);
/// The same of a kernel by its name: ATTEST_CATALOGUE_OF(SUITE, "core:mpfr@100") or …(SUITE, name, cases), a name as
/// --kernel takes it that stands for one kernel.
#define ATTEST_CATALOGUE_OF(suite, ...)                                                                  \
  class suite : public testing::TestWithParam<attest::CatalogueCell> {};                                 \
  TEST_P(suite, holds) {                                                                                 \
    attest::check_cell(GetParam());                                                                      \
  }                                                                                                      \
  INSTANTIATE_TEST_SUITE_P(Catalogue, suite, testing::ValuesIn(attest::catalogue_cells_of(__VA_ARGS__)), \
                           attest::name_of_cell);
