#include "properties/diagnosis/explain.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/arithmetic/changes.h"
#include "properties/diagnosis/arithmetic/probe_denominator.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

Manifest redeclared(Manifest manifest, DType dtype, const Declaration& declaration) {
  manifest.arithmetic.usual[dtype] = declaration.forward;
  manifest.arithmetic.paths.erase(dtype);
  if (declaration.backward) manifest.arithmetic.backward[dtype] = *declaration.backward;
  return manifest;
}

BackwardArithmetic backward_of(const Declaration& declaration) {
  return declaration.backward.value_or(universal_backward_arithmetic(declaration.forward));
}

/// What the two differ in that is stated with a variant, as JSON of "variants"; empty: nothing.
std::string difference_of_variants(const Arithmetic& declared, const Arithmetic& changed) {
  nlohmann::ordered_json difference;
  const auto state = [&](const Variant& variant, const char* key, std::string_view word) {
    difference[std::string(variant.name)][key] = word;
  };
  if (changed.dropout != declared.dropout) state(dropout_variant, "applied", name_of(changed.dropout));
  if (changed.slopes != declared.slopes) state(alibi_variant, "form", name_of(changed.slopes));
  if (changed.descale != declared.descale) state(descale_variant, "applied", name_of(changed.descale));
  return difference.is_null() ? std::string() : difference.dump();
}

bool is_right(Kernel& kernel, const Case& c) {
  if (!why_unsupported(kernel.manifest(), c).empty()) return false;
  const Reply reply = kernel.run(c);
  return reply.status == CallStatus::ok &&
         judge_attention(c, reply.out, Tensor(), kernel.manifest().arithmetic_for(c)).outcome == Outcome::held;
}
/// Does the kernel answer the case right without the variant? Of a case that has it.
bool is_right_without(Kernel& kernel, const Case& c, std::string_view variant) {
  Case plain = c;
  drop_variant(plain, variant);
  return is_right(kernel, plain);
}
/// Or with powers of two in the place of its factors, by which every format multiplies exactly? Keys that are whole
/// numbers are none without factors.
bool is_right_by_powers(Kernel& kernel, const Case& c) {
  Case exact = c;
  for (const Slot slot : {Slot::q_descale, Slot::k_descale, Slot::v_descale})
    if (c[slot].present())
      exact[slot] =
          mapped(c[slot], [](std::int64_t, double factor) { return std::exp2(std::round(std::log2(factor))); });
  return is_right(kernel, exact);
}

/// The keys of "arithmetic" in which the two differ, as JSON; of its "backward" those in which what is assumed differs.
std::string difference(const Manifest& manifest, DType dtype, Declaration declared, Declaration changed) {
  using json = nlohmann::ordered_json;
  if (changed.backward) declared.backward = backward_of(declared);
  const auto keys_of = [&](const Declaration& one) {
    return json::parse(to_json(redeclared(manifest, dtype, one)))["arithmetic"][std::string(name_of(dtype))];
  };
  const auto differing = [](const json& before, const json& after) {
    json difference = json::object();
    for (const auto& [key, value] : after.items())
      if (!before.contains(key) || before[key] != value) difference[key] = value;
    return difference;
  };
  const json before = keys_of(declared), after = keys_of(changed);
  json difference = differing(before, after);
  constexpr const char* backward = "backward";
  if (difference.contains(backward) && before.contains(backward))
    difference[backward] = differing(before[backward], after[backward]);
  return difference.dump();
}

/// Explanation::coarser.
double coarser_by(const BackwardArithmetic& declared, const BackwardArithmetic& changed) {
  const auto unit = [](DType format) { return format_of(format).unit; };
  // What is stored beside the sums is rounded once more where it is coarser than they are.
  const auto kept = [&](const BackwardArithmetic& a, DType format) { return std::max(unit(format), unit(a.dot)); };
  const auto added = [&](const BackwardArithmetic& a, std::optional<DType> format) {
    return std::max(unit(format.value_or(a.accumulate)), unit(a.accumulate));
  };
  double most = std::max(unit(changed.dot) / unit(declared.dot), unit(changed.accumulate) / unit(declared.accumulate));
  for (const auto place :
       {&BackwardArithmetic::weights, &BackwardArithmetic::of_weights, &BackwardArithmetic::of_scores})
    most = std::max(most, kept(changed, changed.*place) / kept(declared, declared.*place));
  for (const auto place : {&BackwardArithmetic::group_partials, &BackwardArithmetic::sink_terms})
    most = std::max(most, added(changed, changed.*place) / added(declared, declared.*place));
  return most;
}
double coarser_by(const Arithmetic& declared, const Arithmetic& changed) {
  constexpr double unstated_exp = 4;
  const auto unit = [](DType format) { return format_of(format).unit; };
  double most = std::max(unit(changed.score_sums) / unit(declared.score_sums),
                         unit(changed.accumulate) / unit(declared.accumulate));
  // What is kept beside the sums is rounded once more where it is coarser than they are.
  const auto kept = [&](const Arithmetic& a, std::optional<DType> format) {
    return format ? std::max(unit(*format), unit(a.score_sums)) : unit(a.score_sums);
  };
  for (const auto place : {&Arithmetic::stored_raw, &Arithmetic::stored_scaled, &Arithmetic::stored_capped,
                           &Arithmetic::stored_biased, &Arithmetic::prescaled_q, &Arithmetic::mask_format})
    most = std::max(most, kept(changed, changed.*place) / kept(declared, declared.*place));
  most = std::max(most, kept(changed, changed.weights) / kept(declared, declared.weights));
  const auto exp_ulp = [](const Arithmetic& a) { return a.exp_ulp > 0 ? a.exp_ulp : unstated_exp; };
  if (!(changed.tanh == declared.tanh)) most = std::max(most, allowed_of_tanh(changed) / allowed_of_tanh(declared));
  return std::max(most, exp_ulp(changed) / exp_ulp(declared));
}

