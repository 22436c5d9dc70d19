// --rows: a sample of a captured case's rows, and what is said of it.
#include <gtest/gtest.h>

#include "core/problem/case_file.h"
#include "core/test/says.h"
#include "reports/test/program_checks.h"

namespace attest {
namespace {

/// 40 queries that differ, on 50 keys.
void write_tokens(const fake::Folder& folder) {
  const auto numbers = [](const Shape& shape, std::int64_t step) {
    Tensor tensor(DType::f32, shape);
    for (std::int64_t e = 0; e < tensor.elements(); ++e)
      tensor.set(e, static_cast<double>(e * step % 101 - 50) / 25 + static_cast<double>(e % 7) / 64);
    return tensor;
  };
  Case c;
  c[Slot::q] = numbers({1, 2, 40, 4}, 37);
  c[Slot::k] = numbers({1, 2, 50, 4}, 53);
  c[Slot::v] = numbers({1, 2, 50, 3}, 71);
  c.scale = 0.5;
  write_file_atomically(folder / "tokens.safetensors", encode_case(c));
}

TEST(Rows, AreSampledWhereAskedFor) {
  const fake::Folder folder;
  write_tokens(folder);
  const std::string check = "$attest check --verbose --case tokens.safetensors --property attention.oracle --kernel ";
  EXPECT_THAT(output_of(folder, check + "builtin:flash --out all"), NeverSays("rows judged"));
  EXPECT_THAT(output_of(folder, check + "builtin:flash --rows all --out all --overwrite"), NeverSays("rows judged"));
  EXPECT_THAT(output_of(folder, check + "builtin:flash --rows 80 --out all --overwrite"), NeverSays("rows judged"));
  EXPECT_THAT(
      output_of(folder, check + "builtin:flash --rows 10 --out some"),
      Says("note on builtin:flash: tokens.safetensors in f32: 10 of 80 rows judged (--rows all judges them all)"));
  EXPECT_THAT(read_file(folder / "some/summary.json"), Says("10 of 80 rows judged"));
  EXPECT_THAT(output_of(folder, check + "fault:all-zeros --rows 2 --out wrong", 1), Says("VIOLATED", "2 of 80 rows"));
  const std::string replay = "$attest replay tokens.safetensors --kernel builtin:flash ";
  EXPECT_THAT(output_of(folder, replay + "--rows 10"), Says("held\n10 of 80 rows judged\n"));
  EXPECT_THAT(output_of(folder, replay), NeverSays("rows judged"));
}

TEST(Rows, AreRefusedInOneLine) {
  const fake::Folder folder;
  write_tokens(folder);
  EXPECT_THAT(output_of(folder, "$attest check --verbose --kernel builtin:flash --rows 10", 2),
              Says("--rows is for captured cases (--case)"));
  EXPECT_THAT(
      output_of(folder, "$attest check --kernel builtin:flash --rows rows.csv", 2),
      Says("--rows is \"rows.csv\"; it takes a number of rows to judge, or all; did you mean --table rows.csv, "));
  for (const char* rows : {"0", "-1", "some", "1.5"})
    EXPECT_THAT(
        output_of(folder, std::string("$attest replay tokens.safetensors --kernel builtin:flash --rows ") + rows, 2),
        Says("--rows"));
}

}  // namespace
}  // namespace attest
