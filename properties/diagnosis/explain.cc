#include "properties/diagnosis/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/oracle/oracle.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "properties/arrangement/arrange.h"
#include "properties/diagnosis/arithmetic/probe_denominator.h"
#include "properties/road/redeclared_kernel.h"

namespace attest {
namespace {

Manifest with_arithmetic(Manifest manifest, DType dtype, const Arithmetic& arithmetic) {
  manifest.arithmetic.usual[dtype] = arithmetic;
  manifest.arithmetic.paths.erase(dtype);
  return manifest;
}

/// One change that loosens what is declared.
struct Change {
  std::string words;
  std::function<void(Arithmetic&)> apply;
  std::string_view place = {};  ///< of a narrower format: what is kept in it
  bool sums_rounded = false;    ///< the denominator is said to sum rounded weights
  std::optional<Stage> stage = {};
};

bool narrower(DType a, DType b) {
  return format_of(a).unit > format_of(b).unit;
}

/// The same operations in another order or form.
std::vector<Change> rearrangements(const Arithmetic& declared) {
  std::vector<Change> changes{
      {"exponentials in base 2, log2 e folded into the scale", [](Arithmetic& a) { a.base2 = a.folded_exp2 = true; }},
      {"results below the smallest normal number flushed to 0", [](Arithmetic& a) { a.flushes_subnormals = true; }},
      {"subnormal inputs read as 0, and results flushed",
       [](Arithmetic& a) { a.flushes_subnormals = a.flushes_inputs = true; }},
      {"the mask as the initial value of the sum q.k", [](Arithmetic& a) { a.bias_in_sum = true; }},
      {"parts merged through their log-sum-exp", [](Arithmetic& a) { a.split_merge = true; }},
      {"weights divided by their sum before they multiply V", [](Arithmetic& a) { a.normalise_first = true; }},
      {"a normalisation of three roundings", [](Arithmetic& a) { a.division_roundings = 3; }},
      {"rounded weights in the denominator", [](Arithmetic& a) { a.weights_in_denominator = true; }, {}, true},
      {"sums that round toward zero", [](Arithmetic& a) { a.rounding = Rounding::toward_zero; }},
      {"sums over keys in any order",
       [](Arithmetic& a) {
         a.summation_depth.reset();
         a.blocked_sums.reset();
       }},
      {"a rescaling by a new maximum at every key", [](Arithmetic& a) { a.block = 1; }},
      {"scores from which no maximum is taken", [](Arithmetic& a) { a.max = MaxPolicy::none; }}};
  for (const double nats : {1.0, 8.0, 16.0})
    changes.push_back({fmt::format("a maximum that may lag behind by {} nats", nats), [nats](Arithmetic& a) {
                         a.max = MaxPolicy::lazy;
                         a.lazy_nats = nats;
                       }});
  std::erase_if(changes, [&](const Change& change) {
    Arithmetic changed = declared;
    change.apply(changed);
    return changed == declared;
  });
  return changes;
}

/// One format narrower than it is declared. `capped`: a case has a softcap.
std::vector<Change> narrowings(const Arithmetic& declared, bool capped) {
  struct Place {
    std::string_view words;
    std::optional<DType> now;  ///< nothing: as wide as what it holds
    std::function<void(Arithmetic&, DType)> set;
    std::optional<Stage> stage;
  };
  const Arithmetic& d = declared;
  const Place places[] = {
      {"weights rounded to {} before they multiply V", d.weights, [](Arithmetic& a, DType f) { a.weights = f; },
       Stage::weights},
      {"weights rounded to {}, and summed so", d.weights_in_denominator ? std::optional(d.weights) : std::nullopt,
       [](Arithmetic& a, DType f) {
         a.weights = f;
         a.weights_in_denominator = true;
       },
       Stage::weights},
      {"scores stored in {} after scale and mask", d.stored_biased, [](Arithmetic& a, DType f) { a.stored_biased = f; },
       Stage::scores},
      {"scores stored in {} after the scale", d.stored_scaled, [](Arithmetic& a, DType f) { a.stored_scaled = f; },
       Stage::scores},
      {"capped scores stored in {}, or their tanh", d.stored_capped,
       [](Arithmetic& a, DType f) { a.stored_capped = f; }, Stage::scores},
      {"q.k stored in {}", d.stored_raw, [](Arithmetic& a, DType f) { a.stored_raw = f; }, Stage::scores},
      {"q times scale rounded to {}", d.prescaled_q, [](Arithmetic& a, DType f) { a.prescaled_q = f; }, Stage::scores},
      {"the mask converted to {}", d.mask_format, [](Arithmetic& a, DType f) { a.mask_format = f; }, Stage::scores},
      {"sums q.k, scores and exp in {}", d.score_sums, [](Arithmetic& a, DType f) { a.score_sums = f; }, Stage::scores},
      {"sums of weights and of weights times values in {}", d.accumulate,
       [](Arithmetic& a, DType f) { a.accumulate = f; }, Stage::sums},
      {"all sums, scores and exp in {}", narrower(d.score_sums, d.accumulate) ? d.accumulate : d.score_sums,
       [](Arithmetic& a, DType f) { a.score_sums = a.accumulate = f; }, std::nullopt}};
  std::vector<Change> changes;
  for (const Place& place : places) {
    if (place.words.starts_with("capped") && !capped) continue;
    for (const DType format : {DType::f32, DType::f16, DType::bf16}) {
      // Double precision beside 16-bit formats is nobody's kernel.
      if (d.input == DType::f64 && format != DType::f32) continue;
      const DType now = place.now.value_or(DType::f64);
      const bool rounds_q = place.words.starts_with("q times") && !place.now;  // in the format of the sums too
      if (!narrower(format, now) && !(rounds_q && format == d.score_sums)) continue;
      changes.push_back({fmt::format(fmt::runtime(place.words), name_of(format)),
                         [set = place.set, format](Arithmetic& a) { set(a, format); }, place.words,
                         place.words.ends_with("and summed so"), place.stage});
    }
  }
  return changes;
}

/// Every number that is kept, in one format.
std::vector<Change> everything_narrower(const Arithmetic& declared, bool capped) {
  std::vector<Change> changes;
  for (const DType format : {DType::f32, DType::f16, DType::bf16}) {
    if (declared.input == DType::f64 && format != DType::f32) continue;
    changes.push_back({fmt::format("every step in {}", name_of(format)), [format, capped](Arithmetic& a) {
                         a.score_sums = a.accumulate = a.weights = format;
                         a.weights_in_denominator = true;
                         a.stored_raw = a.stored_scaled = a.stored_biased = a.prescaled_q = a.mask_format = format;
                         if (capped) a.stored_capped = format;
                       }});
  }
  return changes;
}

/// An exp of 2^n units in the last place, the most accurate first.
std::vector<Change> inaccurate_exps(const Arithmetic& declared) {
  std::vector<Change> changes;
  // 4 units are what is assumed where nothing is stated; approximations by a short polynomial or a table reach 2^-11.
  const double unit = format_of(declared.score_sums).unit;
  for (double ulp = 4; ulp * unit <= std::max(0x1p-11, 16 * unit); ulp *= 2) {
    if (ulp <= declared.exp_ulp) continue;
    changes.push_back({fmt::format("an exp that errs by {} ulp of {}", ulp, name_of(declared.score_sums)),
                       [ulp](Arithmetic& a) { a.exp_ulp = ulp; }});
  }
  return changes;
}

/// What tanh may err by relative to its result, or absolutely where only that is stated.
double allowed_of_tanh(const Arithmetic& a) {
  const double unit = format_of(a.score_sums).unit;
  switch (a.tanh.measure) {
    case TanhMeasure::ulp:
      return 2 * a.tanh.value * unit;
    case TanhMeasure::relative:
    case TanhMeasure::absolute:
      return a.tanh.value;
    case TanhMeasure::unstated:
      break;
  }
  return 4 * unit;
}

/// A tanh of so many bits, the most accurate first.
std::vector<Change> inaccurate_tanhs(const Arithmetic& declared) {
  std::vector<Change> changes;
  // tanh.approx of an NVIDIA GPU may err by 2^-11 of its result, that of bf16 by 2^-8 (PTX ISA, tanh); the former was
  // seen to err by 2^-16 (Juffa 2021, "Hardware-accelerated tanh() on Turing").
  for (int bits = 23; bits >= 8; --bits) {
    const double error = std::ldexp(1.0, -bits);
    if (error <= allowed_of_tanh(declared)) continue;
    changes.push_back({fmt::format("a tanh that errs by 2^-{} of its result", bits),
                       [error](Arithmetic& a) { a.tanh = {TanhMeasure::relative, error}; }, "tanh", false,
                       Stage::scores});
  }
  return changes;
}

/// Other places where what is kept is divided by 1 - p.
std::vector<Change> places_of_dropout(const Arithmetic& declared) {
  struct Place {
    DropoutPlace place;
    std::string_view words;
  };
  constexpr Place places[] = {{DropoutPlace::output, "an output that is divided by 1 - p"},
                              {DropoutPlace::weights, "weights that are divided by 1 - p before they are rounded"},
                              {DropoutPlace::values, "values that are divided by 1 - p in their own format"}};
  std::vector<Change> changes;
  for (const auto& [place, words] : places) {
    if (place == declared.dropout) continue;
    changes.push_back({fmt::format("{} (\"applied\": \"{}\" of dropout)", words, name_of(place)),
                       [place](Arithmetic& a) { a.dropout = place; }});
  }
  return changes;
}

/// Other forms of what a slope adds under a causal form.
std::vector<Change> forms_of_slopes(const Arithmetic& declared) {
  struct Form {
    SlopeForm form;
    std::string_view words;
  };
  constexpr Form forms[] = {
      {SlopeForm::distance, "-slope·|p - j| added to scores"},
      {SlopeForm::column, "slope·j added to scores under a causal form"},
      {SlopeForm::column_divided, "slope·j added under a causal form, divided by what the sum is multiplied by"}};
  std::vector<Change> changes;
  for (const auto& [form, words] : forms) {
    if (form == declared.slopes) continue;
    changes.push_back({fmt::format("{} (\"form\": \"{}\" of alibi)", words, name_of(form)),
                       [form](Arithmetic& a) { a.slopes = form; }});
  }
  return changes;
}

/// Other places where factors act.
std::vector<Change> places_of_factors(const Arithmetic& declared) {
  struct Place {
    DescalePlace place;
    std::string_view words;
  };
  constexpr Place places[] = {
      {DescalePlace::products, "factors that multiply q·k, and weights or the output"},
      {DescalePlace::sums, "q, k and v that are multiplied by factors in the format of the sums"},
      {DescalePlace::inputs, "q, k and v that are multiplied by factors and rounded to the format of q"}};
  std::vector<Change> changes;
  for (const auto& [place, words] : places) {
    if (place == declared.descale) continue;
    changes.push_back({fmt::format("{} (\"applied\": \"{}\" of descale)", words, name_of(place)),
                       [place](Arithmetic& a) { a.descale = place; }});
  }
  return changes;
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

/// The keys of "arithmetic" in which the two differ, as JSON.
std::string difference(const Manifest& manifest, DType dtype, const Arithmetic& declared, const Arithmetic& changed) {
  using json = nlohmann::ordered_json;
  const auto keys_of = [&](const Arithmetic& arithmetic) {
    return json::parse(
        to_json(with_arithmetic(manifest, dtype, arithmetic)))["arithmetic"][std::string(name_of(dtype))];
  };
  const json before = keys_of(declared), after = keys_of(changed);
  json difference = json::object();
  for (const auto& [key, value] : after.items())
    if (!before.contains(key) || before[key] != value) difference[key] = value;
  return difference.dump();
}

/// Explanation::coarser.
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
      : kernel_(kernel), dtype_(dtype), declared_(kernel.manifest().arithmetic_for(cases.front().value)) {
    for (const BeyondBound& one : cases) {
      // Of a kernel with several paths those of one are explained.
      if (!(kernel.manifest().arithmetic_for(one.value) == declared_)) continue;
      const Verdict verdict = check_case(*one.property, kernel, one.value);
      if (verdict.violation == Violation::bound)
        cases_.push_back({&one, verdict.error <= moved_by_flushing(one.value, declared_)});
    }
  }
  [[nodiscard]] bool pointless() const { return cases_.empty(); }
  [[nodiscard]] const Arithmetic& declared() const { return declared_; }
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
      Arithmetic changed = declared_;
      change.apply(changed);
      RedeclaredKernel kernel(kernel_, with_arithmetic(kernel_.manifest(), dtype_, changed));
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
      Arithmetic changed = declared_;
      change.apply(changed);
      Explanation explanation{
          .words = change.words, .declaration = {}, .one_place = !change.place.empty(), .stage = change.stage};
      if (places.contains(change.place) || !holds_under(changed, explanation)) continue;
      if (explanation.one_place) places.insert(change.place);
      explanation.declaration = difference(kernel_.manifest(), dtype_, declared_, changed);
      explanation.variants = difference_of_variants(declared_, changed);
      explanation.coarser = coarser_by(declared_, changed);
      const auto place =
          std::ranges::upper_bound(found, explanation.utilisation, std::ranges::greater(), &Explanation::utilisation);
      found.insert(place, std::move(explanation));
    }
    return found;
  }

