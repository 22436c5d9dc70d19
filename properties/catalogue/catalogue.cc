#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/problem/cost.h"
#include "core/support/errors.h"
#include "core/support/names.h"
#include "properties/catalogue/property.h"

namespace attest {

const std::vector<const Property*>& catalogue() {
  static const std::vector<const Property*> all = [] {
    std::vector<const Property*> joined;
    for (const std::span<const Property> family : {softmax_properties(),
                                                   attention_row_properties(),
                                                   attention_expectation_properties(),
                                                   multihead_weight_properties(),
                                                   attention_form_properties(),
                                                   multihead_form_properties(),
                                                   attention_value_properties(),
                                                   attention_key_properties(),
                                                   attention_scaling_properties(),
                                                   attention_split_properties(),
                                                   attention_layout_properties(),
                                                   attention_stride_properties(),
                                                   attention_properties(),
                                                   attention_length_properties(),
                                                   masked_properties(),
                                                   masked_form_properties(),
                                                   masked_law_properties(),
                                                   causal_properties(),
                                                   window_properties(),
                                                   window_gradient_properties(),
                                                   chunk_properties(),
                                                   sink_properties(),
                                                   sink_gradient_properties(),
                                                   sink_answer_properties(),
                                                   softcap_properties(),
                                                   softcap_gradient_properties(),
                                                   dropout_properties(),
                                                   dropout_gradient_properties(),
                                                   alibi_properties(),
                                                   alibi_weight_properties(),
                                                   alibi_gradient_properties(),
                                                   descale_properties(),
                                                   drawn_dropout_properties(),
                                                   sequence_properties(),
                                                   sequence_gradient_properties(),
                                                   cache_properties(),
                                                   append_properties(),
                                                   paged_properties(),
                                                   backward_properties(),
                                                   backward_answer_properties(),
                                                   backward_run_properties(),
                                                   backward_sum_properties(),
                                                   backward_zero_properties(),
                                                   backward_pair_properties(),
                                                   backward_scaling_properties(),
                                                   weights_properties(),
                                                   self_properties(),
                                                   self_score_properties(),
                                                   position_properties(),
                                                   multihead_row_properties(),
                                                   multihead_head_properties(),
                                                   multihead_properties(),
                                                   multihead_oracle_properties(),
                                                   reduction_properties(),
                                                   batch_properties(),
                                                   layout_properties()}) {
      std::transform(family.begin(), family.end(), std::back_inserter(joined), [](const Property& p) { return &p; });
    }
    return joined;
  }();
  return all;
}

std::int64_t Judging::rows_of(const Case& c) const {
  if (rows != by_size) return rows;
  const double products = cost_of(c.operation, extents_of(c)).products;
  return products > most_products_by_whole ? rows_of_large : all_rows;
}

const Property& property_named(std::string_view name) {
  const auto found = std::ranges::find(catalogue(), name, [](const Property* p) { return p->name; });
  if (found == catalogue().end()) throw UsageError(fmt::format("{} is no property; see attest list", name));
  return **found;
}

std::vector<const Property*> properties_matching(std::string_view glob) {
  std::vector<const Property*> matching;
  std::copy_if(catalogue().begin(), catalogue().end(), std::back_inserter(matching),
               [&](const Property* p) { return glob_match(glob, p->name); });
  return matching;
}

}  // namespace attest
