// Kernels that are right but for sinks.
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

bool has_sinks(const Case& c) {
  return c[Slot::sink].present();
}
void forget(Case& c) {
  drop_variant(c, sink_variant.name);
}

/// Other sinks in the place of those asked for, where there are some.
Spoilt::Fault sinks_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (has_sinks(c)) change(c);
    return kernel.run(c, output, want_lse);
  };
}
/// By head.
Spoilt::Fault each_sink(std::function<double(const Case&, std::int64_t h, double sink)> value) {
  return sinks_asked([value = std::move(value)](Case& c) {
    const Case before = c;
    c[Slot::sink] = mapped(Tensor(DType::f64, c[Slot::sink].shape()),
                           [&](std::int64_t h, double) { return value(before, h, before[Slot::sink][h]); });
  });
}

/// The answer, of output and log-sum-exp, made of the right one and of the one without sinks, row by row.
struct SunkRow {
  std::int64_t i, column;  ///< column: of the output
  double sink, lse;        ///< the row's, without a sink; -inf: it sees no key
};
Spoilt::Fault sinks_answered(std::function<double(const SunkRow&, double right, double without)> out,
                             std::function<double(const SunkRow&, double right, double without)> lse) {
  return [out = std::move(out), lse = std::move(lse)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!has_sinks(c) || reply.status != CallStatus::ok) return reply;
    Case plain = c;
    forget(plain);
    const Reply other = kernel.run(plain, output, /*want_lse=*/true);
    const std::int64_t M = queries_of(c), dv = c.v().shape()[3];
    const auto row = [&](std::int64_t r, std::int64_t column) {
      return SunkRow{r % M, column, c[Slot::sink][r / M % heads_of(c)], other.lse[r]};
    };
    reply.out =
        mapped(reply.out, [&](std::int64_t e, double old) { return out(row(e / dv, e % dv), old, other.out[e]); });
    if (reply.lse.present())
      reply.lse = mapped(reply.lse, [&](std::int64_t r, double old) { return lse(row(r, 0), old, other.lse[r]); });
    return reply;
  };
}
double right_of(const SunkRow&, double right, double) {
  return right;
}
bool is_empty(const SunkRow& row) {
  return !(row.lse > -infinity);
}

}  // namespace

std::vector<WrongKernel> mistaken_sinks() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"ignores sinks", sinks_asked(forget)},
      {"scales sinks", each_sink([](const Case& c, std::int64_t, double sink) { return c.scale * sink; })},
      {"takes no sink for one of 0",
       each_sink([](const Case&, std::int64_t, double sink) { return sink == -infinity ? 0 : sink; })},
      {"takes the lowest sink for one of 0", each_sink([](const Case&, std::int64_t, double sink) {
         return sink < -1e30 && std::isfinite(sink) ? 0 : sink;
       })},
      {"counts sinks twice",
       each_sink([](const Case&, std::int64_t, double sink) { return sink + std::numbers::ln2; })},
      {"counts sinks twice over 32 keys", each_sink([](const Case& c, std::int64_t, double sink) {
         return keys_of(c) > 32 ? sink + std::numbers::ln2 : sink;
       })},
      {"counts sinks of half a thousandth too much",
       each_sink([](const Case&, std::int64_t, double sink) { return sink + 5e-4; })},
      {"gives every head the first sink",
       each_sink([](const Case& c, std::int64_t, double) { return c[Slot::sink][0]; })},
      {"gives the last head the first sink", each_sink([](const Case& c, std::int64_t h, double sink) {
         return h > 0 && h == heads_of(c) - 1 ? c[Slot::sink][0] : sink;
       })},
      {"ignores sinks for one query", sinks_asked([](Case& c) {
         if (queries_of(c) == 1) forget(c);
       })},
      {"ignores sinks for more than one query", sinks_asked([](Case& c) {
         if (queries_of(c) > 1) forget(c);
       })},
      {"ignores sinks beside a mask", sinks_asked([](Case& c) {
         if (c.mask().present()) forget(c);
       })},
      {"ignores a mask beside sinks", sinks_asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"moves sinks with the mask", each_sink([](const Case& c, std::int64_t, double sink) {
         const bool adds = c.mask().present() && c.mask().dtype() != DType::boolean && c.mask().elements() > 0;
         return adds && std::isfinite(c.mask()[0]) ? sink + c.mask()[0] : sink;
       })},
      {"has no sinks in its log-sum-exps",
       sinks_answered(right_of, [](const SunkRow&, double, double without) { return without; })},
      {"has no sinks in its outputs",
       sinks_answered([](const SunkRow&, double, double without) { return without; }, right_of)},
      {"leaves the first column as it is without sinks",
       sinks_answered(
           [](const SunkRow& row, double right, double without) { return row.column == 0 ? without : right; },
           right_of)},
      {"gives the sinks' share to a value of 1",
       sinks_answered([](const SunkRow& row, double right,
                         double) { return is_empty(row) ? right : right + 1 / (1 + std::exp(row.lse - row.sink)); },
                      right_of)},
      {"is NaN in rows of a sink alone",
       sinks_answered([](const SunkRow& row, double right, double) { return is_empty(row) ? nan : right; }, right_of)},
      {"is tiny in rows of a sink alone",
       sinks_answered([](const SunkRow& row, double right, double) { return is_empty(row) ? 1e-30 : right; },
                      right_of)},
      {"has no log-sum-exp in rows of a sink alone",
       sinks_answered(right_of,
                      [](const SunkRow& row, double right, double) { return is_empty(row) ? -infinity : right; })},
      {"changes other rows beside one of a sink alone",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_sinks(c) || reply.status != CallStatus::ok || !has_fully_masked_row([&] {
               Case plain = c;
               forget(plain);
               return plain;
             }()))
           return reply;
         reply.out = mapped(reply.out, [](std::int64_t, double old) { return old == 0 ? old : 1.01 * old; });
         return reply;
       }},
      {"overflows far above the keys",
       sinks_answered([](const SunkRow& row, double right, double) { return row.sink - row.lse > 30 ? nan : right; },
                      right_of)},
      {"has infinite log-sum-exps far above the keys",
       sinks_answered(right_of, [](const SunkRow& row, double right,
                                   double) { return row.sink - row.lse > 30 ? infinity : right; })},
      {"is 0 far above the keys",
       sinks_answered([](const SunkRow& row, double right, double) { return row.sink - row.lse > 15 ? 0 : right; },
                      right_of)},
      {"clamps how far sinks lie above the keys", sinks_answered(
                                                      [](const SunkRow& row, double right, double without) {
                                                        return row.sink - row.lse > 8 && !is_empty(row)
                                                                   ? without / (1 + std::exp(8.0))
                                                                   : right;
                                                      },
                                                      right_of)},
  };
}

}  // namespace attest
