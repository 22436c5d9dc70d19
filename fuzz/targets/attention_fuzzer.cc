// The flash kernel in f32 on any input: within its bound of the exact result. The first byte chooses the property among
// the oracle's and a few laws. Its level of utilisation is what the engine is shown, beside its coverage.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "core/kernel/kernel_under_test.h"
#include "fuzz/level.h"
#include "fuzz/mutate.h"
#include "fuzz/targets/target.h"

namespace {

using namespace attest;

const Target& target_of(std::uint8_t choice) {
  static const std::array<Target, 4> targets = [] {
    std::array<Target, 4> chosen;
    const char* const names[] = {"attention.oracle", "attention.finite", "softmax.rows-sum-to-one",
                                 "masked.tail-padding"};
    for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = {properties_matching(names[i]).at(0), DType::f32};
    return chosen;
  }();
  return targets[choice % targets.size()];
}

std::size_t put(std::uint8_t choice, const Input& input, std::uint8_t* data, std::size_t most) {
  if (most == 0) return 0;
  const std::vector<std::uint8_t> bytes = bytes_of(input);
  const std::size_t size = std::min(bytes.size(), most - 1);
  data[0] = choice;
  std::memcpy(data + 1, bytes.data(), size);
  return 1 + size;
}

Input input_in(const std::uint8_t* data, std::size_t size) {
  return parse_input(std::span(data + 1, size - 1), DType::f32, Operation::attention);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const std::unique_ptr<Kernel> kernel = std::move(open_kernels("builtin:flash", {}).front());
  const Property& property = *target_of(data[0]).property;
  const Verdict verdict =
      check_case(property, *kernel, project(case_of(input_in(data, size), property), kernel->manifest()));
  require(verdict.outcome != Outcome::violated && verdict.outcome != Outcome::inconclusive, verdict.reason.c_str());
  if (verdict.outcome == Outcome::held) show_level(data[0] % 4, verdict.utilisation);
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  Stream stream(seed);
  if (size == 0 || stream.one_in(8)) {
    const auto choice = static_cast<std::uint8_t>(stream.below(4));
    return put(choice, fresh_input(target_of(choice), stream), data, most);
  }
  return put(data[0], mutated(input_in(data, size), target_of(data[0]), stream), data, most);
}

extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* a, std::size_t a_size, const std::uint8_t* b,
                                                 std::size_t b_size, std::uint8_t* out, std::size_t most,
                                                 unsigned seed) {
  if (a_size == 0 || b_size == 0) return 0;
  Stream stream(seed);
  return put(a[0], crossed(input_in(a, a_size), input_in(b, b_size), stream), out, most);
}
