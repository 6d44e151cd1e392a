# headrace_floor(NAME devices SOURCES ... PUBLIC libs PRIVATE libs): one floor as a static library,
# headrace::devices, with the include root, warnings and sanitizers every target of the project has.

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

function(headrace_floor)
  cmake_parse_arguments(FLOOR "" "NAME" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  set(target headrace_${FLOOR_NAME})
  add_library(${target} STATIC ${FLOOR_SOURCES})
  add_library(headrace::${FLOOR_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${FLOOR_NAME})
  target_link_libraries(${target} PUBLIC headrace_options ${FLOOR_PUBLIC}
                        PRIVATE $<BUILD_INTERFACE:headrace_warnings> ${FLOOR_PRIVATE})
  file(GLOB headers RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "*.h")
  install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/headrace/${FLOOR_NAME}")
endfunction()
