# The rooms of include/roundpipe/: one folder, one decision, in the order in which data flows. Each
# line names a room and the rooms that its headers may include besides their own. A room stands
# behind all rooms that it may include, so there are no circles. docs/design.md says what lives in
# each. The test `floors` checks every #include against this list, and that no room may include one
# that it does not need.
# The test `room_graph` checks that docs/design.md and README.md show the rooms in this order.
set(ROUNDPIPE_ROOMS)
macro(roundpipe_room room)
  list(APPEND ROUNDPIPE_ROOMS ${room})
  set(ROUNDPIPE_ROOMS_OF_${room} ${ARGN})
endmacro()

roundpipe_room(core)
roundpipe_room(concepts core)
roundpipe_room(hosts concepts core)
roundpipe_room(system core)
roundpipe_room(model concepts core)
roundpipe_room(partition concepts core model)
roundpipe_room(schedule concepts core model)
roundpipe_room(policies concepts core)
roundpipe_room(graph concepts core model)
roundpipe_room(memory concepts core graph model)
roundpipe_room(plan concepts core graph memory model partition schedule)
roundpipe_room(bubble concepts core graph)
roundpipe_room(estimate concepts core model)
roundpipe_room(simulate bubble concepts core graph model)
roundpipe_room(trace core graph)
roundpipe_room(io core system)
roundpipe_room(data core io model)
roundpipe_room(optim concepts core)
roundpipe_room(backend concepts core system)
roundpipe_room(runtime/state concepts core graph memory model optim system)
roundpipe_room(runtime/execute concepts core graph memory model system)
roundpipe_room(runtime/actions concepts core graph hosts memory model optim runtime/execute
  runtime/state system)
roundpipe_room(runtime/probe bubble concepts core model system)
roundpipe_room(runtime bubble concepts core graph hosts memory model optim partition plan policies
  runtime/actions runtime/execute runtime/probe runtime/state schedule simulate system)
roundpipe_room(runtime/serial backend concepts core memory model optim runtime runtime/state system)
roundpipe_room(nn backend concepts core model)
roundpipe_room(architectures core system io nn)
roundpipe_room(testing concepts core model)
roundpipe_room(mpi concepts core hosts system)
roundpipe_room(cuda/device concepts core system)
roundpipe_room(cuda/matmul concepts core cuda/device)
roundpipe_room(cuda/attention concepts core cuda/device)
roundpipe_room(cuda concepts core cuda/device system)
roundpipe_room(cuda/kernels concepts core cuda/device nn)
roundpipe_room(cuda/ops concepts core cuda cuda/attention cuda/kernels cuda/matmul nn)

# The room of a header, which is a path in include/roundpipe/: its folder. Headers outside the rooms
# are of the room base or umbrella.
function(roundpipe_room_of header out)
  get_filename_component(room "${header}" DIRECTORY)
  string(REGEX REPLACE "/impl$" "" room "${room}")
  if(header MATCHES "^(version|config)\\.hpp$")
    set(room base)
  elseif(header MATCHES "^(roundpipe\\.hpp|roundpipe_cuda\\.cuh)$")
    set(room umbrella)
  elseif(NOT room IN_LIST ROUNDPIPE_ROOMS)
    message(FATAL_ERROR "${header}: RoundpipeRooms.cmake has no room '${room}'")
  endif()
  set(${out} "${room}" PARENT_SCOPE)
endfunction()
