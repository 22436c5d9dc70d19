// Of masks and causal forms.
#include "properties/arrangement/masks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/problem/case.h"
#include "core/problem/selection.h"
#include "core/problem/sight.h"
#include "properties/catalogue/hypotheses.h"

namespace attest {
namespace {

std::string misses_no_causal_form(const Case& c) {
  if (c.causal == Causal::none) return {};
  return fmt::format("has the causal form {}; the theorem rearranges rows or keys, which that form counts",
                     name_of(c.causal));
}

}  // namespace

namespace hypotheses {

constexpr Hypothesis unmasked{"unmasked", "no mask and no causal form", [](const Case& c) -> std::string {
                                if (c.mask().present()) return "has a mask; the theorem is about attention without one";
                                return misses_no_causal_form(c);
                              }};
constexpr Hypothesis no_causal_form{"no-causal-form", "no causal form", misses_no_causal_form};
constexpr Hypothesis mask{"mask", "a mask", [](const Case& c) -> std::string {
                            return c.mask().present() ? "" : "has no mask; the theorem is about one";
                          }};
constexpr Hypothesis boolean_mask{"boolean-mask", "a boolean mask", [](const Case& c) -> std::string {
                                    if (c.mask().present() && c.mask().dtype() == DType::boolean) return {};
                                    return "has no boolean mask; the theorem is about one";
                                  }};
constexpr Hypothesis additive_mask{"additive-mask", "an additive mask", [](const Case& c) -> std::string {
                                     if (c.mask().present() && c.mask().dtype() != DType::boolean) return {};
                                     return "has no additive mask; the theorem is about one";
                                   }};
constexpr Hypothesis only_hides{
    "only-hides", "mask entries of 0 and -inf only", [](const Case& c) -> std::string {
      return attest::only_hides(c)
                 ? ""
                 : "has a mask entry other than 0 and -inf; the theorem is about masks that only hide";
    }};
constexpr Hypothesis one_boolean_mask{
    "one-boolean-mask", "no mask, or one boolean matrix for all", [](const Case& c) -> std::string {
      if (c.mask().present() && (c.mask().dtype() != DType::boolean || c.mask().shape()[0] * c.mask().shape()[1] != 1))
        return "has a mask that is not one boolean matrix; 002's is";
      return {};
    }};
constexpr Hypothesis causal_mask{
    "causal-mask", "nothing after the diagonal is visible", [](const Case& c) -> std::string {
      const std::int64_t M = queries_of(c), N = keys_of(c), shift = std::max<std::int64_t>(0, N - M);
      for (std::int64_t b = 0; b < batch_of(c); ++b)
        for (std::int64_t h = 0; h < heads_of(c); ++h)
          for (std::int64_t i = 0; i < M; ++i)
            for (std::int64_t j = i + shift + 1; j < N; ++j)
              if (!hidden(c, b, h, i, j))
                return fmt::format("row {} sees key {}; the theorem is about the causal mask", i, j);
      return {};
    }};
constexpr Hypothesis causal_form{"causal-form", "a causal form", [](const Case& c) -> std::string {
                                   return c.causal != Causal::none ? ""
                                                                   : "has no causal form; the theorem is about one";
                                 }};
constexpr Hypothesis top_left_or_square{
    "top-left-or-square", "a top-left causal form, or M = N", [](const Case& c) -> std::string {
      if (c.causal != Causal::bottom_right || queries_of(c) == keys_of(c)) return {};
      return fmt::format("is bottom-right with {} queries and {} keys; the theorem needs top-left or as many of both",
                         queries_of(c), keys_of(c));
    }};
constexpr Hypothesis plain_top_left{
    "plain-top-left", "the top-left form, M = N and no other mask", [](const Case& c) -> std::string {
      if (c.mask().present() || c.causal != Causal::top_left || queries_of(c) != keys_of(c))
        return "is not top-left causal attention with M = N and no other mask";
      return {};
    }};
constexpr Hypothesis first_key_visible{
    "first-key-visible", "the first row sees the first key", [](const Case& c) -> std::string {
      for (std::int64_t b = 0; queries_of(c) > 0 && keys_of(c) > 0 && b < batch_of(c); ++b)
        for (std::int64_t h = 0; h < heads_of(c); ++h)
          if (hidden(c, b, h, 0, 0)) return "hides the first key from the first row";
      return {};
    }};
constexpr Hypothesis lengths_differ{
    "lengths-differ", "M and N differ", [](const Case& c) -> std::string {
      return queries_of(c) == keys_of(c) ? "has M = N, where both alignments are the same" : "";
    }};
constexpr Hypothesis infinity_to_hide{
    "infinity-to-hide", "no additive mask in a dtype without infinity", [](const Case& c) -> std::string {
      if (c.dtype() != DType::f8_e4m3 || !c.mask().present() || c.mask().dtype() == DType::boolean) return {};
      return fmt::format("has an additive mask in {}, which has no infinity; the theorem hides a key",
                         name_of(c.dtype()));
    }};
constexpr Hypothesis infinite_dtype{"infinite-dtype", "a dtype with an infinity", [](const Case& c) -> std::string {
                                      if (c.dtype() != DType::f8_e4m3) return {};
                                      return "is in f8_e4m3, which has no infinity for the limit of an additive mask";
                                    }};
constexpr Hypothesis infinity_for_a_mask{
    "infinity-for-a-mask", "no boolean mask to be written as numbers in a dtype without infinity",
    [](const Case& c) -> std::string {
      if (c.dtype() == DType::f8_e4m3 && c.mask().present() && c.mask().dtype() == DType::boolean)
        return "is in f8_e4m3, which has no infinity for an additive mask that hides";
      return {};
    }};

}  // namespace hypotheses
}  // namespace attest
