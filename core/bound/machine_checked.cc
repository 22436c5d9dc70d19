#include "core/bound/machine_checked.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attest {

std::vector<std::string_view> beyond_the_proof(const Arithmetic& a) {
  std::vector<std::string_view> out;
  const bool base2 = a.base2 || a.folded_exp2;
  const auto add = [&](bool does, std::string_view what) {
    if (does) out.push_back(what);
  };
  add(a.exp_ulp <= 0, "an exponential whose error is not stated");
  add(a.folded_exp2, "a folded scale beside a bias");
  add(a.split_merge && base2, "parts merged through log-sum-exps in base 2");
  add(a.normalise_first && (base2 || a.block > 0), "weights divided first in base 2 or beside rescalings");
  add((a.max == MaxPolicy::none || a.max == MaxPolicy::unstated) && base2, "no maximum in base 2");
  return out;
}

std::string proof_text(const Arithmetic& arithmetic) {
  const std::vector<std::string_view> beyond = beyond_the_proof(arithmetic);
  if (beyond.empty()) return "proved by machine";
  return fmt::format("proved on paper; by machine but for {}", fmt::join(beyond, ", "));
}

}  // namespace attest