/// The most that an answer moves by where every number of the case below the smallest normal one becomes 0, a few
/// times over; 0 where that is not known.
double moved_by_flushing(const Case& c, const Arithmetic& a) {
  if (c.operation != Operation::attention) return 0;
  double least = 0, largest = 1;
  for (const DType format : {a.input, a.score_sums, a.weights, a.accumulate, a.output})
    least = std::max(least, format_of(format).min_normal);
  for (std::int64_t e = 0; e < c.v().elements(); ++e) largest = std::max(largest, std::abs(c.v()[e]));
  return 4 * static_cast<double>(c.k().shape()[2]) * least * largest;
}

class Search {
 public:
  Search(Kernel& kernel, DType dtype, std::span<const BeyondBound> cases)
      : kernel_(kernel), dtype_(dtype), declared_{.forward = kernel.manifest().arithmetic_for(cases.front().value)} {
    const auto& backward = kernel.manifest().arithmetic.backward;
    if (const auto stated = backward.find(dtype); stated != backward.end()) declared_.backward = stated->second;
    for (const BeyondBound& one : cases) {
      // Of a kernel with several paths those of one are explained.
      if (!(kernel.manifest().arithmetic_for(one.value) == declared())) continue;
      const Verdict verdict = check_case(*one.property, kernel, one.value);
      if (verdict.violation == Violation::bound)
        cases_.push_back({&one, verdict.error <= moved_by_flushing(one.value, declared())});
    }
  }
  [[nodiscard]] bool pointless() const { return cases_.empty(); }
  [[nodiscard]] const Arithmetic& declared() const { return declared_.forward; }
  [[nodiscard]] BackwardArithmetic declared_backward() const { return backward_of(declared_); }
  /// Whether every case is about gradients.
  [[nodiscard]] bool is_of_gradients() const {
    return std::ranges::all_of(cases_,
                               [](const Wrong& one) { return one.found->property->backward != Backward::none; });
  }
  /// Whether it is dropout that is wrong, and no number on the way to a weight or a sum of them: every case divides
  /// what it keeps, and is right without.
  [[nodiscard]] bool is_of_dropout() {
    return std::ranges::all_of(cases_, [&](const Wrong& one) {
      const Case& c = one.found->value;
      return c[Slot::keep].present() && c.dropout_p > 0 && is_right_without(kernel_, c, dropout_variant.name);
    });
  }
  /// Whether it is slopes that are wrong: every case has some, and is right without.
  [[nodiscard]] bool is_of_slopes() {
    return std::ranges::all_of(cases_, [&](const Wrong& one) {
      const Case& c = one.found->value;
      return c[Slot::alibi_slopes].present() && is_right_without(kernel_, c, alibi_variant.name);
    });
  }

  /// Whether it is factors that are wrong: every case has some, and is right by those that nobody rounds.
  [[nodiscard]] bool is_of_factors() {
    return std::ranges::all_of(cases_, [&](const Wrong& one) {
      const Case& c = one.found->value;
      return has_variant(c, descale_variant.name) && is_right_by_powers(kernel_, c);
    });
  }

  /// Without those changes that say of the denominator what the kernel's own answers refute.
  [[nodiscard]] std::vector<Change> unrefuted(std::vector<Change> changes) {
    std::erase_if(changes, [&](const Change& change) {
      if (!change.sums_rounded) return false;
      Declaration changed = declared_;
      change.apply(changed);
      RedeclaredKernel kernel(kernel_, redeclared(kernel_.manifest(), dtype_, changed));
      return !denominator_of(kernel, dtype_).may_be_rounded;
    });
    return changes;
  }

