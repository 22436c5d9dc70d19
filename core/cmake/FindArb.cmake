# Defines the imported target Arb::Arb (Debian ships no CMake package for it).
find_path(Arb_INCLUDE_DIR NAMES arb.h)
find_library(Arb_LIBRARY NAMES flint-arb)
find_library(Arb_flint_LIBRARY NAMES flint)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Arb REQUIRED_VARS Arb_LIBRARY Arb_flint_LIBRARY Arb_INCLUDE_DIR)
if(Arb_FOUND AND NOT TARGET Arb::Arb)
  add_library(Arb::Arb UNKNOWN IMPORTED)
  set_target_properties(Arb::Arb PROPERTIES IMPORTED_LOCATION "${Arb_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                      "${Arb_INCLUDE_DIR}" INTERFACE_LINK_LIBRARIES "${Arb_flint_LIBRARY}")
endif()
mark_as_advanced(Arb_INCLUDE_DIR Arb_LIBRARY Arb_flint_LIBRARY)
