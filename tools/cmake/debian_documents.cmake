# Run by cpack before it packs: the copyright and the changelog that a Debian package has, in each of them.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(component IN LISTS CPACK_COMPONENTS_ALL)
  string(TOUPPER ${component} upper)
  set(name "${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  set(folder "${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share/doc/${name}")
  file(WRITE "${folder}/copyright" "Copyright: the authors of Headrace
License: Apache-2.0

On Debian systems the text of the Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0.
")
  if(component STREQUAL "command" AND EXISTS "/usr/share/doc/libjs-chart.js/copyright")  # within its pages
    file(READ "/usr/share/doc/libjs-chart.js/copyright" chart_js)
    file(APPEND "${folder}/copyright" "\nOf Chart.js, which draws the pages of headrace report:\n\n${chart_js}")
  endif()
  file(WRITE "${folder}/changelog" "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  execute_process(COMMAND gzip -9nf "${folder}/changelog" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
