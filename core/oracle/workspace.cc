#include "core/oracle/workspace.h"

namespace attest::detail {

Workspace& workspace() {
  free_flint_caches_at_thread_end();
  thread_local Workspace w;
  return w;
}

Profile profile_for(const Problem& c, const Head& head, const Arithmetic& arithmetic) {
  return profile_of(arithmetic, {.keys = head.keys,
                                 .dk = head.dk,
                                 .scale = head.scale,
                                 .bias = head.bias,
                                 .convention = head.convention,
                                 .mask = c.mask().present() ? c.mask().dtype() : c.dtype(),
                                 .k = c.k().dtype(),
                                 .v = c.v().dtype(),
                                 .sink = c[Slot::sink].present() ? std::optional(c[Slot::sink].dtype()) : std::nullopt,
                                 .softcap = c.softcap,
                                 .drops = c[Slot::keep].present(),
                                 .dropout_p = c.dropout_p,
                                 .slope = head.slope,
                                 .most_distance = static_cast<double>(head.queries + head.keys),
                                 .causal = c.causal != Causal::none,
                                 .descale = head.descale});
}

}  // namespace attest::detail
