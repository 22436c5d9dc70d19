#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <ranges>

#include "core/problem/fields.h"
#include "core/scalars/precision.h"
#include "properties/catalogue/property.h"
#include "properties/language/answer.h"
#include "properties/language/skip_reasons.h"
#include "properties/road/case_budget.h"

namespace attest {
namespace {

/// Is it one of the words of the list, between which a space stands?
bool has_word(std::string_view list, std::string_view word) {
  for (const auto part : std::views::split(list, ' '))
    if (std::string_view(part.begin(), part.end()) == word) return true;
  return false;
}

}  // namespace

bool Property::holds_under(std::string_view word) const {
  return under == "any" || has_word(variant, word) || has_word(under, word);
}

std::string Property::misses(const Case& c) const {
  for (const Variant& of_case : variants_of(c))
    if (!holds_under(of_case.name))
      return fmt::format("has the variant {}; the theorem does not speak of it", of_case.name);
  if (c[Slot::d_lse].present() && !holds_under(by_lse))
    return "has a gradient by the log-sum-exp; the theorem does not speak of it";
  for (const Stated& stated : hypotheses) {
    if (stated.hypothesis->misses == nullptr) continue;
    if (std::string why = stated.hypothesis->misses(c); !why.empty()) return why;
  }
  return {};
}

std::string Property::misses_of(const Manifest& manifest) const {
  if (!manifest.has(operation)) return no_entry(operation);
  const bool listed = variant.empty() || std::ranges::any_of(manifest.variants, [&](const auto& has) {
                        return has_word(variant, has.first);
                      });
  if (!listed) return no_variant(variant);
  if (backward == Backward::none) return {};
  if (!manifest.backward) return std::string(why_no_backward);
  if (backward == Backward::of_lse && !manifest.backward_terms.d_lse) return std::string(why_no_gradient_by_lse);
  const BackwardTerms& terms = manifest.backward_terms;
  const bool at_others = backward == Backward::at_other_answers;
  if (!at_others && backward != Backward::from_lse) return {};
  if (terms.weights != WeightsFrom::lse) return std::string(why_not_from_lse);
  if (at_others && terms.delta == DeltaFrom::weights) return std::string(why_delta_of_weights);
  // What it makes again may be another answer, of which it can tell where it is given both alone.
  if (terms.own_forward && (at_others || !terms.uses_out || !terms.uses_lse)) return std::string(why_own_forward);
  return {};
}

Verdict check_case(const Property& property, Kernel& kernel, const Case& c, const Judging& judging) {
  if (c.operation != property.operation) {
    return {.outcome = Outcome::skipped,
            .reason = fmt::format("is a case of {}; {} needs one of {}", name_of(c.operation), property.name,
                                  name_of(property.operation))};
  }
  if (std::string why = property.misses_of(kernel.manifest());
      (!property.variant.empty() || property.backward != Backward::none) && !why.empty())
    return {.outcome = Outcome::skipped, .reason = std::move(why)};
  if (const auto& over = c.provenance.over_budget) return {.outcome = Outcome::skipped, .reason = *over};
  if (std::string why = why_unsupported(kernel.manifest(), c); !why.empty()) {
    return {.outcome = Outcome::skipped, .reason = std::move(why)};
  }
  if (std::string why = property.misses(c); !why.empty())
    return {.outcome = Outcome::skipped, .reason = std::move(why)};
  // What a law computes beside the kernel, and the core's own functions, have the kernel's precision.
  const AskedPrecision asked(std::max(kernel.digits(), run_time_digits));
  try {
    return property.check_as != nullptr ? property.check_as(kernel, c, judging) : property.check(kernel, c);
  } catch (NoAnswer& none) {
    return std::move(none.verdict);
  } catch (const std::bad_alloc&) {
    return {.outcome = Outcome::inconclusive, .reason = std::string(out_of_memory)};
  }
}

}  // namespace attest
