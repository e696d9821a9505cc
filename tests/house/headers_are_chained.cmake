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
chain_headers("${WORK_DIR}" "${headers}")
expect(a.hpp "")
expect(b.hpp a.hpp)
expect(c.hpp b.hpp) # b.hpp includes more than a.hpp does
expect(d.hpp "")    # a.hpp is taken, and c.hpp comes under a condition
if(NOT followed STREQUAL "a.hpp;b.hpp")
  message(SEND_ERROR "followed: '${followed}'")
endif()

file(WRITE "${WORK_DIR}/e.hpp" "#include <c.hpp>\n")
chain_headers("${WORK_DIR}" "a.hpp;b.hpp;e.hpp")
expect(e.hpp b.hpp) # through c.hpp

file(WRITE "${WORK_DIR}/b.ipp" "#include <d.hpp>\n")
file(WRITE "${WORK_DIR}/f.hpp" "#include <b.hpp>\n#include <d.hpp>\n")
set(definitions_b.hpp b.ipp)
chain_headers("${WORK_DIR}" "a.hpp;b.hpp;c.hpp;f.hpp")
expect(b.hpp a.hpp)
expect(c.hpp "")    # b.ipp includes d.hpp, which c.hpp lacks
expect(f.hpp b.hpp)

file(WRITE "${WORK_DIR}/room/a.hpp" "")
file(WRITE "${WORK_DIR}/room/b.hpp" "#include <room/c.hpp>\n")
file(WRITE "${WORK_DIR}/room/c.hpp" "#include <room/a.hpp>\n")
order_definitions("${WORK_DIR}" "room/impl/a.ipp;room/impl/b.ipp;room/impl/c.ipp" ordered)
if(NOT ordered STREQUAL "room/impl/b.ipp;room/impl/c.ipp;room/impl/a.ipp")
  message(SEND_ERROR "definitions: '${ordered}'")
endif()
