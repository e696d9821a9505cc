# The consumers' programs, with warnings that the library's headers must not trigger either.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(_programs "${CMAKE_CURRENT_LIST_DIR}")

function(add_consumer name library)
  add_executable(${name} "${_programs}/main.cpp")
  target_link_libraries(${name} PRIVATE ${library})
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF NO_SYSTEM_FROM_IMPORTED ON)
  target_compile_options(${name} PRIVATE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
endfunction()
if(NOT CONSUMER_CUDA) # the consumers with CUDA have programs of their own
  add_consumer(consumer roundpipe::roundpipe)
endif()
if(CONSUMER_COMPILED)
  add_consumer(consumer_compiled roundpipe::compiled)
elseif(TARGET roundpipe::compiled)
  message(FATAL_ERROR "roundpipe::compiled without ROUNDPIPE_BUILD_COMPILED")
endif()

if(CONSUMER_CUDA)
  add_executable(consumer_cuda "${_programs}/main_cuda.cpp")
  target_link_libraries(consumer_cuda PRIVATE roundpipe::cuda)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    add_executable(consumer_nvcc "${_programs}/main_nvcc.cu")
    target_link_libraries(consumer_nvcc PRIVATE roundpipe::cuda)
  endif()
endif()
