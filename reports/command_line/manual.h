// The manual page, attest(1), from the table of options.
#pragma once

#include <string>

namespace attest {

/// The page in the man(7) macros, in ASCII, which groff and mandoc take without a warning.
[[nodiscard]] std::string man_page();

}  // namespace attest
