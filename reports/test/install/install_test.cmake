# Installs the build in BUILD and does with it what users do: builds user_project on find_package(attest), runs its
# tests, checks its library with the installed program, and builds the same by pkg-config.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

# Runs what has to fail with `pattern` in its output, and leaves the output in `output`.
function(run_in_vain pattern)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  # Messages of CMake are broken into lines wherever they are long.
  string(REGEX REPLACE "[ \n]+" " " flat "${output}")
  if(status EQUAL 0 OR NOT flat MATCHES "${pattern}")
    string(JOIN " " line ${ARGN})
    message(FATAL_ERROR "${line}\nended with ${status} and without \"${pattern}\":\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(prefix "${FOLDER}/prefix")
set(project "${FOLDER}/project")
file(REMOVE_RECURSE "${FOLDER}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
foreach(document IN ITEMS share/man/man1/attest.1 share/bash-completion/completions/attest share/doc/attest/guide/verdicts.md)
  file(READ "${prefix}/${document}" text)
  if(NOT text MATCHES "check")
    message(FATAL_ERROR "${document} says nothing of check")
  endif()
endforeach()

# The generator of this build: it may be the only one on the machine.
run("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}/user_project" -B "${project}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DEXAMPLE=${EXAMPLE}" "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("${CMAKE_COMMAND}" --build "${project}")
run("${CMAKE_CTEST_COMMAND}" --test-dir "${project}" --output-on-failure -E "broken|refuses|nobody")
foreach(test IN ITEMS "mine\\.attention .*Passed" "mine\\.multihead .*Skipped" "chosen\\.attention\\.f32 .*Passed"
                      "chosen\\.softmax\\.f32 .*Passed")
  if(NOT output MATCHES "attest\\.${test}")
    message(FATAL_ERROR "no test of the kernel is as attest.${test}:\n${output}")
  endif()
endforeach()
# Chosen is what the globs name, and no more than that.
if(output MATCHES "attest\\.chosen\\.(causal|masked|multihead)")
  message(FATAL_ERROR "a family that no glob names has a test:\n${output}")
endif()
# The kernel with a mistake fails, and what its test prints can be copied to see it again.
run_in_vain("attest\\.broken\\.attention\\.f32 .*Failed" "${CMAKE_CTEST_COMMAND}" --test-dir "${project}" --output-on-failure -R "broken\\.")
if(NOT output MATCHES "\n  replay +([^\n]*bin/attest replay [^\n]+)")
  message(FATAL_ERROR "no line to replay the finding:\n${output}")
endif()
run_in_vain("reproduced" sh -c "${CMAKE_MATCH_1}")
# One that refuses all is not passed over as one that a family does not concern.
run_in_vain("attest\\.refuses\\.attention\\.f32 .*Failed.* attest\\.nobody\\.causle\\.\\* .*Failed" "${CMAKE_CTEST_COMMAND}" --test-dir
            "${project}" -R "refuses|nobody")

set(in_c -G "${GENERATOR}" -S "${SOURCE}/kernel_project" "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_C_COMPILER=${C_COMPILER}")
run("${CMAKE_COMMAND}" ${in_c} -B "${FOLDER}/in_c")
run("${CMAKE_COMMAND}" --build "${FOLDER}/in_c")
run("${CMAKE_CTEST_COMMAND}" --test-dir "${FOLDER}/in_c" --output-on-failure --no-tests=error)
foreach(misuse IN ITEMS "component|no component \"proofs\"" "target|TARGET is \"nobody\"" "type|still is a STATIC_LIBRARY"
                        "word|does not know \"DTYPE.f32\"" "cases|CASES is \"0\"" "timeout|TIMEOUT is \"soon\"")
  string(REGEX MATCH "^[a-z]+" name "${misuse}")
  string(REGEX REPLACE "^[a-z]+.(.*)" "\\1" message "${misuse}")
  run_in_vain("${message}" "${CMAKE_COMMAND}" ${in_c} -B "${FOLDER}/misuse" -DMISUSE=${name})
endforeach()

run("${prefix}/bin/attest" check --kernel "${project}/libmine.so" --dtype f32 --cases 200 --out "${FOLDER}/run")

# A new project finds the headers and the program beside the program that wrote it.
run("${prefix}/bin/attest" init "${FOLDER}/new")
run(sh -ec "cd '${FOLDER}/new' && sed -i -e 's/--cases [0-9][0-9]*/--cases 20/' -e 's|^cc |${C_COMPILER} |' attest.sh && sh attest.sh")

# PKG_CONFIG is empty where there is none.
if(PKG_CONFIG)
  file(GLOB_RECURSE found "${prefix}/attest.pc")
  get_filename_component(folder "${found}" DIRECTORY)
  set(flags "env PKG_CONFIG_PATH='${folder}' '${PKG_CONFIG}'")
  run(sh -ec "cd '${FOLDER}'
    '${C_COMPILER}' -shared -fPIC $(${flags} --cflags attest) -o libplain.so '${SOURCE}/../../starter/mine.c' -lm
    $(${flags} --variable=program attest) check --kernel ./libplain.so --dtype f32 --cases 5 --out plain
    '${CXX_COMPILER}' $(${flags} --cflags attest-properties) -o plain_test '${EXAMPLE}' $(${flags} --libs attest-properties) -lgtest_main -lgtest
    ./plain_test")
endif()
file(REMOVE_RECURSE "${FOLDER}")
