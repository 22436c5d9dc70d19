#include "core/bound/machine_checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/value/dtype.h"

namespace attest {

bool division_is_unseen(const Arithmetic& a) {
  const Format &score = format_of(a.score_sums), &sums = format_of(a.accumulate), &weights = format_of(a.weights);
  if (weights.unit <= score.unit && weights.min_subnormal <= score.min_subnormal) return true;
  return 2 * (1 + weights.unit) * sums.min_subnormal <= weights.unit * weights.min_subnormal;
}

std::vector<std::string_view> beyond_the_proof(const Arithmetic& a) {
  std::vector<std::string_view> out;
  const Format &score = format_of(a.score_sums), &sums = format_of(a.accumulate);
  const bool base2 = a.base2 || a.folded_exp2, no_maximum = a.max == MaxPolicy::none || a.max == MaxPolicy::unstated;
  const bool inexact = a.rounding != Rounding::nearest || a.flushes_subnormals;
  const bool of_depth = a.summation_depth || a.blocked_sums;
  const auto add = [&](bool does, std::string_view what) {
    if (does) out.push_back(what);
  };
  add(a.exp_ulp <= 0, "an exponential whose error is not stated");
  add(a.stored_raw || a.stored_scaled || a.stored_biased, "a maximum taken before scores are stored");
  add(sums.unit > score.unit || sums.min_subnormal > score.min_subnormal, "sums in a coarser format than the scores");
  add(a.split_merge && base2, "parts merged through log-sum-exps in base 2");
  add(a.split_merge && inexact, "parts merged through log-sum-exps, truncated or flushed");
  add(a.split_merge && of_depth, "parts merged through log-sum-exps of a declared depth of sums");
  add(a.split_merge && a.normalise_first, "parts merged through log-sum-exps, weights divided first");
  add(a.normalise_first && (base2 || a.block > 0), "weights divided first in base 2 or beside rescalings");
  add(a.normalise_first && inexact, "weights divided first, truncated or flushed");
  add(a.normalise_first && of_depth, "weights divided first of a declared depth of sums");
  add(a.normalise_first && !division_is_unseen(a), "weights divided first and stored in a format as wide as the sums'");
  add(no_maximum && (base2 || a.block > 0 || a.split_merge), "no maximum in base 2, beside rescalings or merges");
  add(no_maximum && a.normalise_first, "no maximum and weights divided first");
  return out;
}

std::vector<std::string_view> proved_in_another_form(const Arithmetic& a) {
  std::vector<std::string_view> out;
  const auto add = [&](bool does, std::string_view what) {
    if (does) out.push_back(what);
  };
  // implemented_merged.v asks that a row be ordinary, which its lemma formats_are_ordinary shows of these.
  const bool ordinary = a.division_roundings == 1 && a.exp_ulp >= 0.5 && a.exp_ulp <= 1 && a.lazy_nats == 0 &&
                        format_of(a.score_sums).unit <= format_of(DType::f32).unit &&
                        format_of(a.weights).unit <= format_of(DType::bf16).unit;
  add(a.split_merge && !ordinary, "parts merged through log-sum-exps");
  add(a.prescaled_q || a.stored_raw || a.stored_scaled || a.stored_biased, "queries or scores that are stored");
  return out;
}

std::string proof_text(const Arithmetic& arithmetic) {
  const std::vector<std::string_view> beyond = beyond_the_proof(arithmetic);
  if (!beyond.empty()) return fmt::format("proved on paper; by machine but for {}", fmt::join(beyond, ", "));
  const std::vector<std::string_view> other = proved_in_another_form(arithmetic);
  if (other.empty()) return "proved by machine";
  return fmt::format("proved by machine, in another form than it is computed in: {}", fmt::join(other, ", "));
}

}  // namespace attest
