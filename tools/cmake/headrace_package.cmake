# What `cmake --install` installs beside the command and the modules, for find_package(Headrace), pkg-config and CPack. All
# paths are relative to one another: an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(HEADRACE_COMPONENTS base devices cache pipeline train)
if(TARGET headrace_c)
  list(APPEND HEADRACE_COMPONENTS c)
endif()

install(TARGETS headrace_shared headrace_train_shared EXPORT HeadraceTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libraries NAMELINK_COMPONENT development
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/Headrace")
install(EXPORT HeadraceTargets NAMESPACE headrace:: DESTINATION "${package_folder}" COMPONENT development)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/HeadraceConfig.cmake.in" "${Headrace_BINARY_DIR}/HeadraceConfig.cmake"
  INSTALL_DESTINATION "${package_folder}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${Headrace_BINARY_DIR}/HeadraceConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${Headrace_BINARY_DIR}/HeadraceConfig.cmake" "${Headrace_BINARY_DIR}/HeadraceConfigVersion.cmake"
  DESTINATION "${package_folder}" COMPONENT development)

# The prefix as seen from the .pc files; CMAKE_INSTALL_LIBDIR may be deeper than lib/.
file(RELATIVE_PATH prefix_from_pc "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
foreach(name headrace headrace-train)
  configure_file("${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in" "${Headrace_BINARY_DIR}/${name}.pc" @ONLY)
  install(FILES "${Headrace_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
endforeach()

# `cpack` in the build folder: Debian packages, one a component.
set(CPACK_PACKAGE_NAME headrace)
set(CPACK_PACKAGE_VENDOR "Headrace")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "input engine for training data, and a mirrored trainer")
set(CPACK_PACKAGE_CONTACT "Headrace maintainers <maintainers@headrace.invalid>" CACHE STRING "Maintainer of the Debian packages")
set(CPACK_PACKAGE_DIRECTORY "${Headrace_BINARY_DIR}/packages")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL libraries development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# headrace_debian_package(component NAME package SECTION section TEXT description [DEPENDS packages])
function(headrace_debian_package component)
  cmake_parse_arguments(DEB "" "NAME;SECTION;TEXT;DEPENDS" "" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME "${DEB_NAME}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION "${DEB_SECTION}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${DEB_DEPENDS}" PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${DEB_TEXT}" PARENT_SCOPE)
endfunction()

headrace_debian_package(libraries NAME libheadrace${Headrace_VERSION_MAJOR} SECTION libs
  TEXT "Reads, decodes, shuffles, augments, batches and shards training data, and\nhands every device its share in time.")
# What other packages that link to the libraries depend on, and that the system's cache of libraries is to be made anew.
set(library libheadrace${Headrace_VERSION_MAJOR})
file(WRITE "${Headrace_BINARY_DIR}/debian/shlibs" "libheadrace ${Headrace_VERSION_MAJOR} ${library} (>= ${Headrace_VERSION})
libheadrace_train ${Headrace_VERSION_MAJOR} ${library} (>= ${Headrace_VERSION})
")
file(WRITE "${Headrace_BINARY_DIR}/debian/triggers" "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA "${Headrace_BINARY_DIR}/debian/shlibs;${Headrace_BINARY_DIR}/debian/triggers")
headrace_debian_package(development NAME libheadrace-dev SECTION libdevel
  TEXT "Headers, CMake package and pkg-config files, for programs in C++ and C."
  DEPENDS "libheadrace${Headrace_VERSION_MAJOR} (= ${Headrace_VERSION})")
if(TARGET headrace)
  list(APPEND CPACK_COMPONENTS_ALL command)
  headrace_debian_package(command NAME headrace SECTION science
    TEXT "Inspects, converts, benchmarks and trains on data sets from the command line.")
endif()
if(TARGET headrace_cuda)
  # NVIDIA's libraries come from its own installers: no package is named.
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  headrace_debian_package(cuda NAME libheadrace-cuda SECTION libs
    TEXT "The modules that the libraries and the command open where there is a GPU.\nNeed NVIDIA's driver; to train, cuDNN, cuBLAS and NCCL."
    DEPENDS "libheadrace${Headrace_VERSION_MAJOR} (= ${Headrace_VERSION})")
  set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF)
endif()
if(TARGET headrace_workers)
  list(APPEND CPACK_COMPONENTS_ALL workers)
  headrace_debian_package(workers NAME libheadrace-workers SECTION libs
    TEXT "The module that the libraries and the command open in one of several processes\nthat train together."
    DEPENDS "libheadrace${Headrace_VERSION_MAJOR} (= ${Headrace_VERSION})")
endif()
if(TARGET headrace_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
  headrace_debian_package(mpi NAME libheadrace-mpi SECTION libs
    TEXT "The module by which workers that mpirun or srun started exchange values\nover MPI."
    DEPENDS "libheadrace-workers (= ${Headrace_VERSION})")
endif()
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/debian_documents.cmake")
include(CPack)
