# Packs the build in BUILD as a Debian package, unpacks it as dpkg would, and checks a kernel with the program in it.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${FOLDER}")
run("${CPACK}" -G DEB --config "${BUILD}/CPackConfig.cmake" -B "${FOLDER}")
file(GLOB package "${FOLDER}/attest_*.deb")
list(LENGTH package packages)
if(NOT packages EQUAL 1)
  message(FATAL_ERROR "not one package: ${package}")
endif()
# Whatever is installed needs these at run time; a package without them would install and not start.
run(dpkg-deb -f "${package}" Depends)
foreach(needed IN ITEMS libc6 libmpfr6 libflint)
  if(NOT output MATCHES "${needed}")
    message(FATAL_ERROR "the package does not depend on ${needed}:\n${output}")
  endif()
endforeach()
run(dpkg-deb -x "${package}" "${FOLDER}/root")
# A build folder's path in an installed file would be a file that is not there elsewhere.
file(GLOB_RECURSE texts "${FOLDER}/root/usr/lib*/*.cmake" "${FOLDER}/root/usr/lib*/*.pc")
foreach(text IN LISTS texts)
  file(READ "${text}" content)
  string(FIND "${content}" "${BUILD}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${text} names ${BUILD}")
  endif()
endforeach()
foreach(file IN ITEMS bin/attest share/man/man1/attest.1 share/bash-completion/completions/attest share/doc/attest/numbers.md share/doc/attest/guide/verdicts.md share/doc/attest/LICENSE include/attest/kernel.h
                      share/attest/adapters/python/attest_adapter.py)
  if(NOT EXISTS "${FOLDER}/root/usr/${file}")
    message(FATAL_ERROR "the package lacks ${file}")
  endif()
endforeach()
# From a folder of its own, and a kernel in Python too: the adapters are found beside the program.
set(attest "${FOLDER}/root/usr/bin/attest")
run("${CMAKE_COMMAND}" -E chdir "${FOLDER}" "${attest}" check --kernel builtin:flash --dtype f32 --cases 20 --out run)
execute_process(COMMAND /usr/bin/python3 -c "import numpy" RESULT_VARIABLE without_numpy OUTPUT_QUIET ERROR_QUIET)
if(without_numpy EQUAL 0)
  run("${CMAKE_COMMAND}" -E chdir "${FOLDER}" "${attest}" check --kernel
      "exec:/usr/bin/python3 ${FOLDER}/root/usr/share/attest/adapters/python/numpy_example.py" --dtype f32 --property
      attention.oracle --cases 20 --out run2)
endif()
file(REMOVE_RECURSE "${FOLDER}")
