// Where the adapter scripts that travel with the program are found at run time.
#pragma once

#include <filesystem>

namespace attest {

/// The folder that holds python/attest_adapter.py and pytorch/: $ATTEST_ADAPTERS if it is set, else
/// ../share/attest/adapters beside the running program's folder (an installed program), else the source tree it was
/// built from. Empty when none of these exists.
[[nodiscard]] std::filesystem::path adapters_folder();

}  // namespace attest
