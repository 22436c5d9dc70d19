#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/arrangement/masks.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

/// Another question in the place of the one asked.
Spoilt::Fault asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    change(c);
    return kernel.run(c, output, want_lse);
  };
}
/// Each number of the answer changed: value(case, row, old).
Spoilt::Fault answered(std::function<double(const Case&, std::int64_t row, double old)> value) {
  return [value = std::move(value)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (reply.status != CallStatus::ok || reply.out.elements() == 0) return reply;
    const Shape& shape = reply.out.shape();
    const std::int64_t columns = shape[shape.rank() - 1], rows = shape[shape.rank() - 2];
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return value(c, e / columns % rows, old); });
    return reply;
  };
}
/// The same by column: value(case, column, columns, old).
Spoilt::Fault with_columns(double (*value)(const Case&, std::int64_t, std::int64_t, double)) {
  return [value](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (reply.status != CallStatus::ok || reply.out.elements() == 0) return reply;
    const std::int64_t columns = reply.out.shape()[reply.out.shape().rank() - 1];
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return value(c, e % columns, columns, old); });
    return reply;
  };
}
void add(Case& c, Slot slot, std::int64_t element, double amount) {
  if (c[slot].elements() > element) c[slot].set(element, c[slot][element] + amount);
}

/// In the chosen rows.
Spoilt::Fault exchanges_largest(bool (*chosen)(std::int64_t row)) {
  return [chosen](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (reply.status != CallStatus::ok || reply.out.elements() == 0) return reply;
    const Shape& shape = reply.out.shape();
    const std::int64_t columns = shape[shape.rank() - 1], rows = shape[shape.rank() - 2];
    for (std::int64_t line = 0; columns >= 3 && line < reply.out.elements() / columns; ++line) {
      if (!chosen(line % rows)) continue;
      Indices order = all_of(columns);
      std::ranges::sort(order, {}, [&](std::int64_t x) { return -reply.out[line * columns + x]; });
      if (!(reply.out[line * columns + order[1]] > reply.out[line * columns + order[2]])) continue;
      const double largest = reply.out[line * columns + order[0]];
      reply.out.set(line * columns + order[0], reply.out[line * columns + order[1]]);
      reply.out.set(line * columns + order[1], largest);
    }
    return reply;
  };
}

}  // namespace

