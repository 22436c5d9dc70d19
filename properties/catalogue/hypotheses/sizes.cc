// Of gradients, extents, strides and scales.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "core/problem/case.h"
#include "core/problem/fields.h"
#include "core/problem/memory.h"
#include "core/problem/sight.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/hypotheses.h"

namespace attest::hypotheses {

constexpr Hypothesis gradients{
    "gradients", "gradients by the output", [](const Case& c) -> std::string {
      return asks_for_gradients(c) ? "" : "has no gradients by its output; the theorem is about a backward pass";
    }};
constexpr Hypothesis gradients_by_lse{
    "gradients-by-lse", "a gradient by the log-sum-exp", [](const Case& c) -> std::string {
      return c[Slot::d_lse].present() ? "" : "has no gradient by its log-sum-exp; the theorem is about one";
    }};
constexpr Hypothesis bottom_right_form{
    "bottom-right-form", "the bottom-right causal form", [](const Case& c) -> std::string {
      if (c.causal == Causal::bottom_right) return {};
      return "has no causal form that counts from the last key; the theorem is about the queries of the last tokens";
    }};
constexpr Hypothesis equal_lengths{"equal-lengths", "M = N", [](const Case& c) -> std::string {
                                     if (queries_of(c) == keys_of(c)) return {};
                                     return fmt::format("has {} queries and {} keys; the theorem needs as many of both",
                                                        queries_of(c), keys_of(c));
                                   }};
constexpr Hypothesis one_query{
    "one-query", "M = 1", [](const Case& c) -> std::string {
      return queries_of(c) == 1 ? "" : fmt::format("has {} queries; the theorem is about one", queries_of(c));
    }};
constexpr Hypothesis two_queries{
    "two-queries", "at least two queries", [](const Case& c) -> std::string {
      return queries_of(c) >= 2 ? "" : fmt::format("has {} queries; the theorem needs at least 2", queries_of(c));
    }};
constexpr Hypothesis two_keys{
    "two-keys", "at least two keys", [](const Case& c) -> std::string {
      return keys_of(c) >= 2 ? "" : fmt::format("has {} keys; the theorem needs at least 2", keys_of(c));
    }};
constexpr Hypothesis one_key{
    "one-key", "one key", [](const Case& c) -> std::string {
      return keys_of(c) == 1 ? "" : fmt::format("has {} keys; the theorem is about one", keys_of(c));
    }};
constexpr Hypothesis a_query{"a-query", "a query", [](const Case& c) -> std::string {
                               return queries_of(c) >= 1 ? "" : "has no query; the theorem needs one";
                             }};
constexpr Hypothesis a_query_and_a_key{"a-query-and-a-key", "a query and a key", [](const Case& c) -> std::string {
                                         if (queries_of(c) < 1 || keys_of(c) < 1)
                                           return "has no row or no key to delete";
                                         return {};
                                       }};
constexpr Hypothesis two_batch_entries{
    "two-batch-entries", "at least two batch entries", [](const Case& c) -> std::string {
      return batch_of(c) >= 2 ? "" : "has one batch entry; the theorem needs at least 2";
    }};
constexpr Hypothesis two_heads{"two-heads", "at least two heads", [](const Case& c) -> std::string {
                                 return heads_of(c) >= 2 ? "" : "has 1 head; the theorem needs at least 2";
                               }};
constexpr Hypothesis shared_key_heads{
    "shared-key-heads", "fewer key-value heads than heads", [](const Case& c) -> std::string {
      return c.k().shape()[1] < heads_of(c) ? ""
                                            : "has a key-value head for every head; the theorem is about shared ones";
    }};
constexpr Hypothesis two_head_columns{
    "two-head-columns", "dk >= 2", [](const Case& c) -> std::string {
      const std::int64_t dk = extents_of(c).dk;
      return dk >= 2 ? "" : fmt::format("has dk = {}; the conventions differ from dk = 2 on", dk);
    }};
constexpr Hypothesis at_most_64_columns{
    "at-most-64-columns", "dk <= 64", [](const Case& c) -> std::string {
      const std::int64_t dk = extents_of(c).dk;
      return dk <= 64 ? "" : fmt::format("has dk = {}; the theorem is checked up to 64", dk);
    }};
constexpr Hypothesis two_token_columns{
    "two-token-columns", "tokens of at least two columns", [](const Case& c) -> std::string {
      return c.q().shape()[2] >= 2 ? "" : "has tokens of one column, whose scores are symmetric; the theorem needs two";
    }};
constexpr Hypothesis equal_widths{
    "equal-widths", "dk = dv", [](const Case& c) -> std::string {
      const Extents e = extents_of(c);
      return e.dk == e.dv ? "" : fmt::format("has dk = {} and dv = {}; 001 and 003 take dk = dv", e.dk, e.dv);
    }};
constexpr Hypothesis odd_head_dims{
    "odd-head-dims", "dk and dv differ, and neither is a multiple of 8", [](const Case& c) -> std::string {
      const Extents e = extents_of(c);
      if (e.dk != e.dv && e.dk % 8 != 0 && e.dv % 8 != 0) return "";
      return fmt::format("has dk = {} and dv = {}; two are required, neither a multiple of 8", e.dk, e.dv);
    }};
constexpr Hypothesis power_of_four{"power-of-four", "dk a power of 4", [](const Case& c) -> std::string {
                                     if (in_a_proof()) return {};  // any scale has an inverse there
                                     const std::int64_t dk = extents_of(c).dk;
                                     int exponent = 0;
                                     if (std::frexp(static_cast<double>(dk), &exponent) != 0.5 || exponent % 2 == 0)
                                       return fmt::format("has dk = {}; sqrt(dk) Q is exact for a power of 4", dk);
                                     return {};
                                   }};
constexpr Hypothesis other_strides{"other-strides", "strides other than row-major", [](const Case& c) -> std::string {
                                     if (layouts_of(c) == Layouts())
                                       return "is row-major throughout; the theorem is about other strides";
                                     return {};
                                   }};
constexpr Hypothesis inverse_root_scale{"inverse-root-scale", "the scale 1/sqrt(dk)", [](const Case& c) -> std::string {
                                          if (is_inverse_root(c.scale, extents_of(c).dk)) return {};
                                          return fmt::format("has scale {}; the theorem is about 1/sqrt(dk)", c.scale);
                                        }};
constexpr Hypothesis exact_inverse_root{"exact-inverse-root", "the scale 1/sqrt(dk) to the bit",
                                        [](const Case& c) -> std::string {
                                          if (in_a_proof() || c.scale == inverse_root(extents_of(c).dk)) return {};
                                          return fmt::format("has scale {}; the scaled form has 1/sqrt(dk)", c.scale);
                                        }};
constexpr Hypothesis unscaled{
    "unscaled", "the scale 1", [](const Case& c) -> std::string {
      return c.scale == 1 ? "" : fmt::format("has scale {}; the notebook's form is not scaled", c.scale);
    }};

}  // namespace attest::hypotheses
