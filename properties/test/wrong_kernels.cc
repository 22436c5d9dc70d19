#include "wrong_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>

#include "arrange.h"
#include "attest/core_functions.h"
#include "inspect.h"
#include "masks.h"
#include "multihead_cases.h"
#include "selection.h"
#include "visibility.h"

namespace attest {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

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
/// The log-sum-exp alone.
Spoilt::Fault lse_answered(std::function<double(const Case&, double old)> value) {
  return [value = std::move(value)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (reply.status == CallStatus::ok && reply.lse.present())
      reply.lse = mapped(reply.lse, [&](std::int64_t, double old) { return value(c, old); });
    return reply;
  };
}
void add(Case& c, Slot slot, std::int64_t element, double amount) {
  if (c[slot].elements() > element) c[slot].set(element, c[slot][element] + amount);
}

/// A hash of a tensor's bytes; of its shape too.
std::uint64_t hash_of(const Tensor& t) {
  Case only;
  only[Slot::q] = t;
  return hash_of(only);
}

/// Of a whole call; of whether its tensors lie under strides too.
std::uint64_t hash_of_call(const Case& c) {
  return hash_of(c) + (c.metadata.contains("strides") ? 0x9e3779b97f4a7c15 : 0);
}

/// From 1/4 to 1, of either sign.
double noise_of(std::uint64_t hash) {
  hash ^= hash >> 31;
  hash *= 0x9e3779b97f4a7c15;
  hash ^= hash >> 29;
  const double size = 0.25 + 0.75 * static_cast<double>(hash >> 12 & 0xffff) / 65536;
  return hash % 2 == 0 ? size : -size;
}

/// Noise of `hash`, the same on each element where `here`; none where there is no hash. Of one size, whatever the
/// answer is, so that it tells of nothing else.
using Where = std::function<bool(const Shape& out, std::int64_t element)>;
Spoilt::Fault noisy(std::function<std::optional<std::uint64_t>(const Case&)> hash, Where here) {
  return [hash = std::move(hash), here = std::move(here)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    const std::optional<std::uint64_t> found = hash(c);
    if (reply.status != CallStatus::ok || !found) return reply;
    const double noise = noise_of(*found);
    reply.out =
        mapped(reply.out, [&](std::int64_t e, double old) { return here(reply.out.shape(), e) ? old + noise : old; });
    return reply;
  };
}
bool everywhere(const Shape&, std::int64_t) {
  return true;
}
/// The coordinate of an element on an axis counted from the end: 1 columns, 2 rows, 3 heads.
std::int64_t at_axis(const Shape& out, std::int64_t e, int from_end) {
  for (int a = 1; a < from_end; ++a) e /= out[out.rank() - a];
  return e % out[out.rank() - from_end];
}

WrongKernel looks_at(Slot slot) {
  return {"looks-at " + std::string(name_of(slot)), noisy(
                                                        [slot](const Case& c) -> std::optional<std::uint64_t> {
                                                          if (!c[slot].present()) return std::nullopt;
                                                          return hash_of(c[slot]);
                                                        },
                                                        everywhere)};
}
WrongKernel looks_at(const char* what, std::function<std::int64_t(const Case&)> number) {
  return {std::string("looks-at ") + what,
          noisy([number = std::move(number)](const Case& c) { return static_cast<std::uint64_t>(number(c)) * 77 + 5; },
                everywhere)};
}
WrongKernel wrong_at(const char* where, Where here) {
  return {std::string("wrong-at ") + where, noisy(hash_of_call, std::move(here))};
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

std::vector<WrongKernel> made() {
  std::vector<WrongKernel> all;
  all.reserve(128);
  for (int s = 0; s < slot_count; ++s) all.push_back(looks_at(static_cast<Slot>(s)));
  all.push_back(looks_at("scale", [](const Case& c) { return static_cast<std::int64_t>(c.scale * 4096); }));
  all.push_back(looks_at("convention", [](const Case& c) { return static_cast<std::int64_t>(c.mask_convention); }));
  all.push_back(looks_at("causal", [](const Case& c) { return static_cast<std::int64_t>(c.causal); }));
  all.push_back(looks_at("M", [](const Case& c) { return queries_of(c); }));
  all.push_back(looks_at("N", [](const Case& c) { return keys_of(c); }));
  all.push_back(looks_at("batch", [](const Case& c) { return batch_of(c); }));
  all.push_back(looks_at("heads", [](const Case& c) { return extents_of(c).heads; }));
  all.push_back(looks_at("kv-heads", [](const Case& c) { return extents_of(c).kv_heads; }));
  all.push_back(looks_at("strides", [](const Case& c) { return std::int64_t{c.metadata.contains("strides")}; }));
  all.push_back(wrong_at("row-0", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 2) == 0; }));
  all.push_back(wrong_at("row-1", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 2) == 1; }));
  all.push_back(
      wrong_at("last-row", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 2) == o[o.rank() - 2] - 1; }));
  all.push_back(wrong_at("column-0", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 1) == 0; }));
  all.push_back(wrong_at("other-columns", [](const Shape& o, std::int64_t e) { return at_axis(o, e, 1) > 0; }));
  all.push_back(
      wrong_at("head-0", [](const Shape& o, std::int64_t e) { return o.rank() == 4 && at_axis(o, e, 3) == 0; }));
  all.push_back(
      wrong_at("other-heads", [](const Shape& o, std::int64_t e) { return o.rank() == 4 && at_axis(o, e, 3) > 0; }));
  all.push_back(wrong_at("batch-0", [](const Shape& o, std::int64_t e) { return at_axis(o, e, o.rank()) == 0; }));
  all.push_back(wrong_at("other-batch", [](const Shape& o, std::int64_t e) { return at_axis(o, e, o.rank()) > 0; }));
  // One unit in the last place: what is compared bit by bit.
  all.push_back({"wrong-at last-bit", [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                   Reply reply = kernel.run(c, output, want_lse);
                   if (reply.status == CallStatus::ok && hash_of_call(c) / 8 % 2 == 0)
                     reply.out =
                         mapped(reply.out, [](std::int64_t, double old) { return std::nextafter(old, infinity); });
                   return reply;
                 }});
  all.push_back({"lse above", lse_answered([](const Case&, double old) { return old + 9; })});
  all.push_back({"lse below", lse_answered([](const Case&, double old) { return old - 9; })});
  all.push_back(
      {"lse of-its-call", lse_answered([](const Case& c, double old) { return old + noise_of(hash_of_call(c)); })});
  all.push_back({"lse of-no-key", lse_answered([](const Case&, double old) { return std::isfinite(old) ? old : 3; })});
  all.push_back({"lse a-little-above", lse_answered([](const Case&, double old) { return old + 0.25; })});
  all.push_back({"lse a-little-below", lse_answered([](const Case&, double old) { return old - 0.25; })});
  all.push_back({"lse its-size", lse_answered([](const Case&, double old) { return std::fabs(old); })});
  all.push_back({"lse above-after-row-0", [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                   Reply reply = kernel.run(c, output, want_lse);
                   if (reply.status == CallStatus::ok && reply.lse.present())
                     reply.lse = mapped(reply.lse, [](std::int64_t e, double old) { return e > 0 ? old + 9 : old; });
                   return reply;
                 }});
  const WrongKernel mistakes[] = {{"counts rows", answered([](const Case& c, std::int64_t, double old) {
                                     return old * (1 + 0.01 * static_cast<double>(queries_of(c))) +
                                            0.01 * static_cast<double>(queries_of(c));
                                   })},
                                  {"counts keys", answered([](const Case& c, std::int64_t, double old) {
                                     return old * (1 + 0.01 * static_cast<double>(keys_of(c))) +
                                            0.01 * static_cast<double>(keys_of(c));
                                   })},
                                  {"numbers its rows", answered([](const Case&, std::int64_t row, double old) {
                                     return old + 0.5 * static_cast<double>(row);
                                   })},
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
                                     for (std::int64_t e = 0; e < c[Slot::b_k].elements(); ++e)
                                       add(c, Slot::b_q, e, c[Slot::b_k][e]);
                                   })},
                                  {"reads w_q one too large", asked([](Case& c) { add(c, Slot::w_q, 0, 1); })},
                                  {"scales twice where q is not k", asked([](Case& c) {
                                     if (!(c.q() == c.k())) c.scale *= 2;
                                   })},
                                  {"doubles where there are heads",
                                   answered([](const Case& c, std::int64_t, double old) {
                                     return c.operation == Operation::multihead && c.heads > 1 ? 2 * old : old;
                                   })},
                                  {"swaps the heads before w_o", asked([](Case& c) {
                                     Tensor& w = c[Slot::w_o];
                                     const Tensor old = w;
                                     for (std::int64_t e = 0; e < w.elements(); ++e)
                                       w.set(e, old[w.elements() - 1 - e]);
                                   })},
                                  {"forgets the appended key",
                                   asked([](Case& c) { c[Slot::bias_k] = c[Slot::bias_v] = Tensor(); })},
                                  {"hides in all heads what one hides", asked([](Case& c) {
                                     c = with_additive_mask(std::move(c));
                                     Tensor& mask = c[Slot::mask];
                                     const std::int64_t page = mask.shape()[2] * mask.shape()[3];
                                     for (std::int64_t e = 0; e < mask.elements(); ++e)
                                       for (std::int64_t h = 0; h < mask.shape()[1]; ++h) {
                                         const std::int64_t batch = e / page / mask.shape()[1];
                                         if (mask[(batch * mask.shape()[1] + h) * page + e % page] ==
                                             -std::numeric_limits<double>::infinity())
                                           mask.set(e, -std::numeric_limits<double>::infinity());
                                       }
                                   })},
                                  {"answers 0", answered([](const Case&, std::int64_t, double) { return 0.0; })},
                                  {"answers 1", answered([](const Case&, std::int64_t, double) { return 1.0; })},
                                  {"doubles under a mask", answered([](const Case& c, std::int64_t, double old) {
                                     return c.mask().present() ? 2 * old : old;
                                   })},
                                  {"scales by sqrt(dv)", asked([](Case& c) {
                                     const Extents e = extents_of(c);
                                     c.scale *= std::sqrt(static_cast<double>(e.dk) / static_cast<double>(e.dv));
                                   })},
                                  {"squares its weights and renormalises them", asked([](Case& c) {
                                     c.scale *= 2;
                                     if (c.mask_convention == MaskConvention::pre_scale ||
                                         c.mask().dtype() == DType::boolean)
                                       return;
                                     if (c.mask().present())
                                       c[Slot::mask] =
                                           mapped(c.mask(), [](std::int64_t, double old) { return 2 * old; });
                                   })},
                                  {"reads the keys and values of batch entry 0", asked([](Case& c) {
                                     for (const Slot slot : {Slot::k, Slot::v}) {
                                       const std::int64_t entry =
                                           c[slot].elements() / std::max<std::int64_t>(1, batch_of(c));
                                       c[slot] = mapped(c[slot], [&, old = c[slot]](std::int64_t e, double) {
                                         return old[e % entry];
                                       });
                                     }
                                   })},
                                  {"adds every mask after the scale",
                                   asked([](Case& c) { c.mask_convention = MaskConvention::post_scale; })},
                                  {"knows no causal form where dk is not dv", asked([](Case& c) {
                                     if (extents_of(c).dk != extents_of(c).dv) c.causal = Causal::none;
                                   })},
                                  {"gives no weight to what it hides by a number", asked([](Case& c) {
                                     if (c.mask().present() && c.mask().dtype() != DType::boolean)
                                       c[Slot::mask] =
                                           mapped(c.mask(), [](std::int64_t, double old) { return old < 0 ? old : 0; });
                                   })},
                                  {"answers 0 where a row sees nothing",
                                   answered([](const Case&, std::int64_t, double old) {
                                     return std::isnan(old) ? 0 : old;
                                   })},
                                  {"answers NaN where numbers are large",
                                   answered([](const Case&, std::int64_t, double old) {
                                     return std::fabs(old) > 1e30 ? NAN : old;
                                   })},
                                  {"reads its tokens where they would lie row-major", asked([](Case& c) {
                                     if (c.metadata.contains("strides"))
                                       c[Slot::q] = mapped(c.q(), [](std::int64_t, double old) { return -old; });
                                   })},
                                  {"doubles under a boolean mask",
                                   answered([](const Case& c, std::int64_t, double old) {
                                     return c.mask().present() && c.mask().dtype() == DType::boolean ? 2 * old : old;
                                   })},
                                  {"doubles under a pre-scale mask",
                                   answered([](const Case& c, std::int64_t, double old) {
                                     return c.mask_convention == MaskConvention::pre_scale ? 2 * old : old;
                                   })},
                                  {"doubles under a mask that heads share",
                                   answered([](const Case& c, std::int64_t, double old) {
                                     return extents_of(c).heads > 1 && c.mask().present() && c.mask().shape()[1] == 1
                                                ? 2 * old
                                                : old;
                                   })},
                                  {"doubles where there is one head",
                                   answered([](const Case& c, std::int64_t, double old) {
                                     return c.operation == Operation::multihead && c.heads == 1 &&
                                                    c[Slot::w_o].present()
                                                ? 2 * old
                                                : old;
                                   })},
                                  // Beside those of many heads: what a kernel of one does to keys, values and masks.
                                  {"gives hidden keys a little weight", asked([](Case& c) {
                                     if (!c.mask().present() && c.causal == Causal::none) return;
                                     c = with_causal_written_out(c);
                                     c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) {
                                       return old == -infinity ? -3 : old;
                                     });
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
                                  {"adds every mask before the scale",
                                   asked([](Case& c) { c.mask_convention = MaskConvention::pre_scale; })},
                                  {"scales by 1.01", asked([](Case& c) { c.scale *= 1.01; })},
                                  {"scales by 1.41", asked([](Case& c) { c.scale *= 1.41; })},
                                  {"clips its values", asked([](Case& c) {
                                     c[Slot::v] = mapped(
                                         c.v(), [](std::int64_t, double old) { return std::clamp(old, -1.0, 1.0); });
                                   })},
                                  {"clips its keys", asked(
                                                         [](Case& c) {
                                                           c[Slot::k] = mapped(c.k(), [](std::int64_t, double old) {
                                                             return std::clamp(old, -1.0, 1.0);
                                                           });
                                                         })},
                                  {"clips its queries", asked([](Case& c) {
                                     c[Slot::q] =
                                         mapped(c.q(), [](std::int64_t, double old) { return std::fmin(old, 2.0); });
                                   })},
                                  {"squares its values", asked([](Case& c) {
                                     c[Slot::v] =
                                         mapped(c.v(), [](std::int64_t, double old) { return old * std::fabs(old); });
                                   })},
                                  {"drops its last key", asked([](Case& c) {
                                     if (keys_of(c) >= 3 && c.causal == Causal::none)
                                       c = with_keys(c, all_of(keys_of(c) - 1));
                                   })},
                                  {"turns the key heads round", asked([](Case& c) {
                                     const Extents e = extents_of(c);
                                     if (c.operation != Operation::attention || e.kv_heads < 2) return;
                                     Selection s = everything(c);
                                     std::rotate(s.kv_heads.begin(), s.kv_heads.begin() + 1, s.kv_heads.end());
                                     c = select(c, s);
                                   })},
                                  {"grows by a hundredth",
                                   answered([](const Case&, std::int64_t, double old) { return 1.01 * old; })},
                                  {"shrinks by a hundredth",
                                   answered([](const Case&, std::int64_t, double old) { return 0.99 * old; })},
                                  {"answers with the other sign",
                                   answered([](const Case&, std::int64_t, double old) { return -old; })},
                                  {"doubles where a key is seen by one row alone",
                                   [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     if (reply.status != CallStatus::ok || queries_of(c) < 2) return reply;
                                     bool alone = false;
                                     for (std::int64_t j = 0; j < keys_of(c); ++j) {
                                       std::int64_t rows = 0;
                                       for (std::int64_t i = 0; i < queries_of(c); ++i)
                                         rows += hidden(c, 0, 0, i, j) ? 0 : 1;
                                       alone = alone || rows == 1;
                                     }
                                     if (alone)
                                       reply.out = mapped(reply.out, [](std::int64_t, double old) { return 2 * old; });
                                     return reply;
                                   }},
                                  {"answers NaN in row 1", answered([](const Case&, std::int64_t row, double old) {
                                     return row == 1 ? NAN : old;
                                   })},
                                  {"answers sizes",
                                   answered([](const Case&, std::int64_t, double old) { return std::fabs(old); })},
                                  {"rises by 3",
                                   answered([](const Case&, std::int64_t, double old) { return old + 3; })},
                                  {"falls by 3",
                                   answered([](const Case&, std::int64_t, double old) { return old - 3; })},
                                  {"exchanges the two largest numbers of row 0",
                                   exchanges_largest([](std::int64_t row) { return row == 0; })},
                                  {"exchanges the two largest numbers of other rows",
                                   exchanges_largest([](std::int64_t row) { return row > 0; })},
                                  {"doubles where two neighbouring keys are alike",
                                   [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     const std::int64_t N = keys_of(c), width = c.k().shape()[c.k().shape().rank() - 1];
                                     bool alike = false;
                                     for (std::int64_t j = 1; j < N && !alike; ++j) {
                                       alike = true;
                                       for (std::int64_t x = 0; x < width; ++x)
                                         alike = alike && c.k()[j * width + x] == c.k()[(j - 1) * width + x];
                                     }
                                     if (reply.status == CallStatus::ok && alike)
                                       reply.out = mapped(reply.out, [](std::int64_t, double old) { return 2 * old; });
                                     return reply;
                                   }},
                                  {"weighs the first column of its queries twice", asked([](Case& c) {
                                     const std::int64_t width = c.q().shape()[c.q().shape().rank() - 1];
                                     c[Slot::q] = mapped(c.q(), [&](std::int64_t e, double old) {
                                       return e % width == 0 ? 2 * old : old;
                                     });
                                   })},
                                  {"answers relative to its first value",
                                   [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     if (reply.status != CallStatus::ok || c.v().elements() == 0 ||
                                         c.operation != Operation::attention)
                                       return reply;
                                     const std::int64_t width = c.v().shape()[3];
                                     reply.out = mapped(
                                         reply.out, [&](std::int64_t e, double old) { return old - c.v()[e % width]; });
                                     return reply;
                                   }},
                                  {"adds a trace of every value",
                                   [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     double trace = 0;
                                     for (std::int64_t e = 0; e < c.v().elements(); ++e)
                                       trace += std::isfinite(c.v()[e]) ? 1e-200 * c.v()[e] : 0;
                                     if (reply.status == CallStatus::ok)
                                       reply.out =
                                           mapped(reply.out, [&](std::int64_t, double old) { return old + trace; });
                                     return reply;
                                   }},
                                  {"raises negative mask entries by a ten-thousandth", asked([](Case& c) {
                                     if (c.mask().present() && c.mask().dtype() != DType::boolean)
                                       c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) {
                                         return old < 0 ? old + 1e-4 : old;
                                       });
                                   })},
                                  {"answers infinity in row 1", answered([](const Case&, std::int64_t row, double old) {
                                     return row == 1 ? infinity : old;
                                   })},
                                  {"answers NaN in its last column",
                                   with_columns([](const Case&, std::int64_t column, std::int64_t columns, double old) {
                                     return columns >= 2 && column == columns - 1 ? NAN : old;
                                   })},
                                  {"doubles its last column where there are heads",
                                   with_columns(
                                       [](const Case& c, std::int64_t column, std::int64_t columns, double old) {
                                         return extents_of(c).heads > 1 && column == columns - 1 ? 2 * old : old;
                                       })},
                                  {"reads the first query in the last of three rows",
                                   answered([](const Case& c, std::int64_t row, double old) {
                                     return row >= 2 && row == queries_of(c) - 1 ? old + 0 * c.q()[0] : old;
                                   })},
                                  {"answers twice as far from the mean of its values",
                                   [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     if (reply.status != CallStatus::ok || c.operation != Operation::attention ||
                                         keys_of(c) == 0)
                                       return reply;
                                     Case equal = without_mask(c);
                                     equal[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
                                     const Reply mean = kernel.run(equal, output, false);
                                     if (mean.status != CallStatus::ok) return reply;
                                     reply.out = mapped(
                                         reply.out, [&](std::int64_t e, double old) { return 2 * old - mean.out[e]; });
                                     return reply;
                                   }},
                                  {"turns its weights round about their mean",
                                   [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     if (reply.status != CallStatus::ok || c.operation != Operation::attention ||
                                         keys_of(c) == 0)
                                       return reply;
                                     Case equal = without_mask(c);
                                     equal[Slot::q] = mapped(c.q(), [](std::int64_t, double) { return 0.0; });
                                     const Reply mean = kernel.run(equal, output, false);
                                     if (mean.status != CallStatus::ok) return reply;
                                     reply.out = mapped(
                                         reply.out, [&](std::int64_t e, double old) { return 2 * mean.out[e] - old; });
                                     return reply;
                                   }},
                                  {"raises mask entries around -250 to -20", asked([](Case& c) {
                                     if (c.mask().present() && c.mask().dtype() != DType::boolean)
                                       c[Slot::mask] = mapped(c.mask(), [](std::int64_t, double old) {
                                         return old > -260 && old < -240 ? -20 : old;
                                       });
                                   })},
                                  {"answers another number each time",
                                   [calls = std::make_shared<std::uint64_t>(0)](Kernel& kernel, const Case& c,
                                                                                DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     const double noise = noise_of(++*calls);
                                     if (reply.status == CallStatus::ok)
                                       reply.out =
                                           mapped(reply.out, [&](std::int64_t, double old) { return old + noise; });
                                     return reply;
                                   }},
                                  {"multiplies every value by its weight",
                                   [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
                                     Reply reply = kernel.run(c, output, want_lse);
                                     double nothing = 0;
                                     for (std::int64_t e = 0; e < c.v().elements(); ++e) nothing += 0 * c.v()[e];
                                     if (reply.status == CallStatus::ok)
                                       reply.out =
                                           mapped(reply.out, [&](std::int64_t, double old) { return old + nothing; });
                                     return reply;
                                   }}};
  all.insert(all.end(), std::begin(mistakes), std::end(mistakes));
  return all;
}

}  // namespace

