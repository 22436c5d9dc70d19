# Installs the build in BUILD and does with it what a user does: builds user_project on find_package(attest), runs its
# tests, and checks its library with the installed program.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " line ${ARGN})
    message(FATAL_ERROR "${line}\n${output}")
  endif()
endfunction()

set(prefix "${FOLDER}/prefix")
set(project "${FOLDER}/project")
file(REMOVE_RECURSE "${FOLDER}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
foreach(document IN ITEMS share/man/man1/attest.1 share/bash-completion/completions/attest)
  file(READ "${prefix}/${document}" text)
  if(NOT text MATCHES "check")
    message(FATAL_ERROR "${document} says nothing of check")
  endif()
endforeach()
# The generator of this build: it may be the only one on the machine.
run("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}/user_project" -B "${project}" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DEXAMPLE=${EXAMPLE}" "-DCMAKE_C_COMPILER=${C_COMPILER}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}")
run("${CMAKE_COMMAND}" --build "${project}")
run("${CMAKE_CTEST_COMMAND}" --test-dir "${project}" --output-on-failure)
run("${prefix}/bin/attest" check --kernel "${project}/libmine.so" --dtype f32 --cases 200 --out "${FOLDER}/run")
file(REMOVE_RECURSE "${FOLDER}")
