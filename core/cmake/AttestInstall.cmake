# What an installation holds beside the program and its adapters: the headers that users include, the libraries behind
# them, the package that find_package(attest) reads, and pkg-config's files. The component `program` is what checks kernels
# and is checked by it, which is all that a wheel holds; `development` is for C++ that links the properties.
include(CMakePackageConfigHelpers)
set(attest_package "${CMAKE_INSTALL_LIBDIR}/cmake/attest")
# <attest/kernel.h> and nothing else, for libraries that are to be checked.
add_library(attest_kernel INTERFACE)
target_include_directories(attest_kernel INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(attest_kernel PROPERTIES EXPORT_NAME kernel)
set_target_properties(attest_program PROPERTIES EXPORT_NAME attest)
set_target_properties(attest_core PROPERTIES EXPORT_NAME core)
set_target_properties(attest_properties PROPERTIES EXPORT_NAME properties)
set_target_properties(attest_flags PROPERTIES EXPORT_NAME flags)
install(TARGETS attest_program attest_kernel attest_core attest_properties attest_flags EXPORT attest
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT attest FILE attestTargets.cmake NAMESPACE attest:: DESTINATION "${attest_package}" COMPONENT development)
install(DIRECTORY core/include/attest DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT program FILES_MATCHING PATTERN "*.h")
install(DIRECTORY properties/attest DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
# What these include, from the root of the tree as they do; nothing there is promised to stay.
install(DIRECTORY core properties DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attest/internal COMPONENT development
        FILES_MATCHING PATTERN "*.h"
        PATTERN include EXCLUDE
        PATTERN attest EXCLUDE
        PATTERN adapters EXCLUDE
        PATTERN bench EXCLUDE
        PATTERN proofs EXCLUDE
        PATTERN test EXCLUDE)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/attestConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/attestConfigVersion.cmake" core/cmake/attestConfig.cmake
              core/cmake/AttestKernelTests.cmake core/cmake/AttestKernelTestList.cmake core/cmake/FindArb.cmake core/cmake/FindMPFI.cmake core/cmake/FindMPFR.cmake
        DESTINATION "${attest_package}" COMPONENT development)

install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)

# Relative, so that the tree may be moved.
set(attest_pkgconfig "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
file(RELATIVE_PATH attest_up_from_pkgconfig "/${attest_pkgconfig}" "/")
string(REGEX REPLACE "/$" "" attest_up_from_pkgconfig "${attest_up_from_pkgconfig}")
set(attest_arb_libraries "-lflint")
if(NOT Arb_LIBRARY STREQUAL Arb_flint_LIBRARY)
  string(PREPEND attest_arb_libraries "-lflint-arb ")
endif()
foreach(file IN ITEMS attest.pc attest-properties.pc)
  configure_file(core/cmake/${file}.in "${CMAKE_CURRENT_BINARY_DIR}/${file}" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${file}" DESTINATION "${attest_pkgconfig}" COMPONENT development)
endforeach()

if(PROJECT_IS_TOP_LEVEL)
  include(AttestPackage)
endif()
