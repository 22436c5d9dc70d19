# What an installation holds beside the program and its adapters: the headers that users include, the libraries behind
# them, and the package that find_package(attest) reads.
include(CMakePackageConfigHelpers)
set(attest_package "${CMAKE_INSTALL_LIBDIR}/cmake/attest")
set_target_properties(attest_core PROPERTIES EXPORT_NAME core)
set_target_properties(attest_properties PROPERTIES EXPORT_NAME properties)
set_target_properties(attest_flags PROPERTIES EXPORT_NAME flags)
install(TARGETS attest_core attest_properties attest_flags EXPORT attest ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT attest FILE attestTargets.cmake NAMESPACE attest:: DESTINATION "${attest_package}")
install(DIRECTORY core/include/attest properties/attest DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/attestConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/attestConfigVersion.cmake" core/cmake/attestConfig.cmake
              core/cmake/FindArb.cmake core/cmake/FindMPFI.cmake core/cmake/FindMPFR.cmake
        DESTINATION "${attest_package}")