  /// Those under which every case holds, the one that leaves the least room first; of several that leave the same, in
  /// the order given. Of a place only the first format that does.
  std::vector<Explanation> sufficient(const std::vector<Change>& changes) {
    std::vector<Explanation> found;
    std::set<std::string_view> places;
    for (const Change& change : changes) {
      Declaration changed = declared_;
      change.apply(changed);
      Explanation explanation{
          .words = change.words, .declaration = {}, .one_place = !change.place.empty(), .stage = change.stage};
      if (places.contains(change.place) || !holds_under(changed, explanation)) continue;
      if (explanation.one_place) places.insert(change.place);
      explanation.declaration = difference(kernel_.manifest(), dtype_, declared_, changed);
      explanation.variants = difference_of_variants(declared(), changed.forward);
      explanation.coarser =
          std::max(coarser_by(declared(), changed.forward), coarser_by(backward_of(declared_), backward_of(changed)));
      const auto place =
          std::ranges::upper_bound(found, explanation.utilisation, std::ranges::greater(), &Explanation::utilisation);
      found.insert(place, std::move(explanation));
    }
    return found;
  }

 private:
  /// Whether it does, and then its utilisation and excused cases.
  bool holds_under(const Declaration& declaration, Explanation& explanation) {
    RedeclaredKernel kernel(kernel_, redeclared(kernel_.manifest(), dtype_, declaration));
    const bool flushes = declaration.forward.flushes_subnormals && !declared().flushes_subnormals;
    for (Wrong& one : cases_) {
      const Verdict verdict = check_case(*one.found->property, kernel, one.found->value);
      if (verdict.outcome == Outcome::excused) {
        // Shrinking leaves numbers of which a flush leaves nothing: then the bound is as wide as they are.
        ++(flushes && one.is_tiny ? explanation.flushed : explanation.excused);
      } else if (verdict.outcome == Outcome::held) {
        explanation.utilisation = std::max(explanation.utilisation, verdict.utilisation);
      } else {
        std::swap(one, cases_.front());  // what refutes one change will refute the next
        return false;
      }
    }
    return 2 * explanation.excused < cases_.size();
  }

  struct Wrong {
    const BeyondBound* found;
    bool is_tiny;  ///< the error is one that flushing makes
  };

  Kernel& kernel_;
  DType dtype_;
  Declaration declared_;
  std::vector<Wrong> cases_;
};

}  // namespace

std::vector<Explanation> explain(Kernel& kernel, std::span<const BeyondBound> cases) {
  Search search(kernel, cases.front().value.dtype(), cases);
  if (search.pointless()) return {};
  const std::vector<Change> rearranged = search.unrefuted(rearrangements(search.declared()));
  if (search.is_of_gradients()) {
    // The forward pass holds, so it is first asked what the backward pass alone would have to declare. In 16 bits a
    // flush allows so much more than a format that both are asked.
    std::vector<Change> changes = backward_rearrangements(search.declared_backward());
    std::ranges::move(backward_narrowings(search.declared_backward()), std::back_inserter(changes));
    std::ranges::copy(rearranged, std::back_inserter(changes));
    if (std::vector<Explanation> found = search.sufficient(changes); !found.empty()) return found;
  } else {
    // A 1/(1 - p) that is rounded looks as weights of a narrower format do, which would say of cases without dropout
    // what they refute.
    if (search.is_of_dropout()) return search.sufficient(places_of_dropout(search.declared()));
    // What slope·j is rounded by looks as scores of a narrower format do.
    if (search.is_of_slopes()) return search.sufficient(forms_of_slopes(search.declared()));
    // Products with factors that are rounded look as scores or weights of a narrower format do.
    if (search.is_of_factors()) return search.sufficient(places_of_factors(search.declared()));
  }
  const bool capped = std::ranges::any_of(cases, [](const BeyondBound& one) { return one.value.softcap > 0; });
  const std::vector<Change> narrower = search.unrefuted(narrowings(search.declared(), capped));
  // A coarse tanh looks as capped scores of a narrower format do.
  std::vector<Change> one_coarser = narrower;
  if (capped) std::ranges::move(inaccurate_tanhs(search.declared()), std::back_inserter(one_coarser));
  for (const std::vector<Change>& changes : {rearranged, one_coarser}) {
    if (std::vector<Explanation> found = search.sufficient(changes); !found.empty()) return found;
  }
  if (std::vector<Explanation> found = search.sufficient(inaccurate_exps(search.declared())); !found.empty()) {
    found.resize(1);
    return found;
  }
  if (std::vector<Explanation> found = search.sufficient(pairs_of(narrower)); !found.empty()) return found;
  const Change open = all_of(rearranged);
  for (const std::vector<Change>& changes : {each_with(open, narrower), each_with(open, pairs_of(narrower)),
                                             each_with(open, everything_narrower(search.declared(), capped))}) {
    if (std::vector<Explanation> found = search.sufficient(changes); !found.empty()) return found;
  }
  return {};
}

}  // namespace attest
