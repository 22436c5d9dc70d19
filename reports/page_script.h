// The script of the report: sorting, filters and copying. Without it the page is whole; it only has no such controls.
#pragma once

#include <string_view>

namespace attest {

/// JavaScript without `</`, which would end its element.
[[nodiscard]] std::string_view page_script();

}  // namespace attest
