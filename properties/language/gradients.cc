#include "properties/language/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/kernel/formal.h"
#include "core/problem/sight.h"
#include "properties/language/not_judged.h"

namespace attest {
namespace {

GradientOptions options_of(const Kernel& kernel) {
  GradientOptions options;
  const auto& claims = kernel.manifest().backward_terms.claims;
  options.ignores_dead_values = std::ranges::find(claims, Claim::ignores_dead_values) != claims.end();
  return options;
}

}  // namespace

BackwardRun run_backward(Kernel& kernel, const Case& c) {
  const Manifest& manifest = kernel.manifest();
  const Case forward = forward_of(c);
  if (manifest.backward_terms.masked_row == MaskedGradient::undeclared && has_fully_masked_row(forward))
    throw NoAnswer{{.outcome = Outcome::skipped,
                    .reason =
                        "has a row without a key; the manifest's backward.masked_row does not say what becomes of "
                        "its gradients"}};
  BackwardRun run{.problem = c, .given = {c[Slot::d_out], {}, {}, {}}, .gradients = {}, .bounds = {}};
  if (GenericInputs::in_use()) {
    run.gradients = kernel.backward(c, {}, c.dtype()).gradients;
    return run;
  }
  Reply reply = answer(kernel, forward, c.dtype(), /*want_lse=*/true);
  run.given.out = std::move(reply.out.tensor()), run.given.lse = std::move(reply.lse.tensor());
  Reply back = kernel.backward(c, {run.given.out, run.given.lse}, c.dtype());
  if (back.status != CallStatus::ok) throw_without_output(manifest, c, back.status, back.message);
  run.gradients = std::move(back.gradients);
  return run;
}

BackwardRun run_backward_with_bounds(Kernel& kernel, const Case& c) {
  BackwardRun run = run_backward(kernel, c);
  if (GenericInputs::in_use()) return run;
  const Case forward = forward_of(c);
  run.bounds = gradient_bounds(forward, run.given, kernel.manifest().arithmetic_for(c),
                               kernel.manifest().backward_arithmetic_for(c), options_of(kernel));
  return run;
}

namespace {

/// Those that `judged` chooses.
std::array<Verdict, gradient_count> verdicts_of(const Kernel& kernel, const BackwardRun& run,
                                                const GradientOptions& options,
                                                const std::function<bool(Gradient)>& judged) {
  const Manifest& manifest = kernel.manifest();
  std::array<Tensor, gradient_count> found;
  for (const Gradient one : every_gradient)
    if (judged(one)) found[static_cast<std::size_t>(one)] = run.of(one).tensor();
  std::array<Verdict, gradient_count> all =
      judge_gradients(forward_of(run.problem), run.given, found, manifest.arithmetic_for(run.problem),
                      manifest.backward_arithmetic_for(run.problem), options);
  // It is no element of an output; the reason says which one it is.
  for (Verdict& one : all) one.element = -1;
  return all;
}

}  // namespace

Verdict judge_backward(const Kernel& kernel, const BackwardRun& run, GradientsAt at) {
  GradientOptions options = options_of(kernel);
  options.at = at;
  auto [of_q, of_k, of_v] = verdicts_of(kernel, run, options, [](Gradient) { return true; });
  return worse_of({worse_of({std::move(of_q), std::move(of_k)}), std::move(of_v)});
}

Verdict judge_gradient(const Kernel& kernel, const BackwardRun& run, Gradient gradient) {
  if (!kernel.manifest().backward_terms.has(gradient))
    return skipped(fmt::format("the manifest's backward.gradients do not list {}", name_of(gradient)));
  GradientOptions options = options_of(kernel);
  options.measure_errors = true;
  return verdicts_of(kernel, run, options,
                     [&](Gradient one) { return one == gradient; })[static_cast<std::size_t>(gradient)];
}

}  // namespace attest
