// Kernels that are right but for caps of scores.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/selection.h"
#include "core/problem/sequences.h"
#include "core/problem/sight.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/pair_product.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

void forget(Case& c) {
  drop_variant(c, softcap_variant.name);
}

/// Another problem in the place of one with a cap.
Spoilt::Fault caps_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (c.softcap > 0) change(c);
    return kernel.run(c, output, want_lse);
  };
}
Spoilt::Fault another_cap(std::function<double(double)> value) {
  return caps_asked([value = std::move(value)](Case& c) { c.softcap = value(c.softcap); });
}

/// What a kernel has in the place of a score: of the scaled product t, what the mask adds, and the cap.
using ScoreOf = std::function<double(double t, double added, double cap)>;
/// The problem without a cap, and with a mask that makes these scores of it. `hidden`: what a hidden key has for one.
Case with_scores(const Case& c, const ScoreOf& score, std::optional<double> of_hidden = std::nullopt) {
  Case plain = c;
  forget(plain);
  Tensor mask(DType::f64, {batch_of(c), heads_of(c), queries_of(c), keys_of(c)});
  for (std::int64_t e = 0; e < mask.elements(); ++e) {
    const auto [b, h, i, j] = mask.shape().index_of(e);
    const double t = c.scale * static_cast<double>(product_of_pair(c, b, h, i, j));
    if (hidden(c, b, h, i, j))
      mask.set(e, of_hidden ? *of_hidden - t : -infinity);
    else
      mask.set(e, score(t, bias_of(c, b, h, i, j), c.softcap) - t);
  }
  plain[Slot::mask] = std::move(mask);
  drop_positions(plain);
  set_layouts(plain, Layouts());
  return plain;
}
Spoilt::Fault scores_asked(ScoreOf score) {
  return caps_asked([score = std::move(score)](Case& c) {
    if (!has_sequences(c)) c = with_scores(c, score);
  });
}
double capped(double t, double cap) {
  return cap * std::tanh(t / cap);
}

}  // namespace

std::vector<WrongKernel> mistaken_softcaps() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"ignores caps", caps_asked(forget)},
      {"caps at twice the cap", another_cap([](double cap) { return 2 * cap; })},
      {"caps at half the cap", another_cap([](double cap) { return cap / 2; })},
      {"caps at a hundredth more than the cap", another_cap([](double cap) { return 1.01 * cap; })},
      {"takes every cap for 50", another_cap([](double) { return 50.0; })},
      {"ignores caps for one query", caps_asked([](Case& c) {
         if (queries_of(c) == 1) forget(c);
       })},
      {"ignores caps beside a mask", caps_asked([](Case& c) {
         if (c.mask().present()) forget(c);
       })},
      {"ignores a mask beside caps", caps_asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"caps positive scores alone",
       scores_asked([](double t, double added, double cap) { return (t > 0 ? capped(t, cap) : t) + added; })},
      {"caps the sizes of scores",
       scores_asked([](double t, double added, double cap) { return capped(std::fabs(t), cap) + added; })},
      {"turns capped scores", scores_asked([](double t, double added, double cap) { return -capped(t, cap) + added; })},
      {"cuts scores off at the cap",
       scores_asked([](double t, double added, double cap) { return std::clamp(t, -cap, cap) + added; })},
      {"has the tanh without the cap before it",
       scores_asked([](double t, double added, double cap) { return std::tanh(t / cap) + added; })},
      {"has a score times its tanh",
       scores_asked([](double t, double added, double) { return t * std::tanh(t) + added; })},
      {"has a score times the tanh of its quotient",
       scores_asked([](double t, double added, double cap) { return t * std::tanh(t / cap) + added; })},
      {"caps what the mask has added to",
       scores_asked([](double t, double added, double cap) { return capped(t + added, cap); })},
      {"makes scores larger than they are", scores_asked([](double t, double added, double cap) {
         return cap * std::sinh(std::clamp(t / cap, -9.0, 9.0)) + added;
       })},
      {"gives hidden keys the lowest capped score", caps_asked([](Case& c) {
         if (has_sequences(c) || c.softcap > 300) return;
         c = with_scores(c, [](double t, double added, double cap) { return capped(t, cap) + added; }, -c.softcap);
       })},
      {"scales scores once more before the cap", caps_asked([](Case& c) {
         const double scale = c.scale;
         if (!has_sequences(c))
           c = with_scores(c, [scale](double t, double added, double cap) { return capped(scale * t, cap) + added; });
       })},
      {"caps products before the scale", caps_asked([](Case& c) {
         const double scale = c.scale;
         if (!has_sequences(c))
           c = with_scores(
               c, [scale](double t, double added, double cap) { return scale * capped(t / scale, cap) + added; });
       })},
      {"keeps the last cap",
       // Of a problem with the same queries.
       [last = Case()](Kernel& kernel, Case c, DType output, bool want_lse) mutable {
         if (c.softcap > 0)
           last = c;
         else if (c.operation == Operation::attention && c.mask_convention == MaskConvention::post_scale &&
                  last[Slot::q] == c.q())
           c.softcap = last.softcap;
         return kernel.run(c, output, want_lse);
       },
       /*backward=*/nullptr, /*has_memory=*/true},
      {"keeps the last cap in its log-sum-exps",
       [last = Case()](Kernel& kernel, const Case& c, DType output, bool want_lse) mutable {
         Reply reply = kernel.run(c, output, want_lse);
         if (c.softcap > 0) {
           last = c;
         } else if (reply.status == CallStatus::ok && reply.lse.present() && last[Slot::q] == c.q()) {
           reply.lse = mapped(reply.lse, [](std::int64_t, double old) { return old + 1; });
         }
         return reply;
       },
       /*backward=*/nullptr, /*has_memory=*/true},
      {"is NaN far above the cap",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!(c.softcap > 0) || reply.status != CallStatus::ok || has_sequences(c)) return reply;
         const std::int64_t dv = c.v().shape()[3], M = queries_of(c), heads = heads_of(c);
         reply.out = mapped(reply.out, [&](std::int64_t e, double old) {
           const std::int64_t row = e / dv;
           double most = 0;
           for (std::int64_t j = 0; j < keys_of(c); ++j) {
             double product = 0;
             for (std::int64_t x = 0; x < c.q().shape()[3]; ++x)
               product += c.q().at(row / M / heads, row / M % heads, row % M, x) *
                          c.k().at(row / M / heads, kv_head_of(c, row / M % heads), j, x);
             most = std::max(most, std::fabs(c.scale * product / c.softcap));
           }
           return most > 88 ? nan : old;
         });
         return reply;
       }},
      {"has no caps in its log-sum-exps",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!(c.softcap > 0) || reply.status != CallStatus::ok || !reply.lse.present()) return reply;
         Case plain = c;
         forget(plain);
         reply.lse = kernel.run(plain, output, /*want_lse=*/true).lse;
         return reply;
       }},
  };
}

}  // namespace attest
