// Vega, which draws the plots: put into the program when it is built, so that a report loads nothing.
#pragma once

#include <string_view>

namespace attest {

/// Vega as one script, and its licence. Both empty where the program was built without it.
[[nodiscard]] std::string_view vega_script();
[[nodiscard]] std::string_view vega_licence();

}  // namespace attest
