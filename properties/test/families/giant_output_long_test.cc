// An output of more than 2^31 elements and more than 2^32 bytes, row-major and in memory as kernels get it: 4.3 GiB,
// which offsets in 32 bits do not reach.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "core/call/function_kernel.h"
#include "core/test/cases.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

constexpr std::int64_t heads = 17, queries = 1 << 20, width = 129;
static_assert(heads * queries * width > std::int64_t{1} << 31);

/// One column of queries, sixteen different ones in each head, and two keys.
Case giant() {
  std::int64_t at = 0;
  return test::attention_of(
      {.heads = heads, .queries = queries, .keys = 2, .dk = 1, .dv = width}, [&](Slot slot, const Shape& shape) {
        if (slot != Slot::q)
          return test::filled(DType::bf16, shape, [&] { return std::cos(static_cast<double>(++at)); });
        return test::filled(DType::bf16, shape, [&] {
          const std::int64_t row = at++;
          return static_cast<double>((row + row / queries) % 16) / 4 - 2;
        });
      });
}

/// Right but for where it writes: element e of the output goes to place(e).
template <class Place>
std::unique_ptr<Kernel> writing_to(Place place) {
  Manifest manifest;
  manifest.name = "giant";
  manifest.dtypes = {DType::bf16};
  manifest.arithmetic.usual[DType::bf16] = universal_arithmetic(DType::bf16, DType::bf16);
  return function_kernel("giant", manifest, [place](const attest_problem& p, attest_result& r, std::string&) {
    const std::int64_t rows = p.q.shape[2];
    for (std::int64_t h = 0; h < p.q.shape[1]; ++h) {
      std::array<std::vector<std::uint16_t>, 16> answers;
      for (std::int64_t i = 0; i < rows; ++i) {
        const double x = load_element(p.q.data, DType::bf16, offset_in(p.q, 0, h, i));
        std::vector<std::uint16_t>& row = answers[static_cast<std::size_t>((x + 2) * 4)];
        if (row.empty()) {
          row.resize(static_cast<std::size_t>(width));
          double weight[2];
          for (int j = 0; j < 2; ++j)
            weight[j] = std::exp(p.scale * x * load_element(p.k.data, DType::bf16, offset_in(p.k, 0, h, j)));
          for (std::int64_t column = 0; column < width; ++column) {
            double sum = 0;
            for (int j = 0; j < 2; ++j)
              sum += weight[j] * load_element(p.v.data, DType::bf16, offset_in(p.v, 0, h, j, column));
            store_element(row.data(), DType::bf16, column, sum / (weight[0] + weight[1]));
          }
        }
        for (std::int64_t column = 0; column < width; ++column)
          static_cast<std::uint16_t*>(r.out.data)[place(offset_in(r.out, 0, h, i, column))] =
              row[static_cast<std::size_t>(column)];
      }
    }
    return ATTEST_OK;
  });
}

TEST(GiantOutput, IsJudgedToItsLastElement) {
  const Case c = giant();
  const Property& oracle = property_named("attention.oracle");
  const auto whole = [](Kernel& kernel, const Case& of, const Property& property) {
    return check_case(property, kernel, of, {.rows = Judging::all_rows});
  };
  const auto right = writing_to([](std::int64_t e) { return e; });
  const Verdict held = whole(*right, c, oracle);
  EXPECT_EQ(held.outcome, Outcome::held) << held.reason;
  EXPECT_EQ(held.rows_judged, heads * queries);

  const auto wrapped = writing_to([](std::int64_t e) { return e & ((std::int64_t{1} << 31) - 1); });
  const Verdict violated = whole(*wrapped, c, oracle);
  EXPECT_EQ(violated.outcome, Outcome::violated) << violated.reason;

  // The very last element alone.
  constexpr std::int64_t last = heads * queries * width - 1;
  const auto short_by_one = writing_to([](std::int64_t e) { return e == last ? e - 1 : e; });
  const Verdict missed = whole(*short_by_one, c, oracle);
  EXPECT_EQ(missed.outcome, Outcome::violated) << missed.reason;
}

}  // namespace
}  // namespace attest
