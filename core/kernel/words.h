// The words of the manifest: its keys, and those of its enumerations in the order of the enumerators.
#pragma once

#include <array>
#include <string_view>

namespace attest::words {

using std::string_view;

inline constexpr std::array<string_view, 2> masks{"additive", "bool"};
inline constexpr std::array<string_view, 2> scales{"any", "inv-sqrt-dk"};
inline constexpr std::array<string_view, 2> value_dims{"any", "head_dim"};
inline constexpr std::array<string_view, 2> roundings{"nearest", "toward-zero"};
inline constexpr std::array<string_view, 3> max_policies{"running", "lazy", "none"};
inline constexpr std::array<string_view, 2> merges{"sequential", "pairwise"};
inline constexpr std::array<string_view, 6> dtypes{"f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e5m2"};

inline constexpr std::array<string_view, 20> keys{"name",
                                                  "version",
                                                  "abi",
                                                  "dtypes",
                                                  "out_dtypes",
                                                  "arithmetic",
                                                  "claims",
                                                  "fully_masked_row",
                                                  "scale",
                                                  "operations",
                                                  "masks",
                                                  "mask_dtypes",
                                                  "mask_conventions",
                                                  "causal",
                                                  "arguments",
                                                  "grouped_query",
                                                  "strides",
                                                  "lse",
                                                  "thread_safe",
                                                  "limits"};
inline constexpr std::array<string_view, 9> limits{
    "head_dim_multiple", "max_head_dim",   "value_dim",           "max_queries", "max_keys",
    "max_heads",         "heads_multiple", "self_attention_only", "alignment"};
inline constexpr std::array<string_view, 22> arithmetic{"score_sums",
                                                        "bias_in_sum",
                                                        "division_roundings",
                                                        "scores",
                                                        "stored",
                                                        "weights",
                                                        "weights_in_denominator",
                                                        "accumulate",
                                                        "rounding",
                                                        "exp_ulp",
                                                        "max",
                                                        "lazy_nats",
                                                        "base2",
                                                        "folded_exp2",
                                                        "split_merge",
                                                        "normalise_first",
                                                        "prescaled_q",
                                                        "mask_format",
                                                        "flushes_subnormals",
                                                        "flushes_inputs",
                                                        "summation_depth",
                                                        "block"};
inline constexpr std::array<string_view, 3> stored{"raw", "scaled", "biased"};
inline constexpr std::array<string_view, 3> blocked_sums{"block", "depth", "merges"};

}  // namespace attest::words
