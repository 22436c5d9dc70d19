// Kernels that are right but for windows.
#include <functional>
#include <limits>
#include <utility>

#include "core/problem/fields.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

bool has_window(const Case& c) {
  return has_variant(c, window_variant.name);
}

/// Another window in the place of the one asked for, where there is one.
Spoilt::Fault window_asked(std::function<void(Case&)> change) {
  return [change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (has_window(c)) change(c);
    settle_alignment(c);
    return kernel.run(c, output, want_lse);
  };
}
void forget(Case& c) {
  drop_variant(c, window_variant.name);
}

/// The answer, of output and log-sum-exp, made of the right one and of the one without the window.
Spoilt::Fault window_answered(std::function<double(double right, double without)> out,
                              std::function<double(double right, double without)> lse) {
  return [out = std::move(out), lse = std::move(lse)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!has_window(c) || reply.status != CallStatus::ok) return reply;
    Case plain = c;
    forget(plain);
    const Reply other = kernel.run(plain, output, want_lse);
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return out(old, other.out[e]); });
    if (reply.lse.present())
      reply.lse = mapped(reply.lse, [&](std::int64_t e, double old) { return lse(old, other.lse[e]); });
    return reply;
  };
}

/// In rows that the predicate chooses by what they see.
Spoilt::Fault rows_answered(std::function<bool(const Case&, const Sight&)> chosen,
                            std::function<double(double old)> value) {
  return [chosen = std::move(chosen), value = std::move(value)](Kernel& kernel, const Case& c, DType output,
                                                                bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (!has_window(c) || reply.status != CallStatus::ok) return reply;
    const std::int64_t M = queries_of(c), dv = c.v().shape()[3];
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) {
      return chosen(c, sight(sight_rule(c), e / dv % M, M, keys_of(c))) ? value(old) : old;
    });
    return reply;
  };
}

double first_of(double right, double) {
  return right;
}

}  // namespace

std::vector<WrongKernel> mistaken_windows() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"ignores windows", window_asked(forget)},
      {"ignores left ends", window_asked([](Case& c) { c.window_left = -1; })},
      {"ignores right ends", window_asked([](Case& c) { c.window_right = -1; })},
      {"counts the query among the keys on the left",
       window_asked([](Case& c) { c.window_left = c.window_left > 0 ? c.window_left - 1 : c.window_left; })},
      {"sees a key more on the left", window_asked([](Case& c) { c.window_left += c.window_left >= 0 ? 1 : 0; })},
      {"sees a key less on the right",
       window_asked([](Case& c) { c.window_right = c.window_right > 0 ? c.window_right - 1 : c.window_right; })},
      {"sees a key more on the right", window_asked([](Case& c) { c.window_right += c.window_right >= 0 ? 1 : 0; })},
      {"exchanges the ends of windows", window_asked([](Case& c) { std::swap(c.window_left, c.window_right); })},
      {"aligns windows at the top left", window_asked([](Case& c) {
         if (c.causal == Causal::none) c.alignment = Causal::top_left;
       })},
      {"aligns windows at the bottom right", window_asked([](Case& c) {
         if (c.causal == Causal::none) c.alignment = Causal::bottom_right;
       })},
      {"counts bottom-right windows one key further", window_asked([](Case& c) {
         if (c.causal != Causal::none || c.alignment != Causal::bottom_right) return;
         if (c.window_left > 0) --c.window_left;
         if (c.window_right >= 0) ++c.window_right;
       })},
      {"ignores windows beside a mask", window_asked([](Case& c) {
         if (c.mask().present()) forget(c);
       })},
      {"ignores windows beside a causal form", window_asked([](Case& c) {
         if (c.causal != Causal::none) forget(c);
       })},
      {"ignores a causal form beside a window", window_asked([](Case& c) {
         const Causal alignment = c.causal;
         c.causal = Causal::none;
         if (alignment != Causal::none) c.alignment = alignment;
       })},
      {"ignores a mask beside a window", window_asked([](Case& c) { c[Slot::mask] = Tensor(); })},
      {"ignores windows for one query", window_asked([](Case& c) {
         if (queries_of(c) == 1) forget(c);
       })},
      {"takes windows for wide that are not", window_asked([](Case& c) {
         if (c.window_left >= keys_of(c) - 2) c.window_left = -1;
         if (c.window_right >= queries_of(c) - 2) c.window_right = -1;
       })},
      {"takes windows of as many keys for wide", window_asked([](Case& c) {
         if (c.window_right >= keys_of(c)) c.window_right = -1;
       })},
      {"takes a window of one end for one of both", window_asked([](Case& c) {
         if (c.window_left < 0) c.window_left = keys_of(c) - 1;
         if (c.window_right < 0) c.window_right = keys_of(c) - 1;
         if (c.window_left < 0) c.window_left = 0, c.window_right = 0;
       })},
      {"weighs keys outside of windows a little",
       window_answered([](double right, double without) { return right + 0.01 * (without - right); }, first_of)},
      {"counts keys outside of windows in lse", window_answered(first_of, [](double, double all) { return all; })},
      {"lowers lse by how wide windows are",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (has_window(c) && reply.status == CallStatus::ok && reply.lse.present())
           reply.lse = mapped(reply.lse, [&](std::int64_t, double old) {
             return old - static_cast<double>(c.window_left + c.window_right);
           });
         return reply;
       }},
      {"lowers lse by 2 under windows of more than a key",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (c.window_left + c.window_right > 0 && reply.status == CallStatus::ok && reply.lse.present())
           reply.lse = mapped(reply.lse, [](std::int64_t, double old) { return old - 2; });
         return reply;
       }},
      {"answers 0 outside of the keys",
       rows_answered([](const Case&, const Sight& seen) { return seen.first == seen.last; },
                     [](double) { return 0.0; })},
      {"answers 1 outside of the keys",
       rows_answered([](const Case&, const Sight& seen) { return seen.first == seen.last; },
                     [](double) { return 1.0; })},
      {"answers NaN behind a hidden block",
       rows_answered([](const Case&, const Sight& seen) { return seen.first >= 16; }, [](double) { return nan; })},
      {"answers half behind a hidden block",
       rows_answered([](const Case&, const Sight& seen) { return seen.first >= 16; },
                     [](double old) { return old / 2; })},
      {"answers otherwise beside rows without a key",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_window(c) || reply.status != CallStatus::ok) return reply;
         const std::int64_t M = queries_of(c);
         bool any = false;
         for (std::int64_t i = 0; i < M; ++i) {
           const Sight seen = sight(sight_rule(c), i, M, keys_of(c));
           any = any || seen.first == seen.last;
         }
         if (any) reply.out = mapped(reply.out, [](std::int64_t, double old) { return old + 1; });
         return reply;
       }},
      {"adds what keys outside of windows hold",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (!has_window(c) || reply.status != CallStatus::ok || c.v().elements() == 0) return reply;
         const double first = c.v()[0], last = c.v()[c.v().elements() - 1];
         reply.out = mapped(reply.out, [&](std::int64_t, double old) { return old + 0.01 * (first - last); });
         return reply;
       }},
  };
}

}  // namespace attest
