// attention: softmax(QKᵀ/√dk) V.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/oracle/oracle.h"
#include "core/support/printed.h"
#include "properties/catalogue/property.h"
#include "properties/generators/draw.h"
#include "properties/language/answer.h"
#include "properties/language/compared.h"
#include "properties/language/own_precision.h"

namespace attest {
namespace {

bool same_bits(const Tensor& a, const Tensor& b, std::int64_t element) {
  const std::size_t size = size_of(a.dtype()), at = static_cast<std::size_t>(element) * size;
  return std::memcmp(a.bytes().data() + at, b.bytes().data() + at, size) == 0;
}

Arithmetic with_output(Arithmetic arithmetic, DType output) {
  arithmetic.output = output;
  return arithmetic;
}

/// The output, in the input's dtype and in every other that the kernel offers, within the arithmetic's bound of the
/// exact value: a wide output shows what a narrow one hides (accumulation faults, error-bounds.md 3.4 f).
Verdict in_each_output(Kernel& kernel, const Case& c, const Arithmetic& arithmetic, OracleOptions options) {
  const bool measures = options.measure_errors;
  const auto judged = [&](DType output) {
    const Reply reply = answer(kernel, c, output, true);
    options.measure_errors = measures && output == c.dtype();
    return with_element(judge_attention(c, reply.out, reply.lse, with_output(arithmetic, output), options), c,
                        reply.out);
  };
  Verdict worst = judged(c.dtype());
  const auto wider = kernel.manifest().out_dtypes.find(c.dtype());
  if (wider == kernel.manifest().out_dtypes.end()) return worst;
  for (const DType output : wider->second) {
    if (output != c.dtype()) worst = worse_of({std::move(worst), judged(output)});
  }
  return worst;
}

Verdict oracle_as(Kernel& kernel, const Case& c, const Judging& judging) {
  const OracleOptions options{.fully_masked = kernel.manifest().fully_masked_row,
                              .alarm_probability = judging.alarm,
                              .measure_errors = true,
                              .rows = judging.rows_of(c)};
  return and_at_own_precision(in_each_output(kernel, c, kernel.manifest().arithmetic_for(c), options), kernel, c);
}

Verdict oracle(Kernel& kernel, const Case& c) {
  return oracle_as(kernel, c, {});
}

/// By what the kernel's documents say of it: one that declares less, and is right about that, is violated here.
Verdict promised(Kernel& kernel, const Case& c) {
  const Arithmetic* const promise = kernel.manifest().promises.find(c);
  return promise == nullptr ? without_a_promise(c) : in_each_output(kernel, c, *promise, {});
}

/// Every element of a row inside the domain of definition is finite.
Verdict finite(Kernel& kernel, const Case& c) {
  const std::vector<bool> required = finite_required(c, kernel.manifest().arithmetic_for(c));
  const Reply reply = answer(kernel, c);
  const std::int64_t width = c.v().shape()[3];
  bool any = false;
  for (std::size_t row = 0; row < required.size(); ++row) {
    if (!required[row]) continue;
    any = true;
    for (std::int64_t column = 0; column < width; ++column) {
      const std::int64_t element = static_cast<std::int64_t>(row) * width + column;
      if (std::isfinite(reply.out[element])) continue;
      Verdict verdict =
          violated(Violation::not_finite, fmt::format("non-finite: element {} is {}; a finite value is required",
                                                      element, printed(reply.out[element])));
      verdict.element = element;
      return with_element(std::move(verdict), c, reply.out);
    }
  }
  if (any) return {};
  return {.outcome = Outcome::excused, .reason = "no row lies inside the domain of definition"};
}

/// Digits that rounding to a dtype hides, of a kernel on a wide scalar.
Verdict repeatable_at_own_precision(Kernel& kernel, const Case& c) {
  if (!kernel.is_wide()) return {};
  const auto own = [&] { return answer(kernel, c, std::nullopt, /*want_lse=*/false).out; };
  const Values first = own(), second = own();
  if (attest::same_bits(first, second)) return {};
  return violated(Violation::bits,
                  "not-repeatable: beyond the digits of the dtype the output is another the second "
                  "time; the kernel claims to be deterministic");
}

/// The same call twice gives the same bits where the kernel claims it; else both lie within the bound.
Verdict repeatable(Kernel& kernel, const Case& c) {
  const Reply first = answer(kernel, c), second = answer(kernel, c);
  if (kernel.manifest().claims_to(Claim::deterministic)) {
    if (Verdict own = repeatable_at_own_precision(kernel, c); own.outcome == Outcome::violated) return own;
    if (first.out == second.out) return {};
    std::int64_t element = 0;
    while (element + 1 < first.out.elements() && same_bits(first.out, second.out, element)) ++element;
    const double x = first.out[element], y = second.out[element];
    Verdict verdict = violated(
        Violation::bits,
        fmt::format("not-repeatable: element {} is {} at first and {} the second time; the kernel claims to be "
                    "deterministic",
                    element, printed(x),
                    std::isnan(x) && std::isnan(y) ? "of other bits" : fmt::format("{}", printed(y))));
    verdict.element = element;
    verdict.error = std::abs(x - y);
    const auto problem = std::make_shared<const Case>(c);
    verdict.compared = {{problem, element, x}, {problem, element, y}};
    return verdict;
  }
  const Arithmetic& arithmetic = kernel.manifest().arithmetic_for(c);
  return worse_of({with_element(judge_attention(c, first.out, {}, arithmetic), c, first.out),
                   with_element(judge_attention(c, second.out, {}, arithmetic), c, second.out)});
}

/// Where intermediate results overflow and sentinels stop being small.
constexpr Want wants_edges[] = {
    {"scores near the edge of the domain",
     "scores:huge scores:offset scores:below-sentinels scores:underflow-edges scores:bit-classes"},
    {"huge values", "values:huge values:bit-classes"}};
/// Equal scores and small numbers hide most of what the bound is about.
constexpr Want wants_hard_scores[] = {
    {"scores that lie far apart", "scores:gaussian-10 scores:heavy scores:dominant scores:spread"},
    {"subnormal numbers", "bits:subnormal"}};

const Property family[] = {
    {.name = "attention.repeatable",
     .statement = "the same call twice gives the same bits",
     .source = "+",
     .needs = "attention",
     .floating_point = "bitwise if deterministic",
     .operation = Operation::attention,
     .under = "any",
     .given = [](Draw& draw) -> Case { return draw.attention().with_later_arguments(); },
     .check = repeatable},
    {.name = "attention.finite",
     .statement = "inside the domain of definition (error-bounds.md, 2) the output is finite",
     .source = "+",
     .needs = "attention",
     .floating_point = "required",
     .operation = Operation::attention,
     .under = "any",
     .wants = wants_edges,
     .given = [](Draw& draw) -> Case { return draw.attention().near_the_edge().with_later_arguments(); },
     .check = finite},
    {.name = "attention.oracle",
     .statement = "the output lies within its error bound of the exact value; a row that sees no key is what the "
                  "manifest declares of it, where that is NaN or 0",
     .source = "+",
     .needs = "attention",
     .floating_point = "bound; NaN or 0",
     .operation = Operation::attention,
     .under = "any",
     .wants = wants_hard_scores,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_definition)
           .sometimes_of_model_size()
           .with_later_arguments()
           .long_among_the_first();
     },
     .check = oracle,
     .check_as = oracle_as},
    {.name = "attention.promised",
     .statement = "the output lies within the error bound of the arithmetic that the manifest promises",
     .source = "+",
     .needs = "attention, promises",
     .floating_point = "bound of the promise",
     .operation = Operation::attention,
     .under = "any",
     .wants = wants_hard_scores,
     .given = [](Draw& draw) -> Case {
       return draw.attention(period_of_tile_laws).sometimes_of_model_size().with_later_arguments();
     },
     .check = promised},
};

}  // namespace

std::span<const Property> attention_properties() {
  return family;
}

}  // namespace attest
