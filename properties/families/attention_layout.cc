// attention: the same values held in memory in another way.
#include <array>

#include "properties/arrangement/arrange.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"

namespace attest {
namespace {

// +: grouped-query attention equals attention with the key-value heads repeated.
Verdict grouped_query(Kernel& kernel, const Case& c) {
  return agree({run(kernel, c), run(kernel, with_heads(c, all_of(heads_of(c))))}, Match::bound);
}

constexpr std::array grouped{
    defining(hypotheses::shared_key_heads, "with a key-value head for every head both sides are one problem")};

const Property family[] = {
    {.name = "attention.grouped-query",
     .statement = "grouped-query attention equals attention with the key-value heads repeated",
     .source = "+",
     .needs = "attention, grouped queries",
     .floating_point = "bound",
     .hypotheses = grouped,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).where([](Recipe& r) {
         r.heads = r.heads < 2 ? 2 : r.heads;
         r.kv_heads = r.heads % 2 == 0 && r.seed % 2 == 0 ? r.heads / 2 : 1;
       });
     },
     .check = grouped_query},
};

}  // namespace

std::span<const Property> attention_layout_properties() {
  return family;
}

}  // namespace attest
