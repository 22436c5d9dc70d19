# Lays the build in BUILD out as a wheel does, the program inside the package, and uses both from there. What auditwheel
# adds, and a machine without the libraries, are for .ci/wheel.
include("${CMAKE_CURRENT_LIST_DIR}/run.cmake")

file(REMOVE_RECURSE "${FOLDER}")
set(package "${FOLDER}/site/attest")
file(MAKE_DIRECTORY "${FOLDER}/site")
file(COPY "${SOURCE}/core/adapters/python/attest" DESTINATION "${FOLDER}/site" PATTERN __pycache__ EXCLUDE)
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${package}/program" --component program)
foreach(file IN ITEMS bin/attest libexec/attest/kernel-start libexec/attest/kernel-host include/attest/kernel.h
                      share/attest/adapters/python/attest_adapter.py share/attest/adapters/node/attest_adapter.js
                      share/attest/schemas/contract.schema.json share/doc/attest/LICENSE share/doc/attest/guide/verdicts.md share/man/man1/attest.1)
  if(NOT EXISTS "${package}/program/${file}")
    message(FATAL_ERROR "the wheel lacks ${file}")
  endif()
endforeach()
# What C++ links is of an installation: megabytes that no Python project uses.
file(GLOB_RECURSE development "${package}/program/*.a" "${package}/program/*.pc" "${package}/program/*.cmake"
     "${package}/program/include/attest/internal/*")
if(development)
  message(FATAL_ERROR "the wheel has what is for C++ alone: ${development}")
endif()

set(python "${CMAKE_COMMAND}" -E env --unset=ATTEST_PROGRAM "PYTHONPATH=${FOLDER}/site" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3)
run("${CMAKE_COMMAND}" -E chdir "${FOLDER}" ${python} -m attest check --kernel builtin:flash --dtype f32 --cases 20 --out run)
run("${CMAKE_COMMAND}" -E chdir "${FOLDER}" ${python} -m attest init new)
file(READ "${FOLDER}/new/attest.sh" script)
string(FIND "${script}" "ATTEST=${package}/program" at)
if(at EQUAL -1)
  message(FATAL_ERROR "attest init names another home than ${package}/program:\n${script}")
endif()
execute_process(COMMAND /usr/bin/python3 -c "import numpy" RESULT_VARIABLE without_numpy OUTPUT_QUIET ERROR_QUIET)
if(without_numpy EQUAL 0)
  file(WRITE "${FOLDER}/mine.py" "import attest
import numpy

numpy.seterr(all='ignore')


def mine(q, k, v, scale=1.0, factor=1.0):
    scores = (q @ k.swapaxes(-1, -2)) * q.dtype.type(scale * factor)
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True, initial=-numpy.inf))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def told(factor):
    try:
        return attest.check(lambda q, k, v, scale=1.0: mine(q, k, v, scale, factor), dtypes='f64', cases=20,
                            properties='attention.oracle', manifest={'fully_masked_row': 'nan'})['verdict']
    except AssertionError as error:
        return str(error).splitlines()[0]


kept = attest.observe(mine, 'calls')
kept.close()
print(told(1.0), told(1.01))
")
  run("${CMAKE_COMMAND}" -E chdir "${FOLDER}" ${python} mine.py)
  if(NOT output MATCHES "held <lambda>: violated: attention.oracle in f64")
    message(FATAL_ERROR "a function in Python is judged otherwise:\n${output}")
  endif()
endif()
file(REMOVE_RECURSE "${FOLDER}")
