#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/kernel/manifest.h"
#include "core/kernel/words.h"
#include "core/support/visible.h"

namespace attest {
namespace {

using json = nlohmann::ordered_json;

template <class Enum>
json names(const std::vector<Enum>& values) {
  json array = json::array();
  for (const Enum value : values) array.push_back(name_of(value));
  return array;
}

json dtype_or_null(const std::optional<DType>& dtype) {
  return dtype ? json(name_of(*dtype)) : json(nullptr);
}

json summation_depth(const Arithmetic& a) {
  if (a.summation_depth) return *a.summation_depth;
  if (!a.blocked_sums) return "n";
  return {{"block", a.blocked_sums->block},
          {"depth", a.blocked_sums->depth},
          {"merges", words::merges[a.blocked_sums->pairwise ? 1 : 0]}};
}

json arithmetic(const Arithmetic& a) {
  json object{{"score_sums", name_of(a.score_sums)},
              {"stored",
               {{"raw", dtype_or_null(a.stored_raw)},
                {"scaled", dtype_or_null(a.stored_scaled)},
                {"biased", dtype_or_null(a.stored_biased)}}},
              {"weights", name_of(a.weights)},
              {"weights_in_denominator", a.weights_in_denominator},
              {"accumulate", name_of(a.accumulate)},
              {"prescaled_q", dtype_or_null(a.prescaled_q)},
              {"mask_format", dtype_or_null(a.mask_format)},
              {"rounding", words::roundings[static_cast<std::size_t>(a.rounding)]},
              {"base2", a.base2},
              {"folded_exp2", a.folded_exp2},
              {"split_merge", a.split_merge},
              {"normalise_first", a.normalise_first},
              {"flushes_subnormals", a.flushes_subnormals},
              {"flushes_inputs", a.flushes_inputs},
              {"summation_depth", summation_depth(a)},
              {"block", a.block},
              {"bias_in_sum", a.bias_in_sum},
              {"division_roundings", a.division_roundings}};
  if (a.max != MaxPolicy::unstated) object["max"] = words::max_policies[static_cast<std::size_t>(a.max)];
  // 0 stands for "not stated" and is no value of the key.
  if (a.exp_ulp > 0) object["exp_ulp"] = a.exp_ulp;
  if (a.max == MaxPolicy::lazy) object["lazy_nats"] = a.lazy_nats;
  return object;
}

json limits(const Manifest& m) {
  json object{{"head_dim_multiple", m.head_dim_multiple},
              {"value_dim", words::value_dims[m.value_dim_equals_head_dim ? 1 : 0]},
              {"heads_multiple", m.heads_multiple},
              {"self_attention_only", m.self_attention_only}};
  if (m.max_head_dim) object["max_head_dim"] = *m.max_head_dim;
  if (m.max_queries) object["max_queries"] = *m.max_queries;
  if (m.max_keys) object["max_keys"] = *m.max_keys;
  if (m.max_heads) object["max_heads"] = *m.max_heads;
  if (m.alignment > 0) object["alignment"] = m.alignment;
  return object;
}

}  // namespace

std::string to_json(const Manifest& m) {
  json out_dtypes = json::object();
  for (const auto& [input, outputs] : m.out_dtypes) out_dtypes[std::string(name_of(input))] = names(outputs);
  json arithmetics = json::object();
  for (const auto& [dtype, a] : m.arithmetic) arithmetics[std::string(name_of(dtype))] = arithmetic(a);
  json masks = json::array();
  if (m.additive_masks) masks.push_back("additive");
  if (m.bool_masks) masks.push_back("bool");
  json operations = json::array();
  if (m.attention) operations.push_back("attention");
  if (m.multihead) operations.push_back("multihead");
  json object{{"name", m.name},
              {"version", m.version},
              {"abi", ATTEST_ABI},
              {"operations", operations},
              {"dtypes", names(m.dtypes)},
              {"out_dtypes", out_dtypes},
              {"arithmetic", arithmetics},
              {"claims", names(m.claims)},
              {"fully_masked_row", name_of(m.fully_masked_row)},
              {"scale", words::scales[m.any_scale ? 0 : 1]},
              {"masks", masks},
              {"mask_dtypes", names(m.mask_dtypes)},
              {"mask_conventions", names(m.mask_conventions)},
              {"causal", names(m.causal)},
              {"grouped_query", m.grouped_query},
              {"strides", m.strides},
              {"lse", m.lse},
              {"thread_safe", m.thread_safe},
              {"limits", limits(m)}};
  if (!m.arguments.empty()) object["arguments"] = m.arguments;
  return visible_json(object.dump(2, ' ', false, json::error_handler_t::replace));
}

}  // namespace attest
