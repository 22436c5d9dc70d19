#include "properties/proofs/weakened.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/problem/selection.h"
#include "core/support/errors.h"
#include "properties/language/answer.h"
#include "properties/proofs/missing.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

constexpr std::int64_t most_tries = 96;  ///< for a witness
constexpr std::int64_t enough = 24;      ///< judged cases after which a theorem holds all the same

/// The core in enclosures, whose bits claim nothing: two runs are compared by their enclosures alone. Under another
/// name than the core's, so that no law about the core's bits is asked of it.
class InEnclosures final : public RedeclaredKernel {
 public:
  explicit InEnclosures(Kernel& core) : RedeclaredKernel(core, silent(core.manifest())) {}
  [[nodiscard]] const std::string& id() const override { return id_; }

 private:
  static Manifest silent(Manifest manifest) {
    manifest.claims.clear();
    return manifest;
  }
  std::string id_ = "enclosures";
};

std::unique_ptr<Kernel> core_in_enclosures(std::string_view id) {
  const std::vector<KernelEntry> kernels = core_kernels();
  return std::ranges::find(kernels, id, &KernelEntry::id)->make();
}

/// Few rows, keys and columns, so that a witness can be read: dk up to 4, where sqrt(dk) is a whole number again.
Manifest small(Manifest manifest) {
  manifest.max_queries = manifest.max_keys = 3;
  manifest.max_head_dim = 4;
  manifest.max_heads = 2;
  return manifest;
}

/// What the theorem says of the case without the hypothesis. The core itself is asked where the law is about functions
/// that only the core has.
Verdict conclusion(const Property& property, const Stated& stated, Kernel& core, const Case& c) {
  const auto check = stated.conclusion != nullptr ? stated.conclusion : property.check;
  InEnclosures enclosures(core);
  const auto asked = [&](Kernel& kernel) -> Verdict {
    try {
      return check(kernel, c);
    } catch (NoAnswer& none) {
      return std::move(none.verdict);
    } catch (const UsageError& refused) {
      return {.outcome = Outcome::skipped, .reason = refused.what()};
    }
  };
  Verdict verdict = asked(enclosures);
  return verdict.outcome == Outcome::skipped ? asked(core) : verdict;
}

/// Enclosures apart, by more than any rounding of a double in how the other side was arranged could make of numbers of
/// this size. An infinite error is NaN on one side, and bits are none of the theorem's.
bool is_apart(const Verdict& verdict) {
  return verdict.outcome == Outcome::violated && verdict.violation == Violation::bound &&
         std::isfinite(verdict.error) && verdict.error > 0x1p-20;
}

/// Empty where the case misses the hypothesis and no other, or else what is wrong.
std::string not_exactly_missing(const Property& property, const Stated& stated, const Case& c) {
  for (const Stated& other : property.hypotheses) {
    if (other.hypothesis->misses == nullptr) continue;
    std::string missed = other.hypothesis->misses(c);
    if (other.hypothesis == stated.hypothesis && missed.empty())
      return fmt::format("meets {}", stated.hypothesis->name);
    if (other.hypothesis != stated.hypothesis && !missed.empty()) return missed;
  }
  return {};
}

bool meets_all(const Property& property, const Case& c) {
  return property.misses(c).empty();
}

