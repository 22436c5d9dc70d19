# Configures the project where two libraries are not found: both are named, with what each manager calls them.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${SOURCE}" -B "${FOLDER}" "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}"
          "-DCMAKE_C_COMPILER=${C_COMPILER}" -DATTEST_TESTS=OFF -DATTEST_BENCH=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPFI=ON
          -DCMAKE_DISABLE_FIND_PACKAGE_rapidcheck=ON
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
file(REMOVE_RECURSE "${FOLDER}")
# CMake breaks lines.
string(REGEX REPLACE "[ \n]+" " " output "${output}")
foreach(line IN ITEMS "Missing, or too old: rapidcheck, MPFI." "apt-get install librapidcheck-dev libmpfi-dev dnf install"
                      "dnf install mpfi-devel (and from its source: rapidcheck) brew" "conda install -c conda-forge rapidcheck mpfi What")
  string(FIND "${output}" "${line}" at)
  if(status EQUAL 0 OR at EQUAL -1)
    message(FATAL_ERROR "without \"${line}\" (status ${status}):\n${output}")
  endif()
endforeach()
