// backward: what a backward pass makes of the output and the log-sum-exp that it is given, which need not be those of
// its problem.
#include <algorithm>
#include <array>
#include <utility>

#include "properties/arrangement/arguments.h"
#include "properties/arrangement/arrange.h"
#include "properties/families/backward/about_gradients.h"
#include "properties/language/gradients.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

/// Does D_i follow from the output that is given?
void need_delta_of_out(const Kernel& kernel) {
  if (kernel.manifest().backward_terms.delta != DeltaFrom::out)
    throw NoAnswer{skipped("the manifest's backward.delta is not \"out\"")};
}

// From one lse and one output the gradients of two parts of the keys: those by q add up, and those by keys and values
// are what they are among all.
Verdict split_keys(Kernel& kernel, const Case& c) {
  need_delta_of_out(kernel);
  const auto [one, other] = two_parts(c, keys_of(c));
  const BackwardInputs of_all = BackwardRun(kernel, c).given();
  const auto from_these = [&](const Case& part) { return BackwardRun(kernel, part, of_all.out, of_all.lse); };
  const BackwardRun all = from_these(c), first = from_these(with_keys(c, one)),
                    second = from_these(with_keys(c, other));
  return each_gradient(all, {Gradient::q, Gradient::k, Gradient::v}, [&](Gradient of) {
    if (of == Gradient::q)
      return gradients_agree(of, {Numbers(all.of(of)), Numbers(first.of(of)).plus(Numbers(second.of(of)))});
    return worse_of({gradients_agree(of, {first.of(of), all.of(of).queries(one)}, Match::bound),
                     gradients_agree(of, {second.of(of), all.of(of).queries(other)}, Match::bound)});
  });
}

// An output that is moved moves D: dQ and dK are those of the moved one, and dV stays as it was.
Verdict dq_dk_need_delta(Kernel& kernel, const Case& c) {
  need_delta_of_out(kernel);
  const BackwardRun run(kernel, c);
  const BackwardInputs& given = run.given();
  const Tensor moved_out = mapped(given.out, [](std::int64_t, double old) { return old / 2 + 1; });
  const BackwardRun moved(kernel, c, moved_out, given.lse);
  Verdict at_these = moved.judged(GradientsAt::answers);
  if (!run.has(Gradient::v)) return at_these;
  return worse_of({std::move(at_these), gradients_agree(Gradient::v, {moved.of(Gradient::v), run.of(Gradient::v)},
                                                        gradient_bits_if(kernel, {Claim::deterministic}))});
}

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
         .backward = Backward::from_lse,
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
                     .backward = Backward::from_lse,
                     .hypotheses = of_gradients,
                     .given = any_with_gradients,
                     .check = dq_dk_need_delta}),
};

}  // namespace

std::span<const Property> backward_answer_properties() {
  return family;
}

}  // namespace attest
