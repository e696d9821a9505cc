# cmake -DSOURCE_DIR=<root> -DCXX=<g++ or clang++> -DNM=<nm> -DWORK_DIR=<folder>
#   -P symbols_are_checked.cmake
# CheckSymbols.cmake accepts what headers may define, and refuses what they may not.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${WORK_DIR}")
function(check name code expected)
  file(WRITE "${WORK_DIR}/${name}.cpp" "${code}\n")
  execute_process(COMMAND ${CXX} -std=c++20 -c ${name}.cpp -o ${name}.o
    WORKING_DIRECTORY "${WORK_DIR}" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} -DNM=${NM} -DOBJECTS=${WORK_DIR}/${name}.o
      -P ${SOURCE_DIR}/cmake/CheckSymbols.cmake
    RESULT_VARIABLE status ERROR_VARIABLE error)
  if(expected STREQUAL "accepted")
    if(NOT status EQUAL 0)
      message(SEND_ERROR "${name} is refused: ${error}")
    endif()
  elseif(status EQUAL 0 OR NOT error MATCHES "${expected}")
    message(SEND_ERROR "${name}: want a message with '${expected}', have: ${error}")
  endif()
endfunction()
check(good "inline int f() { return 1; }
template <class T> T g() { return 2; }
inline int x = f() + g<int>();
struct S { virtual ~S() = default; static inline int y = x; };
int const z = S().y;" accepted)
check(function "int f() { return 1; }" "f\\(\\)")
check(variable "int x = 1;" "D x")
check(zero "int x;" "B x")
check(constant "extern int const x = 1;" "R x")
check(specialization "template <class T> void g(T) {}\ntemplate <> void g(int) {}" "g<int>")
