// Files of the source tree that are part of the program: the page's style and script, its plots, the starter's files,
// contracts to begin with.
#pragma once

#include <string_view>
#include <vector>

namespace attest {

/// The text of a file that attest_embed() of reports/CMakeLists.txt put into the program, by its name there
/// ("page/style.css"); empty for one that was not there when it was built (Vega, where npm is not).
[[nodiscard]] std::string_view embedded_file(std::string_view name);
/// The names of all of them, sorted within a folder.
[[nodiscard]] std::vector<std::string_view> embedded_names();

}  // namespace attest
