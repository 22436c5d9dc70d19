// Of multi-head attention: weights, biases and tokens.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "core/problem/case.h"
#include "core/problem/sight.h"
#include "properties/arrangement/any_number.h"
#include "properties/arrangement/multihead_cases.h"
#include "properties/catalogue/hypotheses.h"

namespace attest::hypotheses {

constexpr Hypothesis one_head{"one-head", "one head", [](const Case& c) -> std::string {
                                if (c.heads == 1) return {};
                                return fmt::format("has {} heads; attention with the weights W has one", c.heads);
                              }};
constexpr Hypothesis identity_output{
    "identity-output", "no W_o, or W_o = I", [](const Case& c) -> std::string {
      if (!c[Slot::w_o].present() || is_identity(c[Slot::w_o])) return {};
      return "has an output projection other than the identity; attention with the weights W has none";
    }};
constexpr Hypothesis no_output_bias{"no-output-bias", "no b_o, or b_o = 0", [](const Case& c) -> std::string {
                                      for (std::int64_t e = 0; e < c[Slot::b_o].elements(); ++e)
                                        if (c[Slot::b_o][e] != 0)
                                          return "has b_o; attention with the weights W has no output bias";
                                      return {};
                                    }};
constexpr Hypothesis no_bias_kv{
    "no-bias-kv", "no add_bias_kv", [](const Case& c) -> std::string {
      return c[Slot::bias_k].present() ? "has bias_k and bias_v; the theorem is about attention without add_bias_kv"
                                       : "";
    }};
constexpr Hypothesis bias_kv{
    "bias-kv", "add_bias_kv", [](const Case& c) -> std::string {
      return c[Slot::bias_k].present() ? "" : "has no bias_k and bias_v; the theorem is about add_bias_kv";
    }};
constexpr Hypothesis no_biases{"no-biases", "none of b_q, b_k and b_v", [](const Case& c) -> std::string {
                                 for (const Slot slot : {Slot::b_q, Slot::b_k, Slot::b_v})
                                   if (c[slot].present())
                                     return fmt::format("has {}; the theorem is stated without biases", name_of(slot));
                                 return {};
                               }};
constexpr Hypothesis biases{"biases", "all of b_q, b_k and b_v", [](const Case& c) -> std::string {
                              for (const Slot slot : {Slot::b_q, Slot::b_k, Slot::b_v})
                                if (!c[slot].present())
                                  return "lacks one of b_q, b_k and b_v; the theorem is about attention with biases";
                              return {};
                            }};
constexpr Hypothesis value_bias{"value-bias", "b_v", [](const Case& c) -> std::string {
                                  return c[Slot::b_v].present() ? ""
                                                                : "has no b_v; the theorem is about the value bias";
                                }};
constexpr Hypothesis output_projection{
    "output-projection", "an output projection", [](const Case& c) -> std::string {
      return c[Slot::w_o].present() ? "" : "has no w_o; the theorem is about an output projection";
    }};
constexpr Hypothesis self_attention{
    "self-attention", "one X for queries, keys and values", [](const Case& c) -> std::string {
      if (is_self_attention(c)) return {};
      return "has keys or values other than its queries; self-attention has one X for all three";
    }};
constexpr Hypothesis one_projection{
    "one-projection", "W_q = W_k = W_v", [](const Case& c) -> std::string {
      if (c[Slot::w_q] == c[Slot::w_k] && c[Slot::w_q] == c[Slot::w_v]) return {};
      return "has different projections; the theorem has one U for queries, keys and values";
    }};
constexpr Hypothesis exact_projections{
    "exact-projections", "projected tokens that the dtype holds", [](const Case& c) -> std::string {
      if (in_a_proof()) return {};  // as real numbers are
      bool exact = true;
      for (const auto& [x, w, b] :
           {std::array{Slot::q, Slot::w_q, Slot::b_q}, std::array{Slot::k, Slot::w_k, Slot::b_k},
            std::array{Slot::v, Slot::w_v, Slot::b_v}})
        static_cast<void>(projected(c[x], c[w], c[b], exact));
      if (exact) return {};
      return fmt::format("has projections that {} does not hold exactly; the other side starts from them",
                         name_of(c.dtype()));
    }};
constexpr Hypothesis small_whole_numbers{
    "small-whole-numbers", "few tokens, and they and the first row of W_v whole numbers",
    [](const Case& c) -> std::string {
      if (in_a_proof()) return {};  // real numbers need not be rounded
      if (queries_of(c) > most_whole_tokens)
        return fmt::format("has {} tokens; at most {} are required", queries_of(c), most_whole_tokens);
      const auto is_one = [](double x) { return std::nearbyint(x) == x && std::fabs(x) <= 64; };
      for (std::int64_t e = 0; e < c.q().elements(); ++e)
        if (!is_one(c.q()[e])) return fmt::format("has {} in a token; whole numbers up to 64 are required", c.q()[e]);
      for (std::int64_t e = 0; e < c[Slot::w_v].shape()[1]; ++e)
        if (!is_one(c[Slot::w_v][e]))
          return fmt::format("has {} in the first row of W_v; whole numbers up to 64 are required", c[Slot::w_v][e]);
      return {};
    }};
/// What torch.nn.MultiheadAttention computes: dk = dv = d/h, c_q = d_o = d, c_k and c_v free, the three in-projection
/// biases together or not at all, an output projection, and the scale 1/sqrt(dk).
constexpr Hypothesis torch_case{
    "torch-case", "the shapes, biases and scale of torch.nn.MultiheadAttention", [](const Case& c) -> std::string {
      const Extents e = extents_of(c);
      if (e.dk != e.dv) return fmt::format("has dk = {} and dv = {}; the PyTorch case has dk = dv", e.dk, e.dv);
      const std::int64_t d = e.heads * e.dk;
      if (e.c_q != d || e.d_o != d) {
        return fmt::format("has c_q = {} and d_o = {}; the PyTorch case has both equal to heads*dk = {}", e.c_q, e.d_o,
                           d);
      }
      if (!c[Slot::w_o].present()) return "has no w_o; the PyTorch case has an output projection";
      const bool bias = c[Slot::b_q].present();
      if (c[Slot::b_k].present() != bias || c[Slot::b_v].present() != bias || c[Slot::b_o].present() != bias) {
        return "has some biases and lacks others; the PyTorch case has all of b_q, b_k, b_v and b_o or none";
      }
      if (c[Slot::bias_k].present() != c[Slot::bias_v].present())
        return "has one of bias_k and bias_v without the other";
      if (!is_inverse_root(c.scale, e.dk)) return fmt::format("has scale {}; the PyTorch case has 1/sqrt(dk)", c.scale);
      return {};
    }};

}  // namespace attest::hypotheses
