#include "fuzz/search.h"

#include <utility>

namespace attest {

Search::Plan Search::plan(std::int64_t k, std::span<const std::uint8_t> of_corpus) const {
  // Another seed than that of case k of a check: the two see other cases.
  Plan plan{.stream = Stream(case_seed(~seed_, target_.property->name, target_.dtype, k)),
            .first = {},
            .second = {},
            .of_corpus = false};
  const bool fresh = plan.stream.below(64) < strategy_.fresh_in_64;
  if (fresh || k / one_in_ < strategy_.fresh_first || archive_.empty()) return plan;
  // An engine's first input is a byte that it made up.
  plan.of_corpus = of_corpus.size() >= input_header_bytes && plan.stream.below(64) < strategy_.corpus_in_64;
  plan.first =
      plan.of_corpus ? parse_input(of_corpus, target_.dtype, target_.property->operation) : archive_.pick(plan.stream);
  if (plan.stream.one_in(8)) plan.second = archive_.pick(plan.stream);
  return plan;
}

Input Search::made(Plan plan, const Target& target) {
  if (!plan.first) return fresh_input(target, plan.stream);
  if (plan.second) {
    Input child = crossed(*plan.first, *plan.second, plan.stream);
    return plan.stream.one_in(2) ? child : mutated(child, target, plan.stream);
  }
  // Code branches on lengths and flags far more than on numbers.
  if (plan.of_corpus && plan.stream.one_in(2)) return restructured(*plan.first, target, plan.stream);
  return mutated(*plan.first, target, plan.stream);
}

bool Search::learn(std::int64_t k, const Input& input, const Case& c, const Verdict& verdict) {
  if (strategy_.fresh_in_64 >= 64) return false;
  const double quality = quality_of(*target_.property, c, verdict);
  if (quality < 0) return false;
  const std::uint32_t cell = cell_of(c, verdict);
  return archive_.wants(cell, quality) && archive_.offer({cell, quality, k, work_of(c), input});
}

}  // namespace attest
