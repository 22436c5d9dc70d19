# Copies of files of the tree, each with something added, and new files beside them: what a trial of an addition is made
# of. Included by scripts that have SOURCE, the tree, and OUT, the folder of the copies, in which each lies where it does
# in the tree.

# insert(FILE BEFORE TEXT): in FILE, TEXT stands before BEFORE, which must occur exactly once. A change that moves the
# place so stops the trial, and not what the trial shows.
function(insert file before text)
  set(from "${SOURCE}/${file}")
  if(EXISTS "${OUT}/${file}")
    set(from "${OUT}/${file}")
  endif()
  file(READ "${from}" content)
  string(FIND "${content}" "${before}" first)
  string(FIND "${content}" "${before}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "${file}: this must occur exactly once:\n${before}")
  endif()
  string(REPLACE "${before}" "${text}${before}" content "${content}")
  file(WRITE "${OUT}/${file}" "${content}")
endfunction()

# create(FILE TEXT): a file that the tree does not have.
function(create file text)
  if(EXISTS "${SOURCE}/${file}" OR EXISTS "${OUT}/${file}")
    message(FATAL_ERROR "${file}: is there already")
  endif()
  file(WRITE "${OUT}/${file}" "${text}")
endfunction()