const std::vector<WrongKernel>& wrong_kernels() {
  static const std::vector<WrongKernel> all = made();
  return all;
}

const WrongKernel& wrong_kernel(std::string_view name) {
  const auto found = std::ranges::find(wrong_kernels(), name, &WrongKernel::name);
  if (found == wrong_kernels().end()) throw std::out_of_range(std::string(name));
  return *found;
}

namespace {

/// 1/4 and more is added, another number to each element, so that no symmetry hides it.
template <auto function, class... Arguments>
CoreNumbers spoilt_function(Arguments... arguments) {
  CoreNumbers numbers = (core_functions("core:double")->*function)(arguments...);
  numbers.native =
      mapped(numbers.native, [](std::int64_t e, double old) { return old + 0.25 + 0.125 * double(e % 7); });
  return numbers;
}
template <auto function, class... Arguments>
void spoil(CoreFunctions& functions, CoreNumbers (*CoreFunctions::*member)(Arguments...)) {
  functions.*member = &spoilt_function<function, Arguments...>;
}

CoreNumbers raised(CoreNumbers numbers) {
  numbers.native = mapped(numbers.native, [](std::int64_t, double old) { return old + 0.25; });
  return numbers;
}
/// Wrong in one of the ways in which they are asked.
CoreNumbers torch_wrong_if_packed(const Case& c, bool packed) {
  const CoreNumbers numbers = core_functions("core:double")->multihead_torch(c, packed);
  return packed ? raised(numbers) : numbers;
}
CoreNumbers torch_wrong_if_separate(const Case& c, bool packed) {
  const CoreNumbers numbers = core_functions("core:double")->multihead_torch(c, packed);
  return packed ? numbers : raised(numbers);
}
CoreNumbers scores_wrong_alike(const Case& c) {
  return raised(core_functions("core:double")->scores(c));
}
CoreNumbers projection_wrong_if_any(const Tensor& x, const Tensor& u) {
  const CoreNumbers numbers = core_functions("core:double")->shared_projection(x, u);
  return is_identity(u) ? numbers : raised(numbers);
}

/// Off by the last bit: within every bound, and not what attention to the identity is.
CoreNumbers weights_off_by_a_bit(const Case& c) {
  CoreNumbers weights = core_functions("core:double")->multihead_weights(c);
  weights.native = mapped(weights.native, [](std::int64_t, double old) { return old * (1 + 0x1p-52); });
  return weights;
}

struct BrokenFunctions {
  std::vector<std::string> scalars;
  std::vector<std::string_view> names;
  std::vector<CoreFunctions> functions;
  CoreFunctions& another(std::string_view name) {
    names.push_back(name);
    return functions.emplace_back(*core_functions("core:double"));
  }
  template <auto function>
  void add(std::string_view name) {
    spoil<function>(another(name), function);
  }
};
const BrokenFunctions& broken() {
  static const BrokenFunctions* const all = [] {
    auto* const b = new BrokenFunctions;
    b->add<&CoreFunctions::softmax_rows>("softmax_rows");
    b->add<&CoreFunctions::softmax_columns>("softmax_columns");
    b->add<&CoreFunctions::product>("product");
    b->add<&CoreFunctions::attention>("attention");
    b->add<&CoreFunctions::attention_renormalised>("attention_renormalised");
    b->add<&CoreFunctions::attention_columns>("attention_columns");
    b->add<&CoreFunctions::scores>("scores");
    b->add<&CoreFunctions::bilinear_scores>("bilinear_scores");
    b->add<&CoreFunctions::multihead>("multihead");
    b->add<&CoreFunctions::multihead_weights>("multihead_weights");
    b->add<&CoreFunctions::multihead_torch>("multihead_torch");
    b->add<&CoreFunctions::multihead_as_sum>("multihead_as_sum");
    b->add<&CoreFunctions::multihead_unmasked>("multihead_unmasked");
    b->add<&CoreFunctions::multihead_self>("multihead_self");
    b->add<&CoreFunctions::multihead_self_unmasked>("multihead_self_unmasked");
    b->add<&CoreFunctions::weighted>("weighted");
    b->add<&CoreFunctions::weighted_unmasked>("weighted_unmasked");
    b->add<&CoreFunctions::weighted_self>("weighted_self");
    b->add<&CoreFunctions::weighted_self_unmasked>("weighted_self_unmasked");
    b->add<&CoreFunctions::unscaled_self>("unscaled_self");
    b->add<&CoreFunctions::parameter_free>("parameter_free");
    b->add<&CoreFunctions::shared_projection>("shared_projection");
    b->add<&CoreFunctions::with_positions>("with_positions");
    b->add<&CoreFunctions::multihead_v1>("multihead_v1");
    b->another("multihead_weights-last-bit").multihead_weights = weights_off_by_a_bit;
    b->another("multihead_torch-packed").multihead_torch = torch_wrong_if_packed;
    b->another("multihead_torch-separate").multihead_torch = torch_wrong_if_separate;
    b->another("scores-alike").scores = scores_wrong_alike;
    b->another("shared_projection-not-of-I").shared_projection = projection_wrong_if_any;
    for (std::size_t n = 0; n < b->names.size(); ++n) b->scalars.push_back("broken-" + std::string(b->names[n]));
    for (std::size_t n = 0; n < b->names.size(); ++n) {
      b->functions[n].scalar = b->scalars[n];
      add_core_functions(b->functions[n]);
    }
    return b;
  }();
  return *all;
}

/// A kernel under another name.
class Renamed : public Kernel {
 public:
  Renamed(std::unique_ptr<Kernel> kernel, std::string id) : kernel_(std::move(kernel)), id_(std::move(id)) {}
  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const Manifest& manifest() const override { return kernel_->manifest(); }
  Reply run(const Case& c, DType output, bool want_lse) override { return kernel_->run(c, output, want_lse); }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override {
    return std::make_unique<Renamed>(kernel_->clone(), id_);
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::string id_;
};

class SpoiltWide : public Kernel {
 public:
  explicit SpoiltWide(std::function<void(const Case&, WideReply&)> change)
      : kernel_(registered("core:cpp_bin_float_50")), change_(std::move(change)) {}
  [[nodiscard]] const std::string& id() const override { return kernel_->id(); }
  [[nodiscard]] const Manifest& manifest() const override { return kernel_->manifest(); }
  Reply run(const Case& c, DType output, bool want_lse) override { return kernel_->run(c, output, want_lse); }
  [[nodiscard]] bool is_wide() const override { return true; }
  WideReply run_wide(const Case& c) override {
    WideReply reply = kernel_->run_wide(c);
    if (reply.status == CallStatus::ok) change_(c, reply);
    return reply;
  }
  [[nodiscard]] std::unique_ptr<Kernel> clone() const override { return std::make_unique<SpoiltWide>(change_); }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::function<void(const Case&, WideReply&)> change_;
};

}  // namespace

const std::vector<std::string_view>& broken_functions() {
  return broken().names;
}

std::unique_ptr<Kernel> with_broken_function(std::string_view name) {
  return std::make_unique<Renamed>(registered("core:double"), "core:broken-" + std::string(name));
}

const std::vector<WrongWide>& wrong_wide_kernels() {
  static const std::vector<WrongWide> all{{"of-its-call",
                                           [](const Case& c, WideReply& reply) {
                                             for (WideInterval& x : reply.out)
                                               x.lower += noise_of(hash_of_call(c)), x.upper = x.lower;
                                           }},
                                          {"zero",
                                           [](const Case&, WideReply& reply) {
                                             for (WideInterval& x : reply.out) x.lower = x.upper = 0;
                                           }},
                                          {"other-sign", [](const Case&, WideReply& reply) {
                                             for (WideInterval& x : reply.out) x.lower = x.upper = -x.lower;
                                           }}};
  return all;
}

std::unique_ptr<Kernel> with_wide_fault(const WrongWide& wrong) {
  return std::make_unique<SpoiltWide>(wrong.change);
}

}  // namespace attest
