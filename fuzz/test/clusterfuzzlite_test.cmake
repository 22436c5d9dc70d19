# Runs .clusterfuzzlite/build.sh with what ClusterFuzzLite's image sets, on one target, and fuzzes with what it leaves.
# The script and the image's conventions are tested; the image is not here.
include("${CMAKE_CURRENT_LIST_DIR}/../../reports/test/install/run.cmake")

set(out "${FOLDER}/out")
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${out}" "${FOLDER}/work")
set(flags "-O1 -fno-omit-frame-pointer -gline-tables-only -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION")
string(APPEND flags " -fsanitize=address -fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link")
run("${CMAKE_COMMAND}" -E env "CC=${CLANG}" "CXX=${CLANGXX}" "CFLAGS=${flags}" "CXXFLAGS=${flags} -stdlib=libc++"
    LIB_FUZZING_ENGINE=-fsanitize=fuzzer "OUT=${out}" "WORK=${FOLDER}/work" SRC=/nowhere "ATTEST_SOURCE=${SOURCE}"
    FUZZ_TARGETS=manifest_fuzzer ATTEST_JOBS=1 bash "${SOURCE}/.clusterfuzzlite/build.sh")
foreach(file IN ITEMS manifest_fuzzer manifest_fuzzer.dict manifest_fuzzer_seed_corpus.zip)
  if(NOT EXISTS "${out}/${file}")
    message(FATAL_ERROR "build.sh left no ${file}")
  endif()
endforeach()
# As the image that runs it: elsewhere, with the libraries that came along.
file(RENAME "${out}" "${FOLDER}/elsewhere")
run(ldd "${FOLDER}/elsewhere/manifest_fuzzer")
if(NOT output MATCHES "libflint[^\n]* => ${FOLDER}/elsewhere/lib/")
  message(FATAL_ERROR "the libraries that came along are not used:\n${output}")
endif()
# That image has the C library only.
string(REGEX MATCHALL "[^\n]+ => [^\n]+" libraries "${output}")
foreach(library IN LISTS libraries)
  if(NOT library MATCHES " => ${FOLDER}/elsewhere/lib/|[\t ](libc|libm|libdl|librt|libpthread|libresolv)\\.so")
    message(FATAL_ERROR "did not come along: ${library}")
  endif()
endforeach()
file(ARCHIVE_EXTRACT INPUT "${FOLDER}/elsewhere/manifest_fuzzer_seed_corpus.zip" DESTINATION "${FOLDER}/corpus")
run("${FOLDER}/elsewhere/manifest_fuzzer" "-dict=${FOLDER}/elsewhere/manifest_fuzzer.dict" -runs=2000 -seed=1 "${FOLDER}/corpus")
if(NOT output MATCHES "cov: [1-9]")
  message(FATAL_ERROR "the target is not instrumented:\n${output}")
endif()
file(REMOVE_RECURSE "${FOLDER}")
