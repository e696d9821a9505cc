# cmake -DSOURCE_DIR=<root> -P readme_is_quickstart.cmake
# The C++ code of README.md equals examples/quickstart.cpp, byte for byte, and has less than 80
# lines.
cmake_minimum_required(VERSION 3.25)

file(READ "${SOURCE_DIR}/README.md" readme)
file(READ "${SOURCE_DIR}/examples/quickstart.cpp" code)

string(REGEX MATCHALL "```cpp\n" blocks "${readme}")
list(LENGTH blocks count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "README.md: want one block of C++, have ${count}")
endif()
string(FIND "${readme}" "```cpp\n${code}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR "README.md: its block of C++ differs from examples/quickstart.cpp")
endif()

string(REGEX MATCHALL "\n" lines "${code}")
list(LENGTH lines count)
if(NOT count LESS 80)
  message(FATAL_ERROR "examples/quickstart.cpp has ${count} lines; want fewer than 80")
endif()
