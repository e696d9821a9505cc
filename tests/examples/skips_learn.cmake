# cmake [-DPROGRAM=<unet or encoder_decoder>] -P skips_learn.cmake
# The examples of skip connections print six losses, of which the last is below a quarter of the
# first.
cmake_minimum_required(VERSION 3.25)

include("${CMAKE_CURRENT_LIST_DIR}/../support/program.cmake")

function(check_program name)
  use_program(${name} skips_learn)
  execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE output RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${name} ended with ${result}:\n${output}")
  endif()
  string(REGEX MATCHALL "loss [0-9.]+" losses "${output}")
  list(LENGTH losses count)
  if(NOT count EQUAL 6)
    message(FATAL_ERROR "${name}: want six losses, have ${count}:\n${output}")
  endif()
  # All losses have four decimals, so comparing digits will do.
  list(TRANSFORM losses REPLACE "loss |[.]" "")
  list(TRANSFORM losses REPLACE "^0+(.)" "\\1")
  list(GET losses 0 first)
  list(GET losses 5 last)
  math(EXPR four_times "4 * ${last}")
  if(NOT four_times LESS first)
    message(FATAL_ERROR "${name}: the loss only went from ${first} to ${last}:\n${output}")
  endif()
endfunction()

check_program(unet)
check_program(encoder_decoder)
