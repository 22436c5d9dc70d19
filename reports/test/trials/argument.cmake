# "hidden_below", which fuzz's own test compiles core, properties and fuzz with.
include("${CMAKE_CURRENT_LIST_DIR}/../../../fuzz/test/trial_argument/add_row.cmake")
