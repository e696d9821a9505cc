# cmake -DSOURCE_DIR=<root> -DCXX=<g++ or clang++> -DWORK_DIR=<folder> -P mixed_modes.cmake
# A program of two files links if both are header-only, or both compiled, and not if they differ:
# with every linker that works here, optimized or not.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${WORK_DIR}")
file(WRITE "${WORK_DIR}/part.cpp" "#include <roundpipe/config.hpp>\nint part() { return 0; }\n")
file(WRITE "${WORK_DIR}/control.cpp" "int main() {}\n")
file(WRITE "${WORK_DIR}/main.cpp"
  "#include <roundpipe/config.hpp>\nint part();\nint main() { return part(); }\n")
set(linkers default)
foreach(linker bfd gold lld)
  find_program(ld_${linker} ld.${linker})
  if(ld_${linker}) # some compilers cannot use each linker that is installed
    execute_process(COMMAND ${CXX} -fuse-ld=${linker} control.cpp -o control
      WORKING_DIRECTORY "${WORK_DIR}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
    if(status EQUAL 0)
      list(APPEND linkers ${linker})
    endif()
  endif()
endforeach()

foreach(level -O0 -O2)
  foreach(file part main)
    foreach(mode header_only compiled)
      set(define)
      if(mode STREQUAL "compiled")
        set(define -DROUNDPIPE_COMPILED)
      endif()
      execute_process(COMMAND ${CXX} -std=c++20 ${level} ${define} -Wall -Wextra -Wpedantic -Werror
        -ffunction-sections -fdata-sections -I ${SOURCE_DIR}/include -c ${file}.cpp -o ${file}.${mode}.o
        WORKING_DIRECTORY "${WORK_DIR}" COMMAND_ERROR_IS_FATAL ANY)
    endforeach()
  endforeach()
  foreach(linker IN LISTS linkers)
    set(option -Wl,--gc-sections)
    if(NOT linker STREQUAL "default")
      list(APPEND option -fuse-ld=${linker})
    endif()
    foreach(part header_only compiled)
      foreach(main header_only compiled)
        execute_process(COMMAND ${CXX} ${option} part.${part}.o main.${main}.o -o program
          WORKING_DIRECTORY "${WORK_DIR}" RESULT_VARIABLE status ERROR_VARIABLE error)
        set(what "${level}, linker ${linker}, ${part} and ${main}")
        if(part STREQUAL main)
          if(NOT status EQUAL 0)
            message(FATAL_ERROR "${what}: does not link: ${error}")
          endif()
          execute_process(COMMAND "${WORK_DIR}/program" COMMAND_ERROR_IS_FATAL ANY)
        elseif(status EQUAL 0)
          message(FATAL_ERROR "${what}: links")
        elseif(NOT error MATCHES "roundpipe_is_header_only_in_one_file_and_compiled_in_another")
          message(FATAL_ERROR "${what}: want a message that says what is mixed: ${error}")
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()
message(STATUS "linkers: ${linkers}")
