#include "core/kernel/values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "core/kernel/formal.h"
#include "core/problem/selection.h"
#include "core/scalars/wide.h"

namespace attest {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

Values numbers(const std::vector<double>& of) {
  return Tensor(DType::f32, {std::ssize(of)}, of);
}

Values enclosures(const std::vector<WideInterval>& of, double unit = 0) {
  return Enclosures({std::ssize(of)}, of, WideRounding{.unit = unit});
}

WideInterval between(double lower, double upper) {
  return {Wide(lower), Wide(upper)};
}

TEST(Values, AreAbsentUntilTheyAreSomething) {
  EXPECT_FALSE(Values().present());
  EXPECT_EQ(Values().elements(), 0);
  EXPECT_FALSE(Values().gather({2}, Indices{0, 1}).present());
  EXPECT_TRUE(numbers({1}).present());
  EXPECT_TRUE(enclosures({between(1, 2)}).present());
}

TEST(Values, PassForATensorWhereTheyAreOne) {
  Values values = numbers({1, 2});
  values.set(1, 0x1.0000001p0);
  EXPECT_EQ(values[1], 1) << "rounded to f32";
  const Tensor& tensor = values;
  EXPECT_EQ(tensor.elements(), 2);
  EXPECT_TRUE(values == tensor);
  EXPECT_FALSE(values == numbers({1, 2}));
  EXPECT_THROW((void)enclosures({between(1, 1)}).tensor(), std::logic_error);
}

TEST(Values, OfAnEnclosureAreItsEndsAndRoundToItsMiddle) {
  const Values values = enclosures({between(1, 2), between(-4, -3)}, 0x1p-100);
  EXPECT_EQ(values[1], -4);
  EXPECT_EQ(values.enclosure(0).upper, 2);
  EXPECT_EQ(values.as<Enclosures>()->unit(), 0x1p-100);
  EXPECT_EQ(values.rounded(DType::f64).to_doubles(), (std::vector<double>{1.5, -3.5}));
  const Values number = numbers({3});
  EXPECT_EQ(number.enclosure(0).lower, 3);
  EXPECT_EQ(number.enclosure(0).upper, 3);
}

TEST(Values, GatherInOrderWithRepeatsAndKeepTheirUnit) {
  EXPECT_TRUE(numbers({1, 2, 3}).gather({4}, Indices{2, 0, 0, 1}) == numbers({3, 1, 1, 2}));
  const Values wide = enclosures({between(1, 2), between(3, 4)}, 0x1p-50).gather({1, 1}, Indices{1});
  EXPECT_EQ(wide.shape(), (Shape{1, 1}));
  EXPECT_EQ(wide.enclosure(0).upper, 4);
  EXPECT_EQ(wide.as<Enclosures>()->unit(), 0x1p-50);
}

TEST(Values, OfTheSameBitsDifferByTheSignOfZeroAndAgreeInNaN) {
  EXPECT_TRUE(same_bits(numbers({0.0, nan_value}), numbers({0.0, -nan_value})));
  EXPECT_FALSE(same_bits(numbers({0.0}), numbers({-0.0})));
  EXPECT_FALSE(same_bits(numbers({nan_value}), numbers({0.0})));
  EXPECT_FALSE(same_bits(numbers({1}), numbers({1, 1})));
  const Values zero = enclosures({between(0, 0)});
  EXPECT_TRUE(same_bits(zero, zero));
  EXPECT_FALSE(same_bits(zero, enclosures({between(0, -0.0)})));
  EXPECT_FALSE(same_bits(zero, enclosures({between(-0.0, 0)})));
  EXPECT_TRUE(same_bits(enclosures({between(nan_value, 1)}), enclosures({between(nan_value, 1)})));
  EXPECT_FALSE(same_bits(zero, numbers({0}))) << "of another kind";
}

TEST(Values, AreTransposedPageByPage) {
  const std::vector<double> pages{1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60};
  const Tensor turned = transposed(Tensor(DType::f64, {2, 2, 3}, pages));
  EXPECT_EQ(turned.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(turned.to_doubles(), (std::vector<double>{1, 4, 2, 5, 3, 6, 10, 40, 20, 50, 30, 60}));
}

TEST(Values, OfAProofAreFormulasAndNothingElse) {
  const auto back_end = make_back_end(BackEnd::symbolic);
  const GenericInputs inputs(*back_end);
  ExpressionScope& scope = ExpressionScope::current();
  const Expression x = scope.real("x"), y = scope.real("y");
  const Values values = Expressions({1, 3}, {x + y, y, Expression()});
  EXPECT_TRUE(same_bits(values, Expressions({1, 3}, {y + x, y, Expression()})));
  EXPECT_FALSE(same_bits(values, Expressions({1, 3}, {x - y, y, Expression()})));
  EXPECT_FALSE(same_bits(values, Expressions({1, 3}, {x + y, y, y})));
  EXPECT_EQ((*transposed(values).as<Expressions>())[1].node(), y.node());
  EXPECT_THROW((void)values[0], NotTreated);
  EXPECT_THROW((void)values.enclosure(0), NotTreated);
  EXPECT_THROW((void)values.tensor(), NotTreated);
  EXPECT_THROW((void)values.rounded(DType::f64), NotTreated);
}

}  // namespace
}  // namespace attest
