#include "properties/diagnosis/arithmetic/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>

namespace attest {
namespace {

bool narrower(DType a, DType b) {
  return format_of(a).unit > format_of(b).unit;
}

/// Without those that leave everything as it is declared.
std::vector<Change> without_idle(std::vector<Change> changes, const Declaration& declared) {
  std::erase_if(changes, [&](const Change& change) {
    Declaration changed = declared;
    change.apply(changed);
    return changed == declared;
  });
  return changes;
}

/// Each other value of what a variant states, its words and how it is declared.
template <class Value>
std::vector<Change> others(const Arithmetic& declared, Value Arithmetic::* stated, std::string_view key,
                           std::initializer_list<std::pair<Value, std::string_view>> values) {
  std::vector<Change> changes;
  for (const auto& [value, words] : values) {
    if (value == declared.*stated) continue;
    changes.push_back({fmt::format("{} ({})", words, fmt::format(fmt::runtime(key), name_of(value))),
                       [stated, value](Arithmetic& a) { a.*stated = value; }});
  }
  return changes;
}

}  // namespace

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
  return without_idle(std::move(changes), {.forward = declared});
}

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

std::vector<Change> places_of_dropout(const Arithmetic& declared) {
  return others(declared, &Arithmetic::dropout, "\"applied\": \"{}\" of dropout",
                {{DropoutPlace::output, "an output that is divided by 1 - p"},
                 {DropoutPlace::weights, "weights that are divided by 1 - p before they are rounded"},
                 {DropoutPlace::values, "values that are divided by 1 - p in their own format"}});
}

std::vector<Change> forms_of_slopes(const Arithmetic& declared) {
  return others(
      declared, &Arithmetic::slopes, "\"form\": \"{}\" of alibi",
      {{SlopeForm::distance, "-slope·|p - j| added to scores"},
       {SlopeForm::column, "slope·j added to scores under a causal form"},
       {SlopeForm::column_divided, "slope·j added under a causal form, divided by what the sum is multiplied by"}});
}

std::vector<Change> places_of_factors(const Arithmetic& declared) {
  return others(declared, &Arithmetic::descale, "\"applied\": \"{}\" of descale",
                {{DescalePlace::products, "factors that multiply q·k, and weights or the output"},
                 {DescalePlace::sums, "q, k and v that are multiplied by factors in the format of the sums"},
                 {DescalePlace::inputs, "q, k and v that are multiplied by factors and rounded to the format of q"}});
}

std::vector<Change> backward_rearrangements(const BackwardArithmetic& declared) {
  std::vector<Change> changes{
      {"-D as the initial value of the sum g.v", [](BackwardArithmetic& a) { a.delta_in_sum = true; }},
      {"gradients of scores that are formed from the rounded weights",
       [](BackwardArithmetic& a) { a.rounded_weights_in_scores = true; }},
      {"gradients of scores that are multiplied by the scale before they are rounded",
       [](BackwardArithmetic& a) { a.scale_before_rounding = true; }},
      {"sums that are divided by 1 - p at the end", [](BackwardArithmetic& a) { a.late_dropout = true; }}};
  return without_idle(std::move(changes), {.forward = {}, .backward = declared});
}

std::vector<Change> backward_narrowings(const BackwardArithmetic& declared) {
  struct Place {
    std::string_view words;
    DType now;
    std::function<void(BackwardArithmetic&, DType)> set;
  };
  const BackwardArithmetic& d = declared;
  const DType sums = d.accumulate;
  const Place places[] = {
      {"sums over keys and rows in {}", sums, [](BackwardArithmetic& a, DType f) { a.accumulate = f; }},
      {"sums g.v and D, and what is formed from them, in {}", d.dot, [](BackwardArithmetic& a, DType f) { a.dot = f; }},
      {"weights rounded to {} before they multiply the gradient of the output", d.weights,
       [](BackwardArithmetic& a, DType f) { a.weights = f; }},
      {"gradients of weights stored in {}", d.of_weights, [](BackwardArithmetic& a, DType f) { a.of_weights = f; }},
      {"gradients of scores rounded to {} before they multiply k and q", d.of_scores,
       [](BackwardArithmetic& a, DType f) { a.of_scores = f; }},
      {"each head's dk and dv rounded to {} before they are added up over its group", d.group_partials.value_or(sums),
       [](BackwardArithmetic& a, DType f) { a.group_partials = f; }},
      {"terms of a sink's gradient rounded to {}", d.sink_terms.value_or(sums),
       [](BackwardArithmetic& a, DType f) { a.sink_terms = f; }}};
  std::vector<Change> changes;
  for (const Place& place : places) {
    for (const DType format : {DType::f32, DType::f16, DType::bf16}) {
      // Double precision beside 16-bit formats is nobody's kernel, nor are two formats of 16 bits.
      const bool other = format != DType::f32 && d.output != DType::f32 && d.output != format;
      if (other || !narrower(format, place.now)) continue;
      changes.push_back({fmt::format(fmt::runtime(place.words), name_of(format)),
                         [set = place.set, format](BackwardArithmetic& a) { set(a, format); }, place.words});
    }
  }
  return changes;
}

Change all_of(const std::vector<Change>& changes) {
  std::vector<Loosening> each;
  each.reserve(changes.size() + 1);
  for (const Change& change : changes) each.push_back(change.apply);
  each.emplace_back([](Arithmetic& a) {
    a.max = MaxPolicy::unstated;
    a.lazy_nats = 0;
  });
  return {"the order and form of all operations left open", Loosening(std::move(each))};
}

std::vector<Change> each_with(const Change& always, const std::vector<Change>& changes) {
  std::vector<Change> both;
  both.reserve(changes.size());
  for (const Change& change : changes)
    both.push_back({change.words + ", and " + always.words, Loosening({change.apply, always.apply})});
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

}  // namespace attest
