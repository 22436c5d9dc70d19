#include "attest/adapters.h"

#include <cstdlib>
#include <system_error>

namespace attest {

std::filesystem::path adapters_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  if (const char* set = std::getenv("ATTEST_ADAPTERS"); set != nullptr && *set != '\0') {
    return fs::is_directory(set, error) ? fs::absolute(set, error) : fs::path();
  }
  const auto program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    auto installed = program.parent_path().parent_path() / ATTEST_INSTALLED_ADAPTERS;
    if (fs::is_directory(installed, error)) return installed;
  }
  fs::path source = ATTEST_SOURCE_ADAPTERS;
  return fs::is_directory(source, error) ? source : fs::path();
}

}  // namespace attest