/// Case n of the search: drawn, made small, changed so that it misses the hypothesis where it is dropped, and filled
/// with whole numbers. Nothing where that misses anything else, or is no valid case.
std::optional<Case> tried(const Property& property, const Stated& stated, const Manifest& manifest, std::int64_t n,
                          bool dropped) {
  Case c = project(generate(property, DType::f64, /*run_seed=*/1, n), manifest);
  const Extents e = extents_of(c);
  if (e.queries == 0 || e.keys == 0) return std::nullopt;
  Selection first = everything(c);
  first.batch = {0};
  c = select(c, first);
  c.provenance.strides.reset();
  c.provenance.kinds.reset();
  const bool arranged = stated.hypothesis->misses == nullptr;
  if (dropped && !arranged) c = missing(*stated.hypothesis, c, static_cast<std::uint64_t>(n));
  c = with_whole_numbers(std::move(c), static_cast<std::uint64_t>(n));
  const bool meant = dropped ? not_exactly_missing(property, stated, c).empty() : meets_all(property, c);
  if (!meant) return std::nullopt;
  try {
    validate(c);
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return c;
}

std::string shape_in_words(const Case& c) {
  const Extents e = extents_of(c);
  std::string words = fmt::format("M = {}, N = {}, dk = {}, dv = {}", e.queries, e.keys, e.dk, e.dv);
  if (e.heads > 1) words += fmt::format(", {} heads", e.heads);
  if (c.causal != Causal::none) words += fmt::format(", causal {}", name_of(c.causal));
  if (c.mask().present())
    words += c.mask().dtype() == DType::boolean ? ", a boolean mask"
                                                : fmt::format(", a mask added {}", name_of(c.mask_convention));
  return words;
}

/// Searches; a witness ends it, and so do enough judged cases where none is expected.
Weakened search(const Property& property, const Stated& stated, bool dropped) {
  Weakened result{.property = &property, .stated = &stated, .witness = {}, .words = {}};
  const std::unique_ptr<Kernel> core = core_in_enclosures(certifying_core);
  const Manifest manifest = small(core->manifest());
  const bool expected = dropped && stated.need == Need::needed;
  for (std::int64_t n = 0; n < most_tries && (expected || result.cases < enough); ++n) {
    std::optional<Case> c = tried(property, stated, manifest, n, dropped);
    if (!c) continue;
    const Verdict verdict =
        dropped ? conclusion(property, stated, *core, *c)
                : conclusion(property, {.hypothesis = stated.hypothesis, .need = stated.need, .why = stated.why}, *core,
                             *c);
    if (verdict.outcome == Outcome::held || verdict.outcome == Outcome::violated) ++result.cases;
    if (!is_apart(verdict)) continue;
    c->provenance.without = stated.hypothesis->name;
    c->provenance.kernel = core->id();
    result.words = fmt::format("{}: {}", shape_in_words(*c), verdict.reason);
    result.witness = std::move(c);
    return result;
  }
  return result;
}

}  // namespace

const Stated* stated_by(const Property& property, const Hypothesis& hypothesis) {
  const auto found = std::ranges::find(property.hypotheses, &hypothesis, &Stated::hypothesis);
  return found == property.hypotheses.end() ? nullptr : &*found;
}

Weakened without_hypothesis(const Property& property, const Stated& stated) {
  if (stated.need == Need::defining) {
    return {.property = &property, .stated = &stated, .witness = {}, .words = std::string(stated.why)};
  }
  Weakened result = search(property, stated, /*dropped=*/true);
  if (result.witness) {
    result.outcome = stated.need == Need::needed ? Without::refuted : Without::unexpected;
  } else if (stated.need == Need::spare && result.cases > 0) {
    result.outcome = Without::not_needed;
    result.words = fmt::format("{}; held in {} cases that miss it", stated.why, result.cases);
  } else {
    result.outcome = Without::unexpected;
    result.words = fmt::format("no witness among {} cases that miss it", result.cases);
  }
  return result;
}

Weakened with_hypothesis(const Property& property, const Stated& stated) {
  return search(property, stated, /*dropped=*/false);
}

Verdict replay_witness(const Case& c, std::string_view core_id) {
  const std::string name = c.provenance.property.value_or(""), without = c.provenance.without.value_or("");
  const auto property = std::ranges::find(catalogue(), name, [](const Property* p) { return p->name; });
  const Hypothesis* const hypothesis = hypothesis_named(without);
  const Stated* const stated =
      property == catalogue().end() || hypothesis == nullptr ? nullptr : stated_by(**property, *hypothesis);
  if (stated == nullptr)
    throw UsageError(fmt::format("the case is a witness against {} without {}, which this program does not know",
                                 name.empty() ? "no property" : name, without.empty() ? "no hypothesis" : without));
  if (c.operation != (*property)->operation)
    throw UsageError(fmt::format("the case is one of {}; {} is about {}", name_of(c.operation), name,
                                 name_of((*property)->operation)));
  if (std::string wrong = not_exactly_missing(**property, *stated, c); !wrong.empty())
    throw UsageError(fmt::format("no witness against {} without {}: the case {}", name, without, wrong));
  const std::unique_ptr<Kernel> core = core_in_enclosures(core_id);
  Verdict verdict = conclusion(**property, *stated, *core, c);
  if (verdict.outcome == Outcome::violated && !is_apart(verdict)) verdict.outcome = Outcome::inconclusive;
  return verdict;
}

}  // namespace attest
