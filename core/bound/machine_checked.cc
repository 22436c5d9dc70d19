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
  const Format &score = format_of(a.score_sums), &sums = format_of(a.accumulate), &weights = format_of(a.weights);
  const bool base2 = a.base2 || a.folded_exp2, no_maximum = a.max == MaxPolicy::none || a.max == MaxPolicy::unstated;
  const bool inexact = a.rounding != Rounding::nearest || a.flushes_subnormals;
  // Programs whose theorems are of one format, to nearest.
  const bool other_formats = weights.unit > score.unit || weights.min_subnormal > score.min_subnormal ||
                             a.accumulate != a.score_sums || inexact;
  const auto add = [&](bool does, std::string_view what) {
    if (does) out.push_back(what);
  };
  add(a.exp_ulp <= 0, "an exponential whose error is not stated");
  add(a.stored_raw || a.stored_scaled || a.stored_biased, "a maximum taken before scores are stored");
  add(sums.unit > score.unit || sums.min_subnormal > score.min_subnormal, "sums in a coarser format than the scores");
  add(a.split_merge && base2, "parts merged through log-sum-exps in base 2");
  add(a.split_merge && inexact, "parts merged through log-sum-exps, truncated or flushed");
  add(a.normalise_first && (base2 || a.block > 0), "weights divided first in base 2 or beside rescalings");
  add(a.normalise_first && inexact, "weights divided first, truncated or flushed");
  add(a.normalise_first && !division_is_unseen(a), "weights divided first and stored in a format as wide as the sums'");
  add(no_maximum && (base2 || a.block > 0), "no maximum in base 2 or beside rescalings");
  add(no_maximum && other_formats, "no maximum in several formats");
  return out;
}

std::vector<std::string_view> proved_in_another_form(const Arithmetic& a) {
  std::vector<std::string_view> out;
  const auto add = [&](bool does, std::string_view what) {
    if (does) out.push_back(what);
  };
  add(a.base2 || a.folded_exp2, "base 2");
  add(a.split_merge, "parts merged through log-sum-exps");
  add(a.normalise_first, "weights divided first");
  add(a.max == MaxPolicy::none || a.max == MaxPolicy::unstated, "no maximum");
  add(a.summation_depth || a.blocked_sums, "a declared depth of sums");
  add(a.prescaled_q || a.stored_raw || a.stored_scaled || a.stored_biased, "queries or scores that are stored");
  add(a.rounding != Rounding::nearest, "truncation");
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