 private:
  /// Whether it does, and then its utilisation and excused cases.
  bool holds_under(const Arithmetic& arithmetic, Explanation& explanation) {
    RedeclaredKernel kernel(kernel_, with_arithmetic(kernel_.manifest(), dtype_, arithmetic));
    const bool flushes = arithmetic.flushes_subnormals && !declared_.flushes_subnormals;
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
  Arithmetic declared_;
  std::vector<Wrong> cases_;
};

/// All at once; of maxima the one that is taken last, none.
Change all_of(const std::vector<Change>& changes) {
  return {"the order and form of all operations left open", [changes](Arithmetic& a) {
            for (const Change& change : changes) change.apply(a);
            a.max = MaxPolicy::unstated;
            a.lazy_nats = 0;
          }};
}

std::vector<Change> each_with(const Change& always, const std::vector<Change>& changes) {
  std::vector<Change> both;
  both.reserve(changes.size());
  for (const Change& change : changes) {
    both.push_back(
        {change.words + ", and " + always.words, [first = change.apply, second = always.apply](Arithmetic& a) {
           first(a);
           second(a);
         }});
  }
  return both;
}

std::vector<Change> pairs_of(const std::vector<Change>& changes) {
  std::vector<Change> pairs;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const std::vector<Change> later(changes.begin() + static_cast<std::ptrdiff_t>(i) + 1, changes.end());
    std::ranges::move(each_with(changes[i], later), std::back_inserter(pairs));
  }
  return pairs;
}

}  // namespace

std::vector<Explanation> explain(Kernel& kernel, std::span<const BeyondBound> cases) {
  Search search(kernel, cases.front().value.dtype(), cases);
  if (search.pointless()) return {};
  // A 1/(1 - p) that is rounded looks as weights of a narrower format do, which would say of cases without dropout what
  // they refute.
  if (search.is_of_dropout()) return search.sufficient(places_of_dropout(search.declared()));
  // What slope·j is rounded by looks as scores of a narrower format do.
  if (search.is_of_slopes()) return search.sufficient(forms_of_slopes(search.declared()));
  // Products with factors that are rounded look as scores or weights of a narrower format do.
  if (search.is_of_factors()) return search.sufficient(places_of_factors(search.declared()));
  const bool capped = std::ranges::any_of(cases, [](const BeyondBound& one) { return one.value.softcap > 0; });
  const std::vector<Change> narrower = search.unrefuted(narrowings(search.declared(), capped));
  const std::vector<Change> rearranged = search.unrefuted(rearrangements(search.declared()));
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
