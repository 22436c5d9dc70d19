# What every target of the project is compiled with, and how a test is declared.

add_library(attest_flags INTERFACE)
target_compile_features(attest_flags INTERFACE cxx_std_20)
# No contraction, no fast-math, no -march: a sum written out in a stated order must be evaluated in that order with one
# rounding per operation, on every machine alike, or the error analysis of error-bounds.md is about another program.
target_compile_options(attest_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in std::string's own operator= (GCC bug 105651), and in what is precompiled, where it
  # does not know std::string for the system's, copies beyond every object; later versions do not.
  target_compile_options(
    attest_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # What is precompiled twice is the same, for ccache.
  target_compile_options(attest_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>")
endif()
if(ATTEST_LINKER)
  target_link_options(attest_flags INTERFACE $<$<LINK_LANGUAGE:CXX>:-fuse-ld=${ATTEST_LINKER}>)
endif()
if(ATTEST_WERROR)
  target_compile_options(attest_flags INTERFACE -Werror)
endif()

# attest_sources(TARGET FOLDER...): all sources of the folders, which stand in their order: a file may include from its own
# folder and from those before it (.ci/layers.py checks it).
function(attest_sources target)
  foreach(folder IN LISTS ARGN)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc")
    target_sources(${target} PRIVATE ${sources})
  endforeach()
  # Includes are written from the root.
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>")
  if(ATTEST_PRECOMPILED)
    target_precompile_headers(${target} PRIVATE "${PROJECT_SOURCE_DIR}/core/cmake/precompiled.h")
  endif()
endfunction()

# attest_places(NAME SOURCE_FOLDER PROGRAM): what core/test/places.h answers. Its object alone names this clone's folder, so
# that ccache has all others for the next clone.
function(attest_places name source_folder program)
  add_library(${name} STATIC EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/core/test/places.cc")
  target_link_libraries(${name} PRIVATE attest_flags)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(
    ${name} PRIVATE ATTEST_SOURCE_FOLDER="${source_folder}" ATTEST_PROGRAM_FILE="$<TARGET_FILE:${program}>"
                    ATTEST_TEST_LIBRARY_FOLDER="$<TARGET_FILE_DIR:library_good>")
endfunction()

# attest_test_headers(): what tests include, compiled once for all. CMake wants a source beside them.
function(attest_test_headers)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/test_headers.cc" CONTENT "")
  add_library(attest_test_headers OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_BINARY_DIR}/test_headers.cc")
  target_link_libraries(attest_test_headers PRIVATE attest_flags fmt::fmt GTest::gmock)
  target_compile_options(attest_test_headers PRIVATE $<IF:$<CONFIG:Debug>,-O0,-O1>)
  target_precompile_headers(attest_test_headers PRIVATE "${PROJECT_SOURCE_DIR}/core/cmake/precompiled.h" <gmock/gmock.h>
                            <gtest/gtest.h>)
endfunction()

# attest_test(NAME SOURCES... LIBRARIES ... [LABEL long]): one GoogleTest binary; its tests appear in CTest one by one, or
# as one with ATTEST_WHOLE_BINARIES (a sanitized program starts slowly, and there are thousands of tests). There, those of
# hours and those that ATTEST_TESTS_LEFT_OUT names are no tests, and are built by name alone; and all others of a folder
# that says by `sanitized_tests`, a regular expression, which of its tests are.
function(attest_test name)
  cmake_parse_arguments(arg "" "LABEL" "LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} attest_flags attest_places GTest::gtest_main)
  # What runs for seconds need not be optimised for minutes: -O3 here, or -O1 under a sanitizer, was a third of a build.
  target_compile_options(${name} PRIVATE $<IF:$<CONFIG:Debug>,-O0,-O1>)
  if(ATTEST_PRECOMPILED)
    target_precompile_headers(${name} REUSE_FROM attest_test_headers)
  endif()
  # RapidCheck draws the same cases in every run.
  set(properties ENVIRONMENT "RC_PARAMS=seed=1")
  if(arg_LABEL)
    list(APPEND properties LABELS ${arg_LABEL})
  endif()
  set(left_out OFF)
  if("${arg_LABEL}" STREQUAL "long" OR name MATCHES "^(${ATTEST_TESTS_LEFT_OUT})$"
     OR (DEFINED sanitized_tests AND NOT name MATCHES "^(${sanitized_tests})$"))
    set(left_out ON)
  endif()
  if(ATTEST_WHOLE_BINARIES AND left_out)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  elseif(ATTEST_WHOLE_BINARIES)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties})
  else()
    # Parameters have names of their own; GoogleTest's prints of them are mostly bytes.
    gtest_discover_tests(${name} NO_PRETTY_VALUES PROPERTIES ${properties} DISCOVERY_TIMEOUT 60)
  endif()
endfunction()

# attest_tests(LIBRARIES ... FOLDERS ... [PROGRAM target]): a test of each *_test.cc in the folders that is no
# target yet, which is how one with more sources or other libraries is declared before. *_long_test.cc has the label long.
# PROGRAM is what they run, built before them.
function(attest_tests)
  cmake_parse_arguments(arg "" "PROGRAM" "LIBRARIES;FOLDERS" ${ARGN})
  foreach(folder IN LISTS arg_FOLDERS)
    file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cc")
    foreach(source IN LISTS sources)
      cmake_path(GET source STEM name)
      if(TARGET ${name})
        continue()
      endif()
      set(label "")
      if(name MATCHES "_long_test$")
        set(label LABEL long)
      endif()
      attest_test(${name} "${source}" LIBRARIES ${arg_LIBRARIES} ${label})
      if(arg_PROGRAM)
        add_dependencies(${name} ${arg_PROGRAM})
      endif()
    endforeach()
  endforeach()
endfunction()

# attest_bench(NAME SOURCES... LIBRARIES ...): one Google Benchmark program, put beside the program, where `attest bench`
# finds every NAME that ends in _bench.
function(attest_bench name)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} attest_flags benchmark::benchmark_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
endfunction()
