# roundpipe::compiled: the headers, and a static library of what include/roundpipe/ROOM/impl/ defines.
# What links it sees declarations where what links roundpipe::roundpipe sees definitions, too. It is
# built for users with ROUNDPIPE_BUILD_COMPILED=ON, and for our own programs.
add_library(roundpipe_compiled STATIC)
add_library(roundpipe::compiled ALIAS roundpipe_compiled)
set_target_properties(roundpipe_compiled PROPERTIES
  EXPORT_NAME compiled POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
target_link_libraries(roundpipe_compiled PUBLIC roundpipe)
target_compile_definitions(roundpipe_compiled PUBLIC ROUNDPIPE_COMPILED)

# Few source files: rooms share most of what they include.
set(_rooms_of_resources core hosts system model optim backend bubble estimate simulate trace io data testing)
set(_rooms_of_plans partition schedule policies graph memory plan adaws)
set(_rooms_of_runtime
  runtime/state runtime/execute runtime/actions runtime/probe runtime runtime/serial snapshots)
list(TRANSFORM ROUNDPIPE_DEFINITIONS REPLACE "^include/" "" OUTPUT_VARIABLE _definitions)
include(${CMAKE_CURRENT_LIST_DIR}/HeaderChains.cmake)
order_definitions("${PROJECT_SOURCE_DIR}/include" "${_definitions}" _definitions)
set(_left ${_definitions})
foreach(_source plans resources runtime)
  set(_content)
  set(_instances) # of templates, before any use: GCC 12 leaves out constexpr members that it has met
  foreach(_file IN LISTS _definitions)
    string(REGEX REPLACE "^roundpipe/(.*)/impl/.*" "\\1" _room "${_file}")
    if(_room IN_LIST _rooms_of_${_source})
      string(APPEND _content "#include <${_file}>\n")
      list(REMOVE_ITEM _left ${_file})
      string(REGEX REPLACE "/impl/(.*)\\.ipp$" "/\\1.hpp" _header "${_file}")
      file(STRINGS "${PROJECT_SOURCE_DIR}/include/${_header}" _templates REGEX "^extern template ")
      foreach(_template IN LISTS _templates)
        string(REGEX REPLACE "^extern " "" _template "${_template}")
        string(APPEND _instances "#include <${_header}>\n${_template}\n")
      endforeach()
    endif()
  endforeach()
  string(PREPEND _content "${_instances}")
  if(_content)
    file(CONFIGURE OUTPUT compiled/${_source}.cpp CONTENT "@_content@" @ONLY)
    target_sources(roundpipe_compiled PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/compiled/${_source}.cpp)
  endif()
endforeach()
if(_left)
  message(FATAL_ERROR "RoundpipeCompiled.cmake compiles no ${_left}")
endif()

# For our own programs it is compiled as they are: with their warnings, for this machine's CPU, and
# with the asserts that tests keep. With ROUNDPIPE_BUILD_COMPILED it is what users get.
if(NOT ROUNDPIPE_BUILD_COMPILED)
  target_compile_options(roundpipe_compiled PRIVATE
    $<TARGET_PROPERTY:roundpipe_program,INTERFACE_COMPILE_OPTIONS> -UNDEBUG)
endif()
target_compile_options(roundpipe_compiled PRIVATE $<$<CONFIG:Release>:-O2>)