std::vector<WrongKernel> mistaken_kernels() {
  return {
      {"counts rows", answered([](const Case& c, std::int64_t, double old) {
         return old * (1 + 0.01 * static_cast<double>(queries_of(c))) + 0.01 * static_cast<double>(queries_of(c));
       })},
      {"counts keys", answered([](const Case& c, std::int64_t, double old) {
         return old * (1 + 0.01 * static_cast<double>(keys_of(c))) + 0.01 * static_cast<double>(keys_of(c));
       })},
      {"numbers its rows",
       answered([](const Case&, std::int64_t row, double old) { return old + 0.5 * static_cast<double>(row); })},
      {"reads every query", answered([](const Case& c, std::int64_t, double old) {
         double sum = 0;
         for (std::int64_t e = 0; e < c.q().elements(); ++e) sum += c.q()[e] * 0;
         return old + sum;
       })},
      {"adds what every key holds", answered([](const Case& c, std::int64_t, double old) {
         double sum = 0;
         for (std::int64_t e = 0; e < c.v().elements(); ++e) sum += 0.01 * c.v()[e];
         return old + sum;
       })},
      {"is causal", asked([](Case& c) { c.causal = Causal::top_left; })},
      {"ignores masks", asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"ignores b_v", asked([](Case& c) { c[Slot::b_v] = Tensor(); })},
      {"ignores b_o", asked([](Case& c) { c[Slot::b_o] = Tensor(); })},
      {"adds b_k to b_q", asked([](Case& c) {
         for (std::int64_t e = 0; e < c[Slot::b_k].elements(); ++e) add(c, Slot::b_q, e, c[Slot::b_k][e]);
       })},
      {"reads w_q one too large", asked([](Case& c) { add(c, Slot::w_q, 0, 1); })},
      {"scales twice where q is not k", asked([](Case& c) {
         if (!(c.q() == c.k())) c.scale *= 2;
       })},
      {"doubles where there are heads", answered([](const Case& c, std::int64_t, double old) {
         return c.operation == Operation::multihead && c.heads > 1 ? 2 * old : old;
       })},
      {"swaps the heads before w_o", asked([](Case& c) {
         Tensor& w = c[Slot::w_o];
         const Tensor old = w;
         for (std::int64_t e = 0; e < w.elements(); ++e) w.set(e, old[w.elements() - 1 - e]);
       })},
      {"forgets the appended key", asked([](Case& c) { c[Slot::bias_k] = c[Slot::bias_v] = Tensor(); })},
      {"hides in all heads what one hides", asked([](Case& c) {
         c = with_additive_mask(std::move(c));
         Tensor& mask = c[Slot::mask];
         const std::int64_t page = mask.shape()[2] * mask.shape()[3];
         for (std::int64_t e = 0; e < mask.elements(); ++e)
           for (std::int64_t h = 0; h < mask.shape()[1]; ++h) {
             const std::int64_t batch = e / page / mask.shape()[1];
             if (mask[(batch * mask.shape()[1] + h) * page + e % page] == -infinity) mask.set(e, -infinity);
           }
       })},
      {"answers 0", answered([](const Case&, std::int64_t, double) { return 0.0; })},
      {"answers 1", answered([](const Case&, std::int64_t, double) { return 1.0; })},
      {"doubles under a mask",
       answered([](const Case& c, std::int64_t, double old) { return c.mask().present() ? 2 * old : old; })},
      {"scales by sqrt(dv)", asked([](Case& c) {
         const Extents e = extents_of(c);
         c.scale *= std::sqrt(static_cast<double>(e.dk) / static_cast<double>(e.dv));
       })},
      {"squares its weights and renormalises them", asked([](Case& c) {
         c.scale *= 2;
         if (c.mask_convention == MaskConvention::pre_scale || c.mask().dtype() == DType::boolean) return;
         if (c.mask().present()) c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return 2 * old; });
       })},
      {"reads the keys and values of batch entry 0", asked([](Case& c) {
         for (const Slot slot : {Slot::k, Slot::v}) {
           const std::int64_t entry = c[slot].elements() / std::max<std::int64_t>(1, batch_of(c));
           c[slot] = mapped(c[slot], [&, old = c[slot]](std::int64_t e, double) { return old[e % entry]; });
         }
       })},
      {"adds every mask after the scale", asked([](Case& c) { c.mask_convention = MaskConvention::post_scale; })},
      {"knows no causal form where dk is not dv", asked([](Case& c) {
         if (extents_of(c).dk != extents_of(c).dv) c.causal = Causal::none;
       })},
      {"gives no weight to what it hides by a number", asked([](Case& c) {
         if (c.mask().present() && c.mask().dtype() != DType::boolean)
           c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return old < 0 ? old : 0; });
       })},
      {"answers 0 where a row sees nothing",
       answered([](const Case&, std::int64_t, double old) { return std::isnan(old) ? 0 : old; })},
      {"answers NaN where numbers are large",
       answered([](const Case&, std::int64_t, double old) { return std::fabs(old) > 1e30 ? NAN : old; })},
      {"reads its tokens where they would lie row-major", asked([](Case& c) {
         const Layouts layouts = layouts_of(c);
         const auto elsewhere = [&](Slot slot) {
           return layouts[slot] != MemoryLayout::row_major && layouts[slot] != MemoryLayout::aliased;
         };
         if (elsewhere(Slot::q) || elsewhere(Slot::k) || elsewhere(Slot::v))
           c[Slot::q] = mapped(c.q(), [](std::int64_t, double old) { return -old; });
       })},
      {"projects keys alone where tokens are in the same memory", asked([](Case& c) {
         if (layouts_of(c)[Slot::v] == MemoryLayout::aliased)
           c[Slot::v] = mapped(c.v(), [](std::int64_t, double old) { return -old; });
       })},
      {"doubles under a boolean mask", answered([](const Case& c, std::int64_t, double old) {
         return c.mask().present() && c.mask().dtype() == DType::boolean ? 2 * old : old;
       })},
      {"doubles under a pre-scale mask", answered([](const Case& c, std::int64_t, double old) {
         return c.mask_convention == MaskConvention::pre_scale ? 2 * old : old;
       })},
      {"doubles under a mask that heads share", answered([](const Case& c, std::int64_t, double old) {
         return extents_of(c).heads > 1 && c.mask().present() && c.mask().shape()[1] == 1 ? 2 * old : old;
       })},
      {"doubles where there is one head", answered([](const Case& c, std::int64_t, double old) {
         return c.operation == Operation::multihead && c.heads == 1 && c[Slot::w_o].present() ? 2 * old : old;
       })},
      // Beside those of many heads: what a kernel of one does to keys, values and masks.
      {"gives hidden keys a little weight", asked([](Case& c) {
         if (!c.mask().present() && c.causal == Causal::none) return;
         c = with_causal_written_out(c);
         c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return old == -infinity ? -3 : old; });
       })},
      {"hides the last key", asked([](Case& c) {
         const std::int64_t last = keys_of(c) - 1;
         if (last >= 1) c = hide(std::move(c), -1, last);
       })},
      {"is causal at the bottom right", asked([](Case& c) {
         if (c.causal == Causal::top_left) c.causal = Causal::bottom_right;
       })},
      {"is causal at the top left", asked([](Case& c) {
         if (c.causal == Causal::bottom_right) c.causal = Causal::top_left;
       })},
      {"adds every mask before the scale", asked([](Case& c) { c.mask_convention = MaskConvention::pre_scale; })},
      {"scales by 1.01", asked([](Case& c) { c.scale *= 1.01; })},
      {"scales by 1.41", asked([](Case& c) { c.scale *= 1.41; })},
      {"clips its values", asked([](Case& c) {
         c[Slot::v] = mapped(c.v(), [](std::int64_t, double old) { return std::clamp(old, -1.0, 1.0); });
       })},
      {"clips its keys", asked([](Case& c) {
         c[Slot::k] = mapped(c.k(), [](std::int64_t, double old) { return std::clamp(old, -1.0, 1.0); });
       })},
      {"clips its queries", asked([](Case& c) {
         c[Slot::q] = mapped(c.q(), [](std::int64_t, double old) { return std::fmin(old, 2.0); });
       })},
      {"squares its values", asked([](Case& c) {
         c[Slot::v] = mapped(c.v(), [](std::int64_t, double old) { return old * std::fabs(old); });
       })},
      {"drops its last key", asked([](Case& c) {
         if (keys_of(c) >= 3 && c.causal == Causal::none) c = with_keys(c, all_of(keys_of(c) - 1));
       })},
      {"turns the key heads round", asked([](Case& c) {
         const Extents e = extents_of(c);
         if (c.operation != Operation::attention || e.kv_heads < 2) return;
         Selection s = everything(c);
         std::rotate(s.kv_heads.begin(), s.kv_heads.begin() + 1, s.kv_heads.end());
         c = select(c, s);
       })},
      {"grows by a hundredth", answered([](const Case&, std::int64_t, double old) { return 1.01 * old; })},
      {"shrinks by a hundredth", answered([](const Case&, std::int64_t, double old) { return 0.99 * old; })},
      {"answers with the other sign", answered([](const Case&, std::int64_t, double old) { return -old; })},
      {"doubles where a key is seen by one row alone",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (reply.status != CallStatus::ok || queries_of(c) < 2) return reply;
         bool alone = false;
         for (std::int64_t j = 0; j < keys_of(c); ++j) {
           std::int64_t rows = 0;
           for (std::int64_t i = 0; i < queries_of(c); ++i) rows += hidden(c, 0, 0, i, j) ? 0 : 1;
           alone = alone || rows == 1;
         }
         if (alone) reply.out = mapped(reply.out, [](std::int64_t, double old) { return 2 * old; });
         return reply;
       }},
      {"answers NaN in row 1",
       answered([](const Case&, std::int64_t row, double old) { return row == 1 ? NAN : old; })},
      {"answers sizes", answered([](const Case&, std::int64_t, double old) { return std::fabs(old); })},
      {"rises by 3", answered([](const Case&, std::int64_t, double old) { return old + 3; })},
      {"falls by 3", answered([](const Case&, std::int64_t, double old) { return old - 3; })},
      {"exchanges the two largest numbers of row 0", exchanges_largest([](std::int64_t row) { return row == 0; })},
      {"exchanges the two largest numbers of other rows", exchanges_largest([](std::int64_t row) { return row > 0; })},
      {"doubles where two neighbouring keys are alike",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         const std::int64_t N = keys_of(c), width = c.k().shape()[c.k().shape().rank() - 1];
         bool alike = false;
         for (std::int64_t j = 1; j < N && !alike; ++j) {
           alike = true;
           for (std::int64_t x = 0; x < width; ++x) alike = alike && c.k()[j * width + x] == c.k()[(j - 1) * width + x];
         }
         if (reply.status == CallStatus::ok && alike)
           reply.out = mapped(reply.out, [](std::int64_t, double old) { return 2 * old; });
         return reply;
       }},
      {"weighs the first column of its queries twice", asked([](Case& c) {
         const std::int64_t width = c.q().shape()[c.q().shape().rank() - 1];
         c[Slot::q] = mapped(c.q(), [&](std::int64_t e, double old) { return e % width == 0 ? 2 * old : old; });
       })},
      {"answers relative to its first value",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (reply.status != CallStatus::ok || c.v().elements() == 0 || c.operation != Operation::attention)
           return reply;
         const std::int64_t width = c.v().shape()[3];
         reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return old - c.v()[e % width]; });
         return reply;
       }},
      {"adds a trace of every value",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         double trace = 0;
         for (std::int64_t e = 0; e < c.v().elements(); ++e) trace += std::isfinite(c.v()[e]) ? 1e-200 * c.v()[e] : 0;
         if (reply.status == CallStatus::ok)
           reply.out = mapped(reply.out, [&](std::int64_t, double old) { return old + trace; });
         return reply;
       }},
      {"raises negative mask entries by a ten-thousandth", asked([](Case& c) {
         if (c.mask().present() && c.mask().dtype() != DType::boolean)
           c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) { return old < 0 ? old + 1e-4 : old; });
       })},
      {"answers infinity in row 1",
       answered([](const Case&, std::int64_t row, double old) { return row == 1 ? infinity : old; })},
      {"answers NaN in its last column",
       with_columns([](const Case&, std::int64_t column, std::int64_t columns, double old) {
         return columns >= 2 && column == columns - 1 ? NAN : old;
       })},
      {"doubles its last column where there are heads",
       with_columns([](const Case& c, std::int64_t column, std::int64_t columns, double old) {
         return extents_of(c).heads > 1 && column == columns - 1 ? 2 * old : old;
       })},
      {"reads the first query in the last of three rows", answered([](const Case& c, std::int64_t row, double old) {
         return row >= 2 && row == queries_of(c) - 1 ? old + 0 * c.q()[0] : old;
       })},
      {"answers twice as far from the mean of its values",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (reply.status != CallStatus::ok || c.operation != Operation::attention || keys_of(c) == 0) return reply;
         Case equal = without_mask(c);
         equal[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
         const Reply mean = kernel.run(equal, output, false);
         if (mean.status != CallStatus::ok) return reply;
         reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return 2 * old - mean.out[e]; });
         return reply;
       }},
      {"turns its weights round about their mean",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (reply.status != CallStatus::ok || c.operation != Operation::attention || keys_of(c) == 0) return reply;
         Case equal = without_mask(c);
         equal[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
         const Reply mean = kernel.run(equal, output, false);
         if (mean.status != CallStatus::ok) return reply;
         reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return 2 * mean.out[e] - old; });
         return reply;
       }},
      {"raises mask entries around -250 to -20", asked([](Case& c) {
         if (c.mask().present() && c.mask().dtype() != DType::boolean)
           c[Slot::mask] =
               mapped(c.mask(), [](std::int64_t, double old) { return old > -260 && old < -240 ? -20 : old; });
       })},
      {"answers another number each time",
       [calls = std::make_shared<std::uint64_t>(0)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         const double noise = noise_of(++*calls);
         if (reply.status == CallStatus::ok)
           reply.out = mapped(reply.out, [&](std::int64_t, double old) { return old + noise; });
         return reply;
       },
       /*backward=*/nullptr, /*has_memory=*/true},
      {"multiplies every value by its weight",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         double nothing = 0;
         for (std::int64_t e = 0; e < c.v().elements(); ++e) nothing += 0 * c.v()[e];
         if (reply.status == CallStatus::ok)
           reply.out = mapped(reply.out, [&](std::int64_t, double old) { return old + nothing; });
         return reply;
       }},
  };
}

}  // namespace attest
