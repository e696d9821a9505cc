# cmake -DNM=<nm> -DOBJECTS=<object>... -P CheckSymbols.cmake
# Checks that no object defines a symbol that another object may not define, too: functions of
# headers are inline or templates, variables are inline. Names of one translation unit do not count.
cmake_minimum_required(VERSION 3.25)

if(NOT OBJECTS)
  message(FATAL_ERROR "no objects")
endif()
execute_process(COMMAND ${NM} --demangle --defined-only ${OBJECTS}
  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[0-9a-f]+ [ABCDGRST] [^\n]+" strong "${symbols}")
# The guard of config.hpp lies in a section group, of which linkers keep one.
list(FILTER strong EXCLUDE REGEX " roundpipe_is_header_only_in_one_file_and_compiled_in_another$")
foreach(symbol IN LISTS strong)
  message(SEND_ERROR "a second translation unit would define it again: ${symbol}")
endforeach()
