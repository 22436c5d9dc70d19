#include "reports/formats/reproducer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/kernel/limits.h"
#include "core/oracle/gradients/gradients.h"
#include "core/problem/fields.h"
#include "core/support/errors.h"
#include "properties/language/answer.h"
#include "properties/language/compared.h"
#include "properties/language/gradients.h"
#include "reports/formats/reproducer_text.h"
#include "reports/text/text.h"

namespace attest {
namespace {

/// The case as a script writes it: row-major, between no pages of its own, and nothing of where it comes from but
/// whether NaN among the inputs are meant.
Case as_script_has_it(const Case& c) {
  Case plain;
  static_cast<Problem&>(plain) = c;
  plain.provenance.non_finite = c.provenance.non_finite;
  return plain;
}

/// The arithmetic by which the property judges.
Arithmetic arithmetic_of(const Property& property, const Manifest& manifest, const Case& c, DType output) {
  const Arithmetic* const promise = property.name == "attention.promised" ? manifest.promises.find(c) : nullptr;
  Arithmetic arithmetic = promise != nullptr ? *promise : manifest.arithmetic_for(c);
  arithmetic.output = output;
  return arithmetic;
}

/// The first argument of a variant that the case has and scripts do not; empty: none.
std::string_view unknown_argument(const Case& c) {
  std::string_view name;
  for_each_scalar(c.operation, [&]<class Value>(const ScalarField<Value>& field) {
    for (const Variant& known : {window_variant, chunk_variant, softcap_variant, descale_variant})
      if (field.variant == known) return;
    if (field.variant == dropout_variant && c[Slot::keep].present()) return;
    if (!field.is_original() && c.*field.member != field.neutral && name.empty()) name = field.name;
  });
  for (const TensorField& field : tensor_fields)
    if (!field.is_original() && !counts(field.content) && std::ranges::count(script_slots, field.slot) == 0 &&
        c[field.slot].present() && name.empty())
      name = field.name();
  return name;
}

void refuse_too_large(const Case& c, std::string_view option) {
  std::int64_t written = 0, held = 0;
  for (const Tensor& tensor : c.tensors) {
    if (!tensor.present()) continue;
    held += tensor.elements();
    const std::vector<EqualRun> runs = runs_of(tensor);
    written += is_told_by_runs(tensor, runs) ? std::ssize(runs) : tensor.elements();
  }
  const std::int64_t products = multiplications_of(c),
                     most_products = asks_for_gradients(c) ? most_products_of_gradients : most_products_of_script;
  if (written <= most_numbers_in_script && held <= most_numbers_in_memory && products <= most_products) return;
  const bool many = written > most_numbers_in_script || held > most_numbers_in_memory;
  throw UsageError(fmt::format(
      "{}: the case has {} {}, and {} are the most for a script that is read; hand on the case file itself, or a smaller "
      "finding of the run (attest findings RUN)",
      option,
      with_commas(!many                              ? products
                  : written > most_numbers_in_script ? written
                                                     : held),
      many ? "numbers" : "multiplications",
      with_commas(!many                              ? most_products
                  : written > most_numbers_in_script ? most_numbers_in_script
                                                     : most_numbers_in_memory)));
}

/// Puts the elements into `made` that are wrong for certain, of a call that gave an output.
void judge(const Case& c, const Tensor& out, const Arithmetic& arithmetic, const Manifest& manifest, Reproducer& made) {
  std::vector<JudgedElement> wrong;
  const OracleOptions options{.ignores_dead_values = manifest.claims_to(Claim::ignores_dead_values),
                              .element = [&](const JudgedElement& element) {
                                if (element.outcome == Outcome::violated) wrong.push_back(element);
                              }};
  (void)judge_attention(c, out, Tensor(), arithmetic, options);
  if (wrong.empty()) return;
  std::ranges::sort(wrong, {}, &JudgedElement::element);
  made.wrong_in_all = std::ssize(wrong);
  wrong.resize(std::min(wrong.size(), most_wrong_elements));
  const std::vector<ElementFacts> facts = exact_elements(c, arithmetic);
  for (const JudgedElement& element : wrong) {
    Enclosure exact = facts.at(static_cast<std::size_t>(element.element)).exact;
    if (std::isnan(exact.lower) || std::isnan(exact.upper))
      exact = {element.exact - element.certificate, element.exact + element.certificate};
    made.wrong.push_back(
        {.element = element.element, .found = element.found, .exact = exact, .allowed = element.allowed});
  }
}

/// The same of a call that gave none: the first element that has to be a number.
void judge_no_output(const Case& c, const Arithmetic& arithmetic, Reproducer& made) {
  const std::vector<ElementFacts> facts = exact_elements(c, arithmetic);
  const auto first = std::ranges::find_if(facts, &ElementFacts::required);
  if (first == facts.end()) return;
  made.wrong_in_all = std::ssize(facts);
  made.wrong.push_back(
      {.element = first - facts.begin(), .found = std::nullopt, .exact = first->exact, .allowed = first->allowed});
}

bool is_no_answer(CallStatus status) {
  return status == CallStatus::rejected || status == CallStatus::failed || status == CallStatus::died ||
         status == CallStatus::timed_out || status == CallStatus::malformed;
}

Reproducer nothing_wrong(const Case& c, DType output, const Property& property, const Kernel& kernel) {
  const Manifest& manifest = kernel.manifest();
  return {.problem = c,
          .output = output,
          .wrong = {},
          .elements = c.out_shape().elements(),
          .ended = {},
          .kernel = kernel.id(),
          .name = manifest.name,
          .version = manifest.version,
          .property = std::string(property.name),
          .replay = {},
          .comes_and_goes = {}};
}

/// A gradient with an element that is wrong for certain: `first`, or the first of all.
std::optional<Reproducer> tried_backward(const Case& c, const Property& property, Kernel& kernel,
                                         std::optional<Gradient> first) {
  const Manifest& manifest = kernel.manifest();
  std::optional<BackwardRun> run;
  try {
    run.emplace(kernel, c);
  } catch (const NoAnswer&) {
    return std::nullopt;
  }
  const GradientBounds bounds =
      gradient_bounds(forward_of(c), run->given(), manifest.arithmetic_for(c), manifest.backward_arithmetic_for(c));
  auto order = every_gradient;
  if (const auto it = std::ranges::find(order, first); it != order.end()) std::rotate(order.begin(), it, it + 1);
  for (const Gradient of : order) {
    if (!run->has(of)) continue;
    const Values found = run->of(of).run().out();
    Reproducer made = nothing_wrong(c, c.dtype(), property, kernel);
    made.gradient = of, made.elements = found.elements();
    std::optional<GradientEnclosures> exact;
    for (std::int64_t e = 0; e < found.elements(); ++e) {
      const ElementBound& bound = bounds[static_cast<std::size_t>(of)][static_cast<std::size_t>(e)];
      if (bound.excuse != Excuse::none && bound.excuse != Excuse::vacuous) continue;
      const bool off = std::isfinite(found[e])
                           ? std::fabs(found[e] - bound.value) - bound.certificate > bound.allowed * (1 + 0x1p-20)
                           : bound.excuse == Excuse::none;
      if (!off) continue;
      ++made.wrong_in_all;
      if (made.wrong.size() == most_wrong_elements) continue;
      if (!exact) exact = gradient_enclosures(c);
      made.wrong.push_back({.element = e,
                            .found = found[e],
                            .exact = (*exact)[static_cast<std::size_t>(of)].at(static_cast<std::size_t>(e)),
                            .allowed = bound.allowed});
    }
    if (!made.wrong.empty()) return made;
  }
  return std::nullopt;
}

/// The call with each output that the property may judge, until one is wrong.
std::optional<Reproducer> tried(const Case& c, const Property& property, Kernel& kernel) {
  const Manifest& manifest = kernel.manifest();
  std::vector<DType> outputs{c.dtype()};
  if (const auto further = manifest.out_dtypes.find(c.dtype()); further != manifest.out_dtypes.end())
    outputs.insert(outputs.end(), further->second.begin(), further->second.end());
  for (const DType output : outputs) {
    const Reply reply = kernel.run(c, output, asks_lse(kernel.manifest(), c, /*wanted=*/false));
    Reproducer made = nothing_wrong(c, output, property, kernel);
    const Arithmetic arithmetic = arithmetic_of(property, manifest, c, output);
    if (reply.status == CallStatus::ok) {
      judge(c, reply.out.tensor(), arithmetic, manifest, made);
    } else if (is_no_answer(reply.status)) {
      made.ended = ending_text(reply.status, reply.message);
      judge_no_output(c, arithmetic, made);
    }
    if (!made.wrong.empty()) return made;
  }
  return std::nullopt;
}

/// Why a script of one call shows nothing of the finding.
std::string why_not_shown(const Case& c, const Verdict& verdict) {
  if (verdict.violation == Violation::lse) return "the finding is about a log-sum-exp, and scripts compute outputs";
  if (verdict.violation == Violation::bits)
    return "the finding is about bits that differ between two calls, each of which is within its bound";
  if (asks_for_gradients(c)) return "called by itself, the backward pass gives no number that is wrong for certain";
  if (c.provenance.strides || c.provenance.edge)
    return "no element is wrong once the tensors lie row-major, as a script has them";
  if (verdict.compared.size() > 1)
    return "the law compares calls that are too far apart, and each of which is within its bound of the exact answer";
  return "called by itself, no element of the output is farther from the exact answer than it may be";
}

}  // namespace

std::optional<ScriptLanguage> script_language_of(const std::filesystem::path& file) {
  const std::filesystem::path suffix = file.extension();
  if (suffix == ".py") return ScriptLanguage::python;
  if (suffix == ".c" || suffix == ".cc" || suffix == ".cpp") return ScriptLanguage::c;
  return std::nullopt;
}

Reproducer reproducer_of(const Case& c, const Property& property, const Verdict& verdict, Kernel& kernel,
                         std::string_view option) {
  std::vector<Case> calls;
  if (c.operation == Operation::attention) calls.push_back(as_script_has_it(c));
  for (const ComparedElement& side : verdict.compared) {
    if (side.problem->operation != Operation::attention) continue;
    Case call = as_script_has_it(*side.problem);
    if (std::ranges::find(calls, call) == calls.end()) calls.push_back(std::move(call));
  }
  if (calls.empty())
    throw UsageError(fmt::format(
        "{}: {} is about multi-head attention, and scripts are of attention alone; hand on the case file itself",
        option, property.name));
  const std::optional<Gradient> about = verdict.compared.empty() ? std::nullopt : verdict.compared[0].gradient;
  for (const Case& call : calls) {
    if (const std::string_view name = unknown_argument(call); !name.empty())
      throw UsageError(
          fmt::format("{}: the case has the argument {}, which scripts do not know; hand on the case file "
                      "itself",
                      option, name));
    refuse_too_large(call, option);
    const bool backward = asks_for_gradients(call);
    if (std::optional<Reproducer> made =
            backward ? tried_backward(call, property, kernel, about) : tried(call, property, kernel))
      return *std::move(made);
  }
  throw UsageError(fmt::format("{}: {}; hand on the case file itself, or another finding of the run", option,
                               why_not_shown(c, verdict)));
}

std::string script_of(const Reproducer& reproducer, ScriptLanguage language) {
  return language == ScriptLanguage::python ? python_script(reproducer) : c_script(reproducer);
}

}  // namespace attest
