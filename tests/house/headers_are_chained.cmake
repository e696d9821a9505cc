# cmake -DSOURCE_DIR=<root> -DWORK_DIR=<folder> -P headers_are_chained.cmake
# The chains of the header checks: each header includes the one before, and is in one chain.
cmake_minimum_required(VERSION 3.25)

include("${SOURCE_DIR}/cmake/HeaderChains.cmake")
file(REMOVE_RECURSE "${WORK_DIR}")
file(WRITE "${WORK_DIR}/a.hpp" "#include <vector>\n")
file(WRITE "${WORK_DIR}/b.hpp" "#include <a.hpp> // for A\n")
file(WRITE "${WORK_DIR}/c.hpp" "#include <a.hpp>\n#include <b.hpp>\n")
file(WRITE "${WORK_DIR}/d.hpp" "#include <a.hpp>\n#ifdef E\n#  include <c.hpp>\n#endif\n")

# expect(<header> <before>): the header before it; "" for none
function(expect header before)
  if(NOT "${before_${header}}" STREQUAL "${before}")
    message(SEND_ERROR "${header} comes after '${before_${header}}', not after '${before}'")
  endif()
endfunction()

set(headers a.hpp b.hpp c.hpp d.hpp)
chain_headers("${WORK_DIR}" "${headers}" "")
expect(a.hpp "")
expect(b.hpp a.hpp)
expect(c.hpp b.hpp) # a.hpp is taken
expect(d.hpp "")    # c.hpp comes under a condition
if(NOT followed STREQUAL "a.hpp;b.hpp")
  message(SEND_ERROR "followed: '${followed}'")
endif()

chain_headers("${WORK_DIR}" "${headers}" "b.hpp")
expect(b.hpp a.hpp)
expect(c.hpp "") # b.hpp is an end
if(NOT followed STREQUAL "a.hpp")
  message(SEND_ERROR "with an end, followed: '${followed}'")
endif()
