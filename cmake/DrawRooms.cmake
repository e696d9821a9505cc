# cmake -DSOURCE_DIR=<root> [-DUPDATE=ON] -P DrawRooms.cmake
# Checks that the pages show the rooms as they are:
#   - docs/design.md, between two markers, the drawing of all #includes between rooms, as this script
#     makes it; with UPDATE the script rewrites the drawing;
#   - docs/design.md and README.md, in their section "Rooms", a table with a row for each room, in the
#     order of RoundpipeRooms.cmake.
cmake_minimum_required(VERSION 3.25)
include("${CMAKE_CURRENT_LIST_DIR}/RoundpipeRooms.cmake")
get_filename_component(SOURCE_DIR "${SOURCE_DIR}" ABSOLUTE)

# includes_ROOM: the rooms whose headers the headers of ROOM include.
set(include_dir "${SOURCE_DIR}/include/roundpipe")
file(GLOB_RECURSE headers RELATIVE "${include_dir}" "${include_dir}/*.hpp" "${include_dir}/*.cuh"
  "${include_dir}/*.ipp")
foreach(header IN LISTS headers)
  roundpipe_room_of("${header}" room)
  file(STRINGS "${include_dir}/${header}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*<roundpipe/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE ".*<roundpipe/([^>]+)>.*" "\\1" included "${line}")
    roundpipe_room_of("${included}" other)
    if(NOT other STREQUAL room AND NOT other IN_LIST includes_${room})
      list(APPEND includes_${room} "${other}")
    endif()
  endforeach()
endforeach()

# The drawing: a line for each room, without the rooms that it also reaches through others.
set(drawing "```mermaid\nflowchart TD\n")
foreach(room IN LISTS ROUNDPIPE_ROOMS)
  set(through)
  foreach(other IN LISTS includes_${room})
    list(APPEND through ${reached_${other}})
  endforeach()
  set(reached_${room} ${includes_${room}} ${through})
  set(nearest)
  foreach(other IN LISTS ROUNDPIPE_ROOMS)
    if(other IN_LIST includes_${room} AND NOT other IN_LIST through)
      list(APPEND nearest "${other}")
    endif()
  endforeach()
  list(TRANSFORM nearest PREPEND "r_") # "graph" alone is a word of Mermaid's own
  list(JOIN nearest " & " from)
  string(REPLACE "/" "_" from "${from}")
  string(REPLACE "/" "_" node "r_${room}")
  string(APPEND drawing "  ")
  if(from)
    string(APPEND drawing "${from} --> ")
  endif()
  string(APPEND drawing "${node}[\"${room}\"]\n")
endforeach()
string(APPEND drawing "```\n")

file(READ "${SOURCE_DIR}/docs/design.md" page)
set(begin "<!-- rooms: drawn by cmake/DrawRooms.cmake -->\n")
set(end "<!-- end of rooms -->\n")
string(FIND "${page}" "${begin}" first)
string(FIND "${page}" "${end}" last)
if(first EQUAL -1 OR last LESS first)
  message(FATAL_ERROR "docs/design.md: want the drawing of the rooms between the lines\n${begin}${end}")
endif()
string(LENGTH "${begin}" length)
math(EXPR first "${first} + ${length}")
math(EXPR length "${last} - ${first}")
string(SUBSTRING "${page}" ${first} ${length} drawn)
if(NOT drawn STREQUAL drawing)
  if(NOT UPDATE)
    message(FATAL_ERROR "docs/design.md does not draw the rooms as they include each other. Run\n"
      "  cmake -DSOURCE_DIR=. -DUPDATE=ON -P cmake/DrawRooms.cmake")
  endif()
  string(SUBSTRING "${page}" 0 ${first} before)
  string(SUBSTRING "${page}" ${last} -1 after)
  file(WRITE "${SOURCE_DIR}/docs/design.md" "${before}${drawing}${after}")
endif()

# The tables.
foreach(name docs/design.md README.md)
  file(READ "${SOURCE_DIR}/${name}" page)
  string(REGEX REPLACE "^.*\n## ([0-9]+\\. )?Rooms\n(.*)$" "\\2" section "${page}")
  string(REGEX REPLACE "\n## .*$" "" section "${section}")
  string(REGEX MATCHALL "\n\\| `[a-z/]+/` \\|" rows "${section}")
  list(TRANSFORM rows REPLACE "^\n\\| `(.+)/` \\|$" "\\1")
  if(NOT rows STREQUAL ROUNDPIPE_ROOMS)
    message(SEND_ERROR "${name}: the table of its section Rooms names\n"
      "  ${rows}\nRoundpipeRooms.cmake names\n  ${ROUNDPIPE_ROOMS}")
  endif()
endforeach()
