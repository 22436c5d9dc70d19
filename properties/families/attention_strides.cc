// attention: the same values under other strides.
#include <array>

#include "core/problem/memory.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

// +: any strides of the same values give the same output. What lies between the elements is poison, and looked at
// afterwards as the guards are, so that a kernel that reads or writes there fails or gives NaN.
Verdict any_strides(Kernel& kernel, const Case& c) {
  Case row_major = c;
  set_layouts(row_major, {});
  const Match match = bits_in_core(kernel);
  const Result left = run_with_lse(kernel, c), right = run_with_lse(kernel, std::move(row_major));
  return worse_of({agree({left, right}, match), agree_in_lse({left, right}, match)});
}

constexpr Want wants_layouts[] = {
    {"k under other strides",
     "k-strides:token-major k-strides:packed k-strides:padded-rows k-strides:every-other k-strides:column-major"},
    {"v under other strides",
     "v-strides:token-major v-strides:packed v-strides:padded-rows v-strides:every-other v-strides:column-major"},
    {"out under other strides",
     "out-strides:token-major out-strides:packed out-strides:padded-rows out-strides:every-other "
     "out-strides:column-major"},
    {"a stride of 0", "k-strides:repeated"}};

constexpr std::array strided{defining(hypotheses::other_strides, "with row-major tensors both sides are one problem")};

const Property family[] = {
    {.name = "attention.strides",
     .statement = "any strides of the same values give the same output; memory outside the tensors is neither read nor "
                  "written (guarded, poisoned)",
     .source = "+",
     .needs = "attention, strides",
     .floating_point = "bound (bitwise in the core); guards bitwise",
     .under = "window chunk lengths packed left_pad sink softcap dropout alibi descale",
     .wants = wants_layouts,
     .hypotheses = strided,
     .given = [](Draw& draw) -> Case { return draw.attention(period_of_tile_laws).strided().with_later_arguments(); },
     .check = any_strides},
};

}  // namespace

std::span<const Property> attention_stride_properties() {
  return family;
}

}  // namespace attest
