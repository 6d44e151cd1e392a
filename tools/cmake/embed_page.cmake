# Writes a page with its style and its scripts within it as a C++ source that defines page_template().
#   cmake -DPAGE=page.html -DCHART_JS=FILE -DOUT=FILE -P embed_page.cmake
# The page names each part on a line of its own: <link rel="stylesheet" href="NAME"> or <script src="NAME"></script>, of files
# beside it; chart.js is CHART_JS.
get_filename_component(folder "${PAGE}" DIRECTORY)
file(READ "${PAGE}" page)
string(REGEX MATCHALL "<(link|script)[^>]* (href|src)=\"[^\"]*\">(</script>)?" parts "${page}")
foreach(part IN LISTS parts)
  string(REGEX REPLACE ".*(href|src)=\"([^\"]*)\".*" "\\2" name "${part}")
  set(file "${folder}/${name}")
  if(name STREQUAL "chart.js")
    set(file "${CHART_JS}")
  endif()
  file(READ "${file}" text)
  if(text MATCHES "</(script|style)")  # which would end the element
    message(FATAL_ERROR "embed_page: ${file} holds ${CMAKE_MATCH_0}: name another file")
  endif()
  if(part MATCHES "^<link")
    string(REPLACE "${part}" "<style>\n${text}</style>" page "${page}")
  else()
    string(REPLACE "${part}" "<script>\n${text}</script>" page "${page}")
  endif()
endforeach()

# Compilers need not take literals of more than 65536 bytes: cut after semicolons, where no letter is cut.
set(literals "")
string(LENGTH "${page}" left)
while(left GREATER 0)
  string(SUBSTRING "${page}" 0 32000 piece)
  if(left GREATER 32000)
    string(FIND "${piece}" ";" last REVERSE)
    if(last LESS 0)
      message(FATAL_ERROR "embed_page: no semicolon in 32000 bytes of ${PAGE} with its parts")
    endif()
    math(EXPR last "${last} + 1")
    string(SUBSTRING "${page}" 0 ${last} piece)
  endif()
  string(LENGTH "${piece}" length)
  string(SUBSTRING "${page}" ${length} -1 page)
  string(LENGTH "${page}" left)
  string(APPEND literals "  text += R\"piece(${piece})piece\";\n")
endwhile()
file(WRITE "${OUT}" "// Written by embed_page.cmake.
#include <string>

namespace headrace::tools {

std::string page_template();

std::string page_template() {
  std::string text;
${literals}  return text;
}

}  // namespace headrace::tools
")
