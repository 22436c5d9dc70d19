// Of what changes scores and weights: sinks, caps, dropout, slopes and factors.
#include <string>

#include "core/problem/case.h"
#include "core/problem/descale.h"
#include "core/problem/fields.h"
#include "core/problem/sight.h"
#include "properties/catalogue/hypotheses.h"

namespace attest::hypotheses {

constexpr Hypothesis sink{"sink", "a sink", [](const Case& c) -> std::string {
                            return has_variant(c, sink_variant.name) ? "" : "has no sink; the theorem is about one";
                          }};
constexpr Hypothesis softcap{"softcap", "a softcap", [](const Case& c) -> std::string {
                               return c.softcap > 0 ? "" : "has no softcap; the theorem is about one";
                             }};
constexpr Hypothesis dropout{
    "dropout", "a mask of dropped weights", [](const Case& c) -> std::string {
      return c[Slot::keep].present() ? "" : "has no mask of dropped weights; the theorem is about one";
    }};
constexpr Hypothesis own_dropout{
    "own-dropout", "a mask of dropped weights that the kernel draws", [](const Case& c) -> std::string {
      return draws_own_dropout(c) ? ""
                                  : "has no mask of dropped weights for the kernel to draw; the theorem is about one";
    }};
constexpr Hypothesis descale{
    "descale", "factors of q, k or v", [](const Case& c) -> std::string {
      return has_variant(c, descale_variant.name) ? "" : "has no factors of q, k or v; the theorem is about them";
    }};
constexpr Hypothesis descale_blocks{"descale-blocks", "factors of blocks", [](const Case& c) -> std::string {
                                      if (has_blocks(c, Slot::q) || has_blocks(c, Slot::k) || has_blocks(c, Slot::v))
                                        return {};
                                      return "has no factors of blocks of rows or keys; the theorem is about them";
                                    }};
constexpr Hypothesis descale_of_both{"descale-of-both", "factors of q and of k", [](const Case& c) -> std::string {
                                       if (c[Slot::q_descale].present() && c[Slot::k_descale].present()) return {};
                                       return "has no factors of both q and k; the theorem is about their product";
                                     }};
constexpr Hypothesis descale_of_scores{"descale-of-scores", "factors of q or of k", [](const Case& c) -> std::string {
                                         if (c[Slot::q_descale].present() || c[Slot::k_descale].present()) return {};
                                         return "has no factors of q or k; the theorem is about them";
                                       }};
constexpr Hypothesis descale_of_values{
    "descale-of-values", "factors of v", [](const Case& c) -> std::string {
      return c[Slot::v_descale].present() ? "" : "has no factors of v; the theorem is about them";
    }};
constexpr Hypothesis alibi{"alibi", "slopes", [](const Case& c) -> std::string {
                             return c[Slot::alibi_slopes].present() ? "" : "has no slopes; the theorem is about them";
                           }};
constexpr Hypothesis bottom_right_positions{
    "bottom-right-positions", "positions that count from the last key", [](const Case& c) -> std::string {
      if ((c.causal != Causal::none ? c.causal : c.alignment) == Causal::bottom_right) return {};
      return "has positions that do not count from the last key; the theorem is about those that do";
    }};
constexpr Hypothesis added_after_scale{"added-after-scale", "no pre-scale mask", [](const Case& c) -> std::string {
                                         const bool additive = c.mask().present() && c.mask().dtype() != DType::boolean;
                                         if (!additive || c.mask_convention == MaskConvention::post_scale) return {};
                                         return "has a pre-scale mask; the theorem is about what is added to a score";
                                       }};

}  // namespace attest::hypotheses
