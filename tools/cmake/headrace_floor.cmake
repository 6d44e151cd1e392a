# headrace_floor(NAME devices SOURCES ... PUBLIC libs PRIVATE libs): one floor as a static library,
# headrace::devices, with the include root, warnings and sanitizers every target of the project has. The shared
# libraries are made of the same objects.

add_library(headrace_options INTERFACE)
target_include_directories(headrace_options INTERFACE
  $<BUILD_INTERFACE:${Headrace_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(headrace_options INTERFACE cxx_std_20)

add_library(headrace_warnings INTERFACE)
target_compile_options(headrace_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion>
  # Within a unity build GCC takes every source for a header, in which an unnamed namespace would be a mistake.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<BOOL:${HEADRACE_UNITY}>>:-Wno-subobject-linkage>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${HEADRACE_WERROR}>>:-Werror>)

if(HEADRACE_SANITIZE)
  string(REPLACE "," ";" sanitizers "${HEADRACE_SANITIZE}")
  foreach(sanitizer IN LISTS sanitizers)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizer}>)
    add_link_options(-fsanitize=${sanitizer})
  endforeach()
  if(undefined IN_LIST sanitizers)
    # Each a test at every use of a pointer, a quarter of the compile time. A null pointer that is used stops the program
    # anyway; objects of a wrong type or size are found by AddressSanitizer where they reach beyond their memory.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=null,vptr,object-size>)
  endif()
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_compile_definitions(HEADRACE_SANITIZED=1)
endif()

# Only faces are exported (devices/base/api.h), and what is exported nobody outside replaces: it may be inlined.
function(headrace_hide_rooms target)
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-semantic-interposition>)
endfunction()

function(headrace_floor)
  cmake_parse_arguments(FLOOR "" "NAME" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target headrace_${FLOOR_NAME})
  add_library(${target} STATIC ${FLOOR_SOURCES})
  add_library(headrace::${FLOOR_NAME} ALIAS ${target})
  add_library(Headrace::${FLOOR_NAME} ALIAS ${target})
  headrace_hide_rooms(${target})
  # What its objects need wherever they are linked: headrace_shared.cmake.
  set_property(TARGET ${target} PROPERTY HEADRACE_NEEDS ${FLOOR_PRIVATE})
  target_link_libraries(${target} PUBLIC headrace_options ${FLOOR_PUBLIC}
                        PRIVATE $<BUILD_INTERFACE:headrace_warnings> ${FLOOR_PRIVATE})
  if(CMAKE_CURRENT_SOURCE_DIR STREQUAL "${Headrace_SOURCE_DIR}/${FLOOR_NAME}")  # the ground has its faces listed
    file(GLOB headers CONFIGURE_DEPENDS "*.h")
    headrace_install_headers("${headers}" ${FLOOR_NAME})
  endif()
endfunction()

# headrace_install_headers("files ..." folder): faces, as <headrace/folder/...>
function(headrace_install_headers files folder)
  if(HEADRACE_SHARED)
    install(FILES ${files} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/headrace/${folder}" COMPONENT development)
  endif()
endfunction()
