#include "core/call/float_environment.h"

#include <array>
#include <cfenv>
#include <limits>
#include <string_view>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace attest {
namespace {

void add(std::string& text, std::string_view part) {
  if (!text.empty()) text += ", ";
  text += part;
}

}  // namespace

#ifdef __x86_64__

namespace {

constexpr std::uint32_t mxcsr_flags = 0x3f, daz = 0x40, ftz = 0x8000;
constexpr std::uint32_t standard_mxcsr = 0x1f80, standard_control = 0x37f;

/// Both units number the directions alike; `shift` is where they keep theirs.
std::string_view direction(std::uint32_t word, int shift) {
  constexpr std::array<std::string_view, 4> names{"to nearest", "downward", "upward", "toward zero"};
  return names[(word >> shift) & 3U];
}

std::string_view x87_precision(std::uint32_t control) {
  constexpr std::array<std::string_view, 4> names{"24 bits", "a reserved setting", "53 bits", "64 bits"};
  return names[(control >> 8U) & 3U];
}

}  // namespace

FloatEnvironment FloatEnvironment::current() {
  FloatEnvironment environment;
  environment.first_ = _mm_getcsr() & ~mxcsr_flags;
  std::uint16_t control = 0;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  // Bits 6, 7 and those above 11 say nothing.
  environment.second_ = control & 0xf3fU;
  return environment;
}

FloatEnvironment FloatEnvironment::standard() {
  FloatEnvironment environment;
  environment.first_ = standard_mxcsr;
  environment.second_ = standard_control & 0xf3fU;
  return environment;
}

void FloatEnvironment::install() const {
  // With the flags cleared: a pending one would trap as soon as its exception is unmasked.
  _mm_setcsr(first_);
  const auto control = static_cast<std::uint16_t>(second_ | 0x40U);
  __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(control));
}

std::string FloatEnvironment::difference_from(const FloatEnvironment& before) const {
  std::string text;
  const std::uint32_t sse = first_ ^ before.first_, x87 = second_ ^ before.second_;
  const auto sse_direction = direction(first_, 13), x87_direction = direction(second_, 10);
  const bool sse_turned = (sse & 0x6000U) != 0, x87_turned = (x87 & 0xc00U) != 0;
  if (sse_turned && x87_turned && sse_direction == x87_direction) {
    add(text, "rounds " + std::string(sse_direction));
  } else {
    if (sse_turned) add(text, "rounds " + std::string(sse_direction) + " in SSE");
    if (x87_turned) add(text, "rounds " + std::string(x87_direction) + " in x87");
  }
  if ((sse & ftz) != 0)
    add(text, (first_ & ftz) != 0 ? "flushes subnormal results to zero (FTZ)" : "keeps subnormal results");
  if ((sse & daz) != 0)
    add(text, (first_ & daz) != 0 ? "reads subnormal operands as zero (DAZ)" : "reads subnormal operands");
  if ((x87 & 0x300U) != 0) add(text, "cuts x87 to " + std::string(x87_precision(second_)));
  constexpr std::array<std::string_view, 6> exceptions{"invalid operations", "subnormal operands", "division by zero",
                                                       "overflow",           "underflow",          "inexact results"};
  std::string traps;
  for (std::size_t i = 0; i < exceptions.size(); ++i) {
    const bool opened =
        ((before.first_ & ~first_) >> (7 + i) & 1U) != 0 || ((before.second_ & ~second_) >> i & 1U) != 0;
    if (opened) add(traps, exceptions[i]);
  }
  if (!traps.empty()) add(text, "raises a signal on " + traps);
  if (text.empty() && *this != before) text = "masks exceptions that were not masked";
  return text;
}

#else

FloatEnvironment FloatEnvironment::current() {
  FloatEnvironment environment;
  environment.first_ = static_cast<std::uint32_t>(std::fegetround());
  // The operands are volatile so that the arithmetic happens here and now.
  volatile double smallest_normal = std::numeric_limits<double>::min();
  volatile double subnormal = smallest_normal * 0.5;
  volatile double doubled = subnormal * 2.0;
  environment.second_ = doubled == smallest_normal ? 0U : 1U;
  return environment;
}

FloatEnvironment FloatEnvironment::standard() {
  FloatEnvironment environment;
  environment.first_ = static_cast<std::uint32_t>(FE_TONEAREST);
  return environment;
}

void FloatEnvironment::install() const {
  std::fesetenv(FE_DFL_ENV);
}

std::string FloatEnvironment::difference_from(const FloatEnvironment& before) const {
  std::string text;
  if (first_ != before.first_) add(text, "rounds in another direction");
  if (second_ != before.second_) add(text, second_ != 0 ? "flushes subnormals to zero" : "keeps subnormals");
  return text;
}

#endif

}  // namespace attest
