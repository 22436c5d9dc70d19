// Where a test finds what is not linked into it: functions, whose values stand in one object of the build
// (attest_places in core/cmake/AttestTarget.cmake).
#pragma once

#include <string>

namespace attest {

/// The root of the source tree.
[[nodiscard]] std::string source_folder();
/// The program `attest`. Who runs it is built after it.
[[nodiscard]] std::string program_file();
/// Where the variants of library_kernel.c lie, each as library_NAME.so, once the target test_libraries is built.
[[nodiscard]] std::string test_library_folder();

}  // namespace attest
