#include "properties/test/catalogue/wrong_kernels.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "core/problem/selection.h"
#include "properties/arrangement/arrange.h"
#include "properties/test/catalogue/wrong_kernel_groups.h"

namespace attest {
namespace {

/// What becomes of the answer to a problem with the variant.
using OfReply = std::function<void(Kernel& kernel, const Case& c, DType output, bool want_lse, Reply& reply)>;
Spoilt::Fault answered(const Variant& variant, OfReply change) {
  return [variant, change = std::move(change)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (has_variant(c, variant.name) && reply.status == CallStatus::ok) change(kernel, c, output, want_lse, reply);
    return reply;
  };
}

Sight seen_by(const Case& c, std::int64_t i) {
  return sight(sight_rule(c), i, queries_of(c), keys_of(c));
}

}  // namespace

Spoilt::Fault variant_asked(const Variant& variant, std::function<void(Case&)> change) {
  return [variant, change = std::move(change)](Kernel& kernel, Case c, DType output, bool want_lse) {
    if (has_variant(c, variant.name)) change(c);
    settle_alignment(c);
    return kernel.run(c, output, want_lse);
  };
}

Spoilt::Fault variant_answered(const Variant& variant, OfAnswers out, OfAnswers lse) {
  return answered(variant, [variant, out = std::move(out), lse = std::move(lse)](
                               Kernel& kernel, const Case& c, DType output, bool want_lse, Reply& reply) {
    Case plain = c;
    drop_variant(plain, variant.name);
    const Reply other = kernel.run(plain, output, want_lse);
    reply.out = mapped(reply.out, [&](std::int64_t e, double old) { return out(old, other.out[e]); });
    if (reply.lse.present())
      reply.lse = mapped(reply.lse, [&](std::int64_t e, double old) { return lse(old, other.lse[e]); });
  });
}

double right_answer(double right, double) {
  return right;
}

Spoilt::Fault rows_answered(const Variant& variant, std::function<bool(const Sight&)> chosen,
                            std::function<double(double old)> value) {
  return answered(variant, [chosen = std::move(chosen), value = std::move(value)](Kernel&, const Case& c, DType, bool,
                                                                                  Reply& reply) {
    const std::int64_t M = queries_of(c), dv = c.v().shape()[3];
    reply.out = mapped(reply.out,
                       [&](std::int64_t e, double old) { return chosen(seen_by(c, e / dv % M)) ? value(old) : old; });
  });
}

bool sees_nothing(const Sight& seen) {
  return seen.first == seen.last;
}
bool begins_behind_a_block(const Sight& seen) {
  return seen.first >= 16;
}

Spoilt::Fault risen_beside_empty_rows(const Variant& variant) {
  return answered(variant, [](Kernel&, const Case& c, DType, bool, Reply& reply) {
    bool any = false;
    for (std::int64_t i = 0; i < queries_of(c); ++i) any = any || sees_nothing(seen_by(c, i));
    if (any) reply.out = mapped(reply.out, [](std::int64_t, double old) { return old + 1; });
  });
}

Spoilt::Fault with_a_trace_of_the_ends(const Variant& variant) {
  return answered(variant, [](Kernel&, const Case& c, DType, bool, Reply& reply) {
    if (c.v().elements() == 0) return;
    const double first = c.v()[0], last = c.v()[c.v().elements() - 1];
    reply.out = mapped(reply.out, [&](std::int64_t, double old) { return old + 0.01 * (first - last); });
  });
}

Spoilt::Fault lse_lowered(const Variant& variant, std::function<double(const Case&)> by) {
  return answered(variant, [by = std::move(by)](Kernel&, const Case& c, DType, bool, Reply& reply) {
    if (reply.lse.present()) reply.lse = mapped(reply.lse, [&](std::int64_t, double old) { return old - by(c); });
  });
}

namespace {

/// The log-sum-exp alone.
Spoilt::Fault lse_answered(std::function<double(const Case&, double old)> value) {
  return [value = std::move(value)](Kernel& kernel, const Case& c, DType output, bool want_lse) {
    Reply reply = kernel.run(c, output, want_lse);
    if (reply.status == CallStatus::ok && reply.lse.present())
      reply.lse = mapped(reply.lse, [&](std::int64_t, double old) { return value(c, old); });
    return reply;
  };
}

std::vector<WrongKernel> with_wrong_lse() {
  return {
      {"lse above", lse_answered([](const Case&, double old) { return old + 9; })},
      {"lse below", lse_answered([](const Case&, double old) { return old - 9; })},
      {"lse of-its-call", lse_answered([](const Case& c, double old) { return old + noise_of(hash_of_call(c)); })},
      {"lse of-no-key", lse_answered([](const Case&, double old) { return std::isfinite(old) ? old : 3; })},
      {"lse a-little-above", lse_answered([](const Case&, double old) { return old + 0.25; })},
      {"lse a-little-below", lse_answered([](const Case&, double old) { return old - 0.25; })},
      {"lse its-size", lse_answered([](const Case&, double old) { return std::fabs(old); })},
      {"lse above-after-row-0",
       [](Kernel& kernel, const Case& c, DType output, bool want_lse) {
         Reply reply = kernel.run(c, output, want_lse);
         if (reply.status == CallStatus::ok && reply.lse.present())
           reply.lse = mapped(reply.lse, [](std::int64_t e, double old) { return e > 0 ? old + 9 : old; });
         return reply;
       }},
  };
}

std::vector<WrongKernel> made() {
  std::vector<WrongKernel> all = noisy_kernels();
  for (const auto& group :
       {with_wrong_lse(), mistaken_kernels(), mistaken_windows(), mistaken_chunks(), mistaken_sinks(),
        mistaken_softcaps(), mistaken_dropouts(), mistaken_alibi(), mistaken_descale(), mistaken_sequences(),
        mistaken_caches(), mistaken_pages(), mistaken_gradients(), mistaken_backward_passes(), noisy_gradients()})
    all.insert(all.end(), group.begin(), group.end());
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

}  // namespace attest
