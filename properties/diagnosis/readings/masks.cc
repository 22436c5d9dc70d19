// Masks: their meaning, and which of their elements is read.
#include "properties/arrangement/masks.h"

#include "core/problem/fields.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/readings/reading.h"

namespace attest {

void read_masks(Readings& r) {
  const Case& c = r.problem();
  const Extents& extents = r.extents();
  const bool boolean = c.mask().dtype() == DType::boolean;
  const Shape shape = c.mask().shape();
  const std::int64_t page = shape[2] * shape[3], batch = shape[0], heads = shape[1];
  Case without = c;
  without[Slot::mask] = Tensor();
  r.add("the mask were not there", std::move(without));
  const auto add_mask = [&](std::string words, Tensor mask) {
    Case other = c;
    other[Slot::mask] = std::move(mask);
    r.add(std::move(words), std::move(other));
  };
  if (boolean) {
    add_mask("true hid a key", mapped(c.mask(), [](std::int64_t, double old) { return 1 - old; }));
    add_mask("the boolean mask were added to the scores",
             mapped(Tensor(c.dtype(), shape), [&](std::int64_t e, double) { return c.mask()[e]; }));
  } else {
    Case other = c;
    const bool post = c.mask_convention == MaskConvention::post_scale;
    other.mask_convention = post ? MaskConvention::pre_scale : MaskConvention::post_scale;
    // No problem with a cap or slopes has a mask before the scale.
    if (c[Slot::alibi_slopes].present()) {
      other.mask_convention = MaskConvention::post_scale;
      other[Slot::mask] =
          mapped(Tensor(DType::f64, shape), [&](std::int64_t e, double) { return c.scale * c.mask()[e]; });
    }
    if (c.softcap == 0)
      r.add(post ? "the mask were added before the scale" : "the mask were added after the scale", std::move(other));
    add_mask("only -inf in the mask counted",
             mapped(c.mask(), [](std::int64_t, double old) { return old == -infinity ? old : 0.0; }));
    add_mask("whatever is not 0 in the mask hid a key",
             mapped(c.mask(), [](std::int64_t, double old) { return old == 0 ? old : -infinity; }));
    add_mask("-10000 and less in the mask hid a key",
             mapped(c.mask(), [](std::int64_t, double old) { return old <= -1e4 ? -infinity : old; }));
    const auto turned = [&](double least) {
      return mapped(c.mask(), [&](std::int64_t, double old) { return old < 0 && old > least ? -old : old; });
    };
    add_mask("what the mask adds below 0 were added with the other sign", turned(-infinity));
    add_mask("what the mask adds between -8 and 0 were added with the other sign", turned(-8));
  }
  const double shows = boolean ? 1.0 : 0.0;
  const auto columns_gone = [&](std::string words, std::int64_t whole, std::int64_t size) {
    if (whole == shape[3] || whole == 0) return;
    Case other = c;
    other[Slot::mask] =
        mapped(c.mask(), [&](std::int64_t e, double old) { return e % shape[3] < whole ? old : shows; });
    r.add_sized(std::move(words), size, std::move(other));
  };
  columns_gone("the last column of the mask were not there", shape[3] - 1, 0);
  for (const std::int64_t tile : tile_sizes)
    columns_gone("columns of the mask behind the last whole # were not there", shape[3] - shape[3] % tile, tile);
  add_mask("every head had the mask of the first",
           gathered(c.mask(), [&](std::int64_t e) { return e / page / heads * heads * page + e % page; }));
  add_mask("every batch entry had the mask of the first",
           gathered(c.mask(), [&](std::int64_t e) { return e % (heads * page); }));
  if (batch == heads)
    add_mask("batch entries and heads of the mask were exchanged", gathered(c.mask(), [&](std::int64_t e) {
               const std::int64_t b = e / page / heads, h = e / page % heads;
               return (h * heads + b) * page + e % page;
             }));
  if (heads == extents.heads)
    add_mask("a head had the mask of its key-value head's number", gathered(c.mask(), [&](std::int64_t e) {
               const std::int64_t b = e / page / heads, h = e / page % heads;
               return (b * heads + kv_head_of(c, h)) * page + e % page;
             }));
  add_mask("every row had the mask of the first",
           gathered(c.mask(), [&](std::int64_t e) { return e / page * page + e % shape[3]; }));
  if (shape[2] == shape[3])
    add_mask("rows and columns of the mask were exchanged", gathered(c.mask(), [&](std::int64_t e) {
               const std::int64_t i = e % page / shape[3], j = e % shape[3];
               return e / page * page + j * shape[3] + i;
             }));
}

}  // namespace attest
