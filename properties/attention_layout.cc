// attention: the same values held in memory in another way.
#include "agree.h"
#include "arrange.h"
#include "generators/draw.h"
#include "property.h"

namespace attest {
namespace {

// +: grouped-query attention equals attention with the key-value heads repeated.
Verdict grouped_query(Kernel& kernel, const Case& c) {
  return agree({run(kernel, c), run(kernel, with_heads(c, all_of(heads_of(c))))}, Match::bound);
}

std::string misses_groups(const Case& c) {
  return c.k().shape()[1] < heads_of(c) ? "" : "has a key-value head for every head; the theorem is about shared ones";
}

const Property family[] = {
    {.name = "attention.grouped-query",
     .statement = "grouped-query attention equals attention with the key-value heads repeated",
     .source = "+",
     .needs = "attention, grouped queries",
     .floating_point = "bound",
     .given = [](Draw& draw) -> Case {
       return draw.attention().where([](Recipe& r) {
         r.heads = r.heads < 2 ? 2 : r.heads;
         r.kv_heads = r.heads % 2 == 0 && r.seed % 2 == 0 ? r.heads / 2 : 1;
       });
     },
     .misses = misses_groups,
     .check = grouped_query},
};

}  // namespace

std::span<const Property> attention_layout_properties() {
  return family;
}

}  // namespace attest
