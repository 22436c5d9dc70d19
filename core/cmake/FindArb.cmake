# Defines the imported target Arb::Arb (Debian ships no CMake package for it). Since FLINT 3 Arb is a part of FLINT, before
# that a library of its own; attest/scalars/arb_header.h includes its header from the place that is found here.
find_path(Arb_INCLUDE_DIR NAMES flint/arb.h arb.h)
find_library(Arb_flint_LIBRARY NAMES flint)
if(EXISTS "${Arb_INCLUDE_DIR}/flint/arb.h")
  set(Arb_LIBRARY "${Arb_flint_LIBRARY}")
else()
  find_library(Arb_LIBRARY NAMES flint-arb)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Arb REQUIRED_VARS Arb_LIBRARY Arb_flint_LIBRARY Arb_INCLUDE_DIR)
if(Arb_FOUND AND NOT TARGET Arb::Arb)
  add_library(Arb::Arb UNKNOWN IMPORTED)
  set_target_properties(Arb::Arb PROPERTIES IMPORTED_LOCATION "${Arb_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                      "${Arb_INCLUDE_DIR}" INTERFACE_LINK_LIBRARIES "${Arb_flint_LIBRARY}")
endif()
mark_as_advanced(Arb_INCLUDE_DIR Arb_LIBRARY Arb_flint_LIBRARY)
