# The consumers' programs, with warnings that the library's headers must not trigger either.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(_programs "${CMAKE_CURRENT_LIST_DIR}")

add_executable(consumer "${_programs}/main.cpp")
target_link_libraries(consumer PRIVATE roundpipe::roundpipe)
set_target_properties(consumer PROPERTIES CXX_EXTENSIONS OFF NO_SYSTEM_FROM_IMPORTED ON)
target_compile_options(consumer PRIVATE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)

if(CONSUMER_CUDA)
  add_executable(consumer_cuda "${_programs}/main_cuda.cpp")
  target_link_libraries(consumer_cuda PRIVATE roundpipe::cuda)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    add_executable(consumer_nvcc "${_programs}/main_nvcc.cu")
    target_link_libraries(consumer_nvcc PRIVATE roundpipe::cuda)
  endif()
endif()
