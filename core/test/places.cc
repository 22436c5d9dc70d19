#include "core/test/places.h"

namespace attest {

std::string source_folder() {
  return ATTEST_SOURCE_FOLDER;
}
std::string program_file() {
  return ATTEST_PROGRAM_FILE;
}
std::string test_library_folder() {
  return ATTEST_TEST_LIBRARY_FOLDER;
}

}  // namespace attest
