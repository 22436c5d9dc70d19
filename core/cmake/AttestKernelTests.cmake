# attest_add_kernel_tests(TARGET target [NAME name] [DTYPES dtype...] [PROPERTIES glob...] [CASES n] [TIMEOUT seconds]
#                         [ARGUMENTS word...])
#
# CTest tests that run `attest check` on a shared library with the functions of <attest/kernel.h>, one for each family of
# properties and dtype: "attest.NAME.causal.f32", or "attest.NAME.causal" over the dtypes of the manifest. So
# `ctest -R causal` runs these alone. A test fails unless everything that was judged held, and then its output is the
# answer of at most 25 lines with what is wrong and the line that replays it. A family of which no property concerns the
# kernel is skipped.
#   NAME        of the tests (default: the target's)
#   DTYPES      f64, f32, f16, bf16 (default: all of the manifest, in one test of a family)
#   PROPERTIES  by name, globs allowed (default: all)
#   CASES       per property and dtype (default: 500, as of a check of all properties)
#   TIMEOUT     seconds after which a test is stopped and fails (default: 900)
#   ARGUMENTS   further words for attest check, as --alarm
# Each has the label "attest", takes one core, and leaves its run, with its report, in attest-runs/ of the binary
# directory. ctest asks the program for its families each time, so that one more property needs no more than its row.
function(attest_add_kernel_tests)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "TARGET;NAME;CASES;TIMEOUT" "DTYPES;PROPERTIES;ARGUMENTS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "attest_add_kernel_tests does not know \"${arg_UNPARSED_ARGUMENTS}\"; it takes TARGET, NAME, DTYPES, "
                        "PROPERTIES, CASES, TIMEOUT and ARGUMENTS")
  endif()
  if(NOT TARGET "${arg_TARGET}")
    message(FATAL_ERROR "attest_add_kernel_tests: TARGET is \"${arg_TARGET}\"; it must name a library that the project builds")
  endif()
  get_target_property(type "${arg_TARGET}" TYPE)
  if(NOT type MATCHES "^(SHARED|MODULE)_LIBRARY$")
    message(FATAL_ERROR "attest_add_kernel_tests: ${arg_TARGET} is a ${type}; attest loads SHARED and MODULE libraries")
  endif()
  foreach(number IN ITEMS CASES TIMEOUT)
    if(DEFINED arg_${number} AND NOT arg_${number} MATCHES "^[1-9][0-9]*$")
      message(FATAL_ERROR "attest_add_kernel_tests: ${number} is \"${arg_${number}}\"; it must be a whole number of at least 1")
    endif()
  endforeach()
  if(NOT arg_CASES)
    set(arg_CASES 500)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  if(NOT arg_NAME)
    set(arg_NAME "${arg_TARGET}")
  endif()
  # Asked at the end: enable_testing may come after this.
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL _attest_expect_testing)")
  set(runs "${CMAKE_CURRENT_BINARY_DIR}/attest-runs")
  file(MAKE_DIRECTORY "${runs}")
  set(list "${CMAKE_CURRENT_BINARY_DIR}/attest-tests/${arg_NAME}")
  file(GENERATE OUTPUT "${list}-$<CONFIG>.cmake" CONTENT
"set(attest [[$<TARGET_FILE:attest::attest>]])
set(kernel [[$<TARGET_FILE:${arg_TARGET}>]])
set(name [[${arg_NAME}]])
set(dtypes [[${arg_DTYPES}]])
set(globs [[${arg_PROPERTIES}]])
set(cases ${arg_CASES})
set(time_limit ${arg_TIMEOUT})
set(arguments [[${arg_ARGUMENTS}]])
set(runs [[${runs}]])
include([[${CMAKE_CURRENT_FUNCTION_LIST_DIR}/AttestKernelTestList.cmake]])
")
  set(config "${CMAKE_BUILD_TYPE}")
  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(several)
    set(config "\${CTEST_CONFIGURATION_TYPE}")
  endif()
  file(WRITE "${list}.cmake" "include([[${list}-]]${config}.cmake)\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${list}.cmake")
endfunction()

function(_attest_expect_testing)
  if(NOT CMAKE_TESTING_ENABLED)
    message(WARNING "attest_add_kernel_tests made tests that ctest will not see: call enable_testing() in the project's top CMakeLists.txt")
  endif()
endfunction()
