// backward: what a backward pass makes of the output and the log-sum-exp that it is given, which need not be those of
// its problem.
#include <algorithm>
#include <array>
#include <utility>

#include "core/problem/fields.h"
#include "core/support/infinity.h"
#include "properties/arrangement/arguments.h"
#include "properties/arrangement/within_limits.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

/// Does D_i follow from the output that is given?
void need_delta_of_out(const Kernel& kernel) {
  if (kernel.manifest().backward_terms.delta == DeltaFrom::unstated)
    throw NoAnswer{skipped("the manifest does not say that backward.delta is \"out\"")};
}

// From one lse and one output the gradients of two parts of the keys: those by q add up, and those by keys and values
// are what they are among all.
Verdict split_keys(Kernel& kernel, const Case& c) {
  need_delta_of_out(kernel);
  const auto [one, other] = two_parts(c, keys_of(c), fewest(kernel, {1, 1}).keys);
  const BackwardCall of_all = BackwardRun(kernel, c).answers();
  const auto from_these = [&](const Case& part) { return BackwardRun(kernel, part, of_all); };
  const BackwardRun all = from_these(c), first = from_these(with_keys_alone(kernel, c, one)),
                    second = from_these(with_keys_alone(kernel, c, other));
  return each_gradient(all, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of == Gradient::q)
      return gradients_agree(of, {Numbers(all.of(of)), Numbers(first.of(of)).plus(Numbers(second.of(of)))});
    const auto of_part = [&](const BackwardRun& part, const Indices& keys) {
      return gradients_agree(of, {part.of(of).queries(all_of(std::ssize(keys))), all.of(of).queries(keys)},
                             Match::bound);
    };
    return worse_of({of_part(first, one), of_part(second, other)});
  });
}

// An output that is moved moves D: dQ and dK are those of the moved one, and dV stays as it was.
Verdict dq_dk_need_delta(Kernel& kernel, const Case& c) {
  need_delta_of_out(kernel);
  const BackwardCall own = BackwardRun(kernel, c).answers();
  BackwardCall with_moved = own;
  with_moved.out = mapped(own.out, [](std::int64_t, double old) { return old / 2 + 1; });
  const BackwardRun run(kernel, c, own), moved(kernel, c, with_moved);
  Verdict at_these = moved.judged(GradientsAt::answers);
  // The gradients of the case itself are others.
  if (at_these.outcome == Outcome::violated) at_these.reason = "given o/2 + 1 for its output o: " + at_these.reason;
  if (!run.has(Gradient::v)) return at_these;
  return worse_of({std::move(at_these), gradients_agree(Gradient::v, {moved.of(Gradient::v), run.of(Gradient::v)},
                                                        gradient_bits_if(kernel, {Claim::deterministic}))});
}

// Sinks are in the log-sum-exp, and count for their own gradient alone beside it: with others dQ, dK and dV are the
// same.
Verdict sink_given_lse(Kernel& kernel, const Case& c) {
  need_delta_of_out(kernel);
  if (!kernel.manifest().variants.find(sink_variant.name)->second.lse_has_sink)
    throw NoAnswer{skipped(R"(the manifest's variants.sink.lse is "without")")};
  const BackwardCall own = BackwardRun(kernel, c).answers();
  Case others = c;
  others[Slot::sink] = mapped(c[Slot::sink], [](std::int64_t, double old) { return old == -infinity ? 0 : 1 - old; });
  const BackwardRun run(kernel, c, own), beside(kernel, others, own);
  return each_gradient(run, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    return gradients_agree(of, {beside.of(of), run.of(of)}, gradient_bits_if(kernel, {Claim::deterministic}));
  });
}

constexpr std::array beside_sinks{defining(hypotheses::gradients, "it is about them"),
                                  defining(hypotheses::sink, "the theorem is about sinks")};
constexpr auto key_parts =
    std::to_array<Stated>({defining(hypotheses::gradients, "it is about them"),
                           defining(hypotheses::no_causal_form, "the form counts keys, and a part has fewer"),
                           defining(hypotheses::two_keys, "there are two parts")});

const Property family[] = {
    about_gradients(
        {.name = "backward.split-keys",
         .statement = "from one lse and output, gradients of two parts of the keys: those by Q add up to dQ, and those "
                      "by keys and values are dK and dV",
         .floating_point = "bound",
         .backward = Backward::at_other_answers,
         .hypotheses = key_parts,
         .given = [](Draw& draw) -> Case {
           return draw.attention().masked().at_least(0, 2).with_later_arguments().with_gradients();
         },
         .check = split_keys},
        other_rows),
    about_gradients({.name = "backward.dq-dk-need-delta",
                     .statement =
                         "an output that is moved before it is given: dQ and dK are those of D_i = g_i·o_i with "
                         "it, and dV is the same",
                     .floating_point = "bound; dV bitwise if deterministic",
                     .backward = Backward::at_other_answers,
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = dq_dk_need_delta}),
};

const Property of_sinks[] = {
    about_gradients({.name = "sink.given-lse",
                     .statement = "with other sinks beside the same lse and output dQ, dK and dV are the same",
                     .needs = "attention_backward, sink",
                     .floating_point = "bitwise if deterministic",
                     .variant = "sink",
                     .backward = Backward::at_other_answers,
                     .hypotheses = beside_sinks,
                     .given = [](Draw& draw) -> Case {
                       return draw.attention().with_later_arguments().with_sinks().with_gradients();
                     },
                     .check = sink_given_lse},
                    without_sink_by_lse),
};

}  // namespace

std::span<const Property> backward_answer_properties() {
  return family;
}

std::span<const Property> sink_answer_properties() {
  return of_sinks;
}

}  // namespace attest
