// What mutators leave is an input of a valid case, whatever bytes they started from: for any bytes and any property.
#include <attest/rapidcheck.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <vector>

#include "fuzz/mutate.h"
#include "properties/catalogue/property.h"

namespace attest {
namespace {

struct Drawn {
  Target target;
  Input input;
};

Drawn any_input() {
  const Target target{*rc::gen::elementOf(catalogue()), *rc::gen::arbitrary<DType>()};
  const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
  return {target, parse_input(bytes, target.dtype, target.property->operation)};
}

RC_GTEST_PROP(InputLaws, IsAValidCaseWhateverTheBytes, ()) {
  const Drawn drawn = any_input();
  validate(case_of(drawn.input, *drawn.target.property));
}

RC_GTEST_PROP(InputLaws, IsTheSameCaseFromItsBytes, ()) {
  const Drawn drawn = any_input();
  const Property& property = *drawn.target.property;
  const std::vector<std::uint8_t> bytes = bytes_of(drawn.input);
  const Input again = parse_input(bytes, drawn.target.dtype, property.operation);
  RC_ASSERT(bytes_of(again) == bytes);
  RC_ASSERT(case_of(again, property) == case_of(drawn.input, property));
}

RC_GTEST_PROP(InputLaws, StaysValidUnderEveryMutation, ()) {
  const Drawn a = any_input();
  const Property& property = *a.target.property;
  Stream stream(*rc::gen::arbitrary<std::uint64_t>());
  const Input b = fresh_input(a.target, stream);
  validate(case_of(mutated(a.input, a.target, stream), property));
  validate(case_of(restructured(a.input, a.target, stream), property));
  validate(case_of(crossed(a.input, b, stream), property));
}

}  // namespace
}  // namespace attest
