// batch: entries of a batch, and the forms a mask may have over it (000, 001, 004).
#include <algorithm>
#include <array>

#include "core/problem/sight.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/agree.h"
#include "properties/language/answer.h"

namespace attest {
namespace {

// 001, 004: entry b depends on entry b only, and equals that entry run alone. The others are replaced by their
// neighbour.
Verdict independence(Kernel& kernel, const Case& c) {
  const std::int64_t batch = batch_of(c), b = argument(c, "b", batch);
  Indices others(static_cast<std::size_t>(batch), (b + 1) % batch);
  others[static_cast<std::size_t>(b)] = b;
  const Match match = bits_if(kernel, {Claim::batch_invariant});
  const Result entry = run(kernel, c).batch({b});
  return worse_of({agree({entry, run(kernel, with_batch(c, {b}))}, match, /*about_bits=*/true),
                   agree({entry, run(kernel, with_batch(c, others)).batch({b})}, match, /*about_bits=*/true)});
}

// 000: 2-D is one mask for all, 3-D (b h) and 4-D are one per batch entry and head: the same memory in the contract's
// four axes, where an extent of 1 serves all.
Verdict mask_forms(Kernel& kernel, const Case& c) {
  const std::int64_t form = argument(c, "form", 3);
  const Shape& old = c.mask().shape();
  const std::int64_t batch = form == 1 ? old[0] : batch_of(c), heads = form == 2 ? old[1] : heads_of(c);
  Case full = c;
  full[Slot::mask] = Tensor(c.mask().dtype(), {batch, heads, old[2], old[3]});
  full[Slot::mask] = mapped(full.mask(), [&](std::int64_t e, double) {
    const auto [b, h, i, j] = full.mask().shape().index_of(e);
    return mask_entry(c.mask(), b, h, i, j);
  });
  return agree({run(kernel, full), run(kernel, c)}, bits_in_core(kernel), /*about_bits=*/true);
}

void short_mask(Recipe& r) {
  if (r.mask == MaskKind::none) r.mask = r.seed % 2 == 0 ? MaskKind::random : MaskKind::bias;
  r.mask_per_batch = false;
  if (r.batch * r.heads == 1) (r.seed / 2 % 2 == 0 ? r.batch : r.heads) = 2;
}

constexpr std::array entries{defining(hypotheses::two_batch_entries, "another entry is looked away from")};
constexpr std::array forms{defining(hypotheses::mask, "it is a mask whose forms are compared")};

const Property family[] = {
    {.name = "batch.independence",
     .statement = "entry b of a batch B×S×D depends on entry b only, and equals that entry run alone",
     .source = "001 004",
     .needs = "attention",
     .floating_point = "bitwise if batch-invariant",
     .under = "window chunk lengths left_pad sink softcap dropout alibi descale",
     .hypotheses = entries,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws)
           .where([](Recipe& r) { r.batch = std::max(r.batch, 2 + static_cast<int>(r.seed % 2)); })
           .with_later_arguments();
     },
     .check = independence},
    {.name = "batch.mask-forms",
     .statement = "the 2-D, 3-D (b·h) and 4-D forms of a mask that mean the same give the same",
     .source = "000",
     .needs = "attention",
     .floating_point = "bitwise in the core, bound for a kernel",
     .wants = wants_a_mask,
     .hypotheses = forms,
     .given = [](Draw& draw) -> Case { return draw.attention().where(short_mask); },
     .check = mask_forms},
    {.name = "batch.multihead-independence",
     .statement = "entry b of MMHAttn of a batch B×S×D depends on entry b only, and equals that entry run alone",
     .source = "001 004",
     .needs = "multihead",
     .floating_point = "bitwise if batch-invariant",
     .operation = Operation::multihead,
     .hypotheses = entries,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).where([](Recipe& r) { r.batch = 2 + static_cast<int>(r.seed % 2); });
     },
     .check = independence},
    {.name = "batch.multihead-mask-forms",
     .statement = "the 2-D, 3-D (b·h) and 4-D forms of a mask of MMHAttn that mean the same give the same",
     .source = "000",
     .needs = "multihead",
     .floating_point = "bitwise in the core, bound for a kernel",
     .operation = Operation::multihead,
     .wants = wants_a_mask,
     .hypotheses = forms,
     .given = [](Draw& draw) -> Case {
       return small_multihead(draw).where(short_mask).where([](Recipe& r) { r.kv_heads = r.heads; });
     },
     .check = mask_forms},
};

}  // namespace

std::span<const Property> batch_properties() {
  return family;
}

}  // namespace attest
