# The Debian package: `cpack -G DEB --config build/release/CPackConfig.cmake` packs what `cmake --install` installs.
set(ATTEST_MAINTAINER "Attest <attest@localhost>" CACHE STRING "Who the package names as its maintainer")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME attest)
set(CPACK_PACKAGE_CONTACT "${ATTEST_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
    "Holds attention kernels to the properties that they must have and to a\ncertified exact answer, with a proved tolerance, and writes a report.")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION math)
# The shared libraries that the program is linked with, by the packages that they are of.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Kernels in Python, the walls around kernels, and what a C++ project needs that links attest::properties.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, python3-numpy, bubblewrap")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "python3-torch, libmpfr-dev, libmpfi-dev, libflint-dev, libflint-arb-dev | libflint-dev (>= 3), libboost1.81-dev | libboost-dev (>= 1.81), libeigen3-dev, nlohmann-json3-dev, libfmt-dev, librapidcheck-dev, libgtest-dev")
include(CPack)
