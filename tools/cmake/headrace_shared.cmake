# The shared libraries: libheadrace, the engine with all floors below it and the C interface, and libheadrace_train. Made
# of the objects of the static floors, which tests, benchmarks and the command link to: nothing is compiled twice.

# A program runs with the minor release that it was built with: until 1.0 a library of another one has no such version of
# a symbol, and the loader says so. The C interface's symbols keep their version.
configure_file("${CMAKE_CURRENT_LIST_DIR}/headrace_exports.map.in" "${Headrace_BINARY_DIR}/headrace_exports.map" @ONLY)

# headrace_shared_library(target NAME file's PARTS floors ... LIBS what its users link to, too)
function(headrace_shared_library target)
  cmake_parse_arguments(SHARED "" "NAME" "PARTS;LIBS" ${ARGN})
  set(objects)
  set(needs)
  foreach(part IN LISTS SHARED_PARTS)
    list(APPEND objects $<TARGET_OBJECTS:headrace_${part}>)
    get_property(part_needs TARGET headrace_${part} PROPERTY HEADRACE_NEEDS)
    list(APPEND needs ${part_needs})
  endforeach()
  list(REMOVE_DUPLICATES needs)
  add_library(${target} SHARED ${objects})
  target_link_libraries(${target} PUBLIC ${SHARED_LIBS} PRIVATE ${needs} Threads::Threads)
  # No more than a C program needs; HeadraceConfig.cmake adds C++20 for those in C++.
  target_include_directories(${target} INTERFACE
    $<BUILD_INTERFACE:${Headrace_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_options(${target} PRIVATE "LINKER:-z,defs" "LINKER:-Bsymbolic-functions"
                      "LINKER:--version-script=${Headrace_BINARY_DIR}/headrace_exports.map")
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME ${SHARED_NAME} EXPORT_NAME lib${SHARED_NAME} LINKER_LANGUAGE CXX LIBRARY_OUTPUT_DIRECTORY "${Headrace_BINARY_DIR}"
    VERSION ${Headrace_VERSION} SOVERSION ${Headrace_VERSION_MAJOR} LINK_DEPENDS "${Headrace_BINARY_DIR}/headrace_exports.map"
    BUILD_RPATH_USE_ORIGIN ON INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)
endfunction()

set(engine base devices cache pipeline)
if(TARGET headrace_c)
  list(APPEND engine c)
endif()
headrace_shared_library(headrace_shared NAME headrace PARTS ${engine})
headrace_shared_library(headrace_train_shared NAME headrace_train PARTS train LIBS headrace_shared)
