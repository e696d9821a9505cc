// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Mistakes in what a pipeline is made of. The wrong type is called Wrong each time.
// expect-error: Wrong

#include <roundpipe/runtime/pipeline.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <support/made_model.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace roundpipe;

/// A layer with every opt-in.
struct Right {
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape) const { return {}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>&) const {}
  void backward(BackwardContext<HostStream>&) const {}
  TensorTable side_inputs(BatchShape) const { return {}; }
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const { return 1; }
  TensorTable results(BatchShape) const { return {}; }
  FlopCount work(BatchShape) const { return {}; }
  std::vector<Bytes> save_levels(BatchShape) const { return {}; }
  bool backward_reads_parameters() const { return true; }
  Carries carries() const { return {}; }
  std::string name() const { return "right"; }
};

/// A model of \p L, trained.
template <class L>
using Trained = decltype(Pipeline{Sequential{Right{}, std::declval<L>()},
                                  Sgd{},
                                  std::declval<HostBackend&>(),
                                  PipelineOptions{}});

/// A pipeline whose model is right. \p B is a reference.
template <class O, class B>
using Made = decltype(Pipeline{
    Sequential{Right{}}, std::declval<O>(), std::declval<B>(), PipelineOptions{}});

// What a layer needs.
#if defined(NO_BACKWARD)
// expect-error NO_BACKWARD: a layer needs 'void backward\(BackwardContext<Stream>&\) const'
struct Wrong : Right {
  void backward() = delete;
};
using Result = Trained<Wrong>;
#elif defined(BACKWARD_NOT_CONST)
// expect-error BACKWARD_NOT_CONST: a layer needs 'void backward\(BackwardContext<Stream>&\) const'
struct Wrong : Right {
  void backward(BackwardContext<HostStream>&) {}
};
using Result = Trained<Wrong>;
#elif defined(FORWARD_ON_OTHER_STREAM)
// expect-error FORWARD_ON_OTHER_STREAM: needs 'void forward\(ForwardContext<Stream>&\) const'
struct Wrong : Right {
  void forward(ForwardContext<int>&) const {}
};
using Result = Trained<Wrong>;
#elif defined(PARAMETERS_AS_TENSORS)
// expect-error PARAMETERS_AS_TENSORS: a layer needs 'ParameterTable parameters\(\) const'
struct Wrong : Right {
  TensorTable parameters() const { return {}; }
};
using Result = Trained<Wrong>;
#elif defined(INPUT_AS_SHAPE)
// expect-error INPUT_AS_SHAPE: a layer needs 'TensorTable input\(BatchShape\) const'
struct Wrong : Right {
  Shape input(BatchShape) const { return {}; }
};
using Result = Trained<Wrong>;
#elif defined(BOUNDARY_WITHOUT_SHAPE)
// expect-error BOUNDARY_WITHOUT_SHAPE: a layer needs 'TensorTable boundary\(BatchShape\) const'
struct Wrong : Right {
  TensorTable boundary() const { return {}; }
};
using Result = Trained<Wrong>;
#elif defined(PRIVATE_FOOTPRINT)
// expect-error PRIVATE_FOOTPRINT: a layer needs 'Footprint footprint\(BatchShape\) const'
struct Wrong : Right {
 private:
  Footprint footprint(BatchShape) const { return {}; }
};
using Result = Trained<Wrong>;

// Opt-ins of layers that are almost right.
#elif defined(SIDE_INPUTS_NOT_CONST)
// expect-error SIDE_INPUTS_NOT_CONST: must be 'TensorTable side_inputs\(BatchShape\) const'
struct Wrong : Right {
  TensorTable side_inputs(BatchShape) { return {}; }
};
using Result = Trained<Wrong>;
#elif defined(LOSS_TERMS_OF_VECTOR)
// expect-error LOSS_TERMS_OF_VECTOR: loss_terms\(std::span<HostTensor const>, BatchShape\) const'
struct Wrong : Right {
  std::int64_t loss_terms(std::vector<HostTensor> const&, BatchShape) const { return 1; }
};
using Result = Trained<Wrong>;
#elif defined(RESULTS_WITHOUT_SHAPE)
// expect-error RESULTS_WITHOUT_SHAPE: must be 'TensorTable results\(BatchShape\) const'
struct Wrong : Right {
  TensorTable results() const { return {}; }
};
using Result = Trained<Wrong>;
#elif defined(WORK_AS_DOUBLE)
// expect-error WORK_AS_DOUBLE: must be 'FlopCount work\(BatchShape\) const'
struct Wrong final : Right {
  double work(BatchShape) const { return 1; }
};
using Result = Trained<Wrong>;
#elif defined(SAVE_LEVELS_AS_BYTES)
// expect-error SAVE_LEVELS_AS_BYTES: must be 'std::vector<Bytes> save_levels\(BatchShape\) const'
struct Wrong : Right {
  Bytes save_levels(BatchShape) const { return 0; }
};
using Result = Trained<Wrong>;
#elif defined(READS_AS_CONSTANT)
// expect-error READS_AS_CONSTANT: must be 'bool backward_reads_parameters\(\) const'
struct Wrong : Right {
  static constexpr bool backward_reads_parameters = false;
};
using Result = Trained<Wrong>;
#elif defined(NAME_AS_DATA)
// expect-error NAME_AS_DATA: must be 'std::string name\(\) const'
struct Wrong : Right {
  std::string name = "wrong";
};
using Result = Trained<Wrong>;

// Models.
#elif defined(MODEL_WITHOUT_VISIT)
// expect-error MODEL_WITHOUT_VISIT: a model needs .* 'visit\(LayerId, f\) const'
struct Wrong {
  std::size_t layer_count() const { return 1; }
};
using Result = decltype(Pipeline{Wrong{}, Sgd{}, std::declval<HostBackend&>(), PipelineOptions{}});
#elif defined(LAYER_OF_VARIANT)
// expect-error LAYER_OF_VARIANT: a layer needs 'Footprint footprint\(BatchShape\) const'
struct Wrong : Right {
  void footprint() const = delete;
};
using Result = decltype(Pipeline{
    test::MadeModel<Right, Wrong>{}, Sgd{}, std::declval<HostBackend&>(), PipelineOptions{}});
#elif defined(RUN_OF_NUMBER)
// expect-error RUN_OF_NUMBER: must be 'std::size_t run_of\(LayerId\) const'
struct Wrong : test::MadeModel<Right> {
  std::size_t run_of(std::size_t) const { return 0; }
};
using Result = decltype(Pipeline{Wrong{}, Sgd{}, std::declval<HostBackend&>(), PipelineOptions{}});

// Optimizers.
#elif defined(UPDATE_NOT_CONST)
// expect-error UPDATE_NOT_CONST: an optimizer needs .*void update\(UpdateContext const&
struct Wrong {
  std::size_t state_arrays() const { return 0; }
  void update(UpdateContext const&,
              HostSpan<float>,
              HostSpan<float const>,
              std::span<HostSpan<float> const>) {}
};
using Result = Made<Wrong, HostBackend&>;

#elif defined(WHOLE_BY_SHAPE)
// expect-error WHOLE_BY_SHAPE: must be 'bool updates_whole\(ParameterInfo const&\) const'
struct Wrong : Sgd {
  bool updates_whole(Shape const&) const { return true; }
};
using Result = Made<Wrong, HostBackend&>;
#elif defined(FREEZES_FOR_EVER)
// expect-error FREEZES_FOR_EVER: must be 'bool freezes\(ParameterInfo const&, std::uint64_t\)
struct Wrong : Sgd {
  bool freezes(ParameterInfo const&) const { return true; }
};
using Result = Made<Wrong, HostBackend&>;

#elif defined(RULE_NOT_CONST)
// expect-error RULE_NOT_CONST: 'with_rule' must be 'template <class F> void
// with_rule\(UpdateContext
struct Wrong : Sgd {
  template <class F>
  void with_rule(UpdateContext const& context, F const& f) {
    Sgd::with_rule(context, f);
  }
};
using Result = Made<Wrong, HostBackend&>;
#elif defined(RULE_WITHOUT_CONTEXT)
// expect-error RULE_WITHOUT_CONTEXT: 'with_rule' must be 'template <class F> void with_rule\(Update
struct Wrong : Sgd {
  template <class F>
  void with_rule(F const& f) const;
};
using Result = Made<Wrong, HostBackend&>;

// Arguments.
#elif defined(BARE_POLICY)
// expect-error BARE_POLICY: policies have names: .*Policies{.partitioner = Mine{}}
struct Wrong : Partitioner {};
using Result = decltype(Pipeline{
    Sequential{Right{}}, Sgd{}, std::declval<HostBackend&>(), PipelineOptions{}, Wrong{}});
#elif defined(SIX_ARGUMENTS)
// expect-error SIX_ARGUMENTS: policies have names: .*Policies{.partitioner = Mine{}}
struct Wrong : Partitioner {};
using Result = decltype(Pipeline{Sequential{Right{}},
                                 Sgd{},
                                 std::declval<HostBackend&>(),
                                 PipelineOptions{},
                                 LayerEventProtocol{},
                                 Wrong{}});
#elif defined(SWAPPED)
// expect-error SWAPPED: a pipeline needs 'Pipeline{model, optimizer, backend, options}', in this
struct Wrong : Right {};
using Result =
    decltype(Pipeline{Sequential{Wrong{}}, Sgd{}, PipelineOptions{}, std::declval<HostBackend&>()});
#elif defined(SWAPPED_MODEL)
// expect-error SWAPPED_MODEL: an optimizer needs .*void update\(UpdateContext const&
struct Wrong : Right {};
using Result =
    decltype(Pipeline{Sgd{}, Sequential{Wrong{}}, std::declval<HostBackend&>(), PipelineOptions{}});
#elif defined(NO_OPTIONS)
// expect-error NO_OPTIONS: a pipeline needs 'Pipeline{model, optimizer, backend, options}', in this
struct Wrong : Right {};
using Result = decltype(Pipeline{Sequential{Wrong{}}, Sgd{}, std::declval<HostBackend&>()});

// Policies.
#elif defined(PARTITIONER_AS_SCHEDULE)
// expect-error PARTITIONER_AS_SCHEDULE: a schedule needs 'DeviceTasks tasks\(ScheduleShape const
struct Wrong : Partitioner {};
using Result = Policies;
Result const chosen{.schedule = Wrong{}};
#elif defined(PROTOCOL_AS_TRANSFERS)
// expect-error PROTOCOL_AS_TRANSFERS: a transfer policy needs 'std::vector<Chunk> chunks\(
struct Wrong : LayerEventProtocol {
  using LayerEventProtocol::LayerEventProtocol;
};
using Result = Policies;
Result const chosen{.transfers = Wrong(0)};
#elif defined(STALENESS_NOT_CONST)
// expect-error STALENESS_NOT_CONST: an event protocol needs .*'int staleness\(\) const'
struct Wrong : LayerEventProtocol {
  using LayerEventProtocol::LayerEventProtocol;
  int staleness() { return 0; }
};
using Result = Policies;
Result const chosen{.protocol = Wrong(0)};
#elif defined(PARTITION_AS_LIST)
// expect-error PARTITION_AS_LIST: a partition policy needs 'Partition partition\(PartitionProblem
struct Wrong {
  std::vector<LayerRange> partition(PartitionProblem const&) const { return {}; }
};
using Result = Policies;
Result const chosen{.partitioner = Wrong{}};
#elif defined(FUSES_NOT_CONST)
// expect-error FUSES_NOT_CONST: must be 'bool fuses\(\) const'
struct Wrong : RoundRobinSchedule {
  bool fuses() { return false; }
};
using Result = Policies;
Result const chosen{.schedule = Wrong{}};
#elif defined(YIELDS_AS_CONSTANT)
// expect-error YIELDS_AS_CONSTANT: must be 'bool yields_to_forecast\(\) const'
struct Wrong : Partitioner {
  bool yields_to_forecast = true;
};
using Result = Policies;
Result const chosen{.partitioner = Wrong{}};

// Backends.
#elif defined(TEMPORARY_BACKEND)
// expect-error TEMPORARY_BACKEND: (deleted function|deleted constructor).*Pipeline
struct Wrong : HostBackend {
  using HostBackend::HostBackend;
};
using Result = Made<Sgd, Wrong>;
#elif defined(NO_ABORT)
// expect-error NO_ABORT: backend\.abort\(\)
struct Wrong : HostBackend {
  void abort() = delete;
};
using Result = Made<Sgd, Wrong&>;
#elif defined(HELD_FENCE_AS_NUMBER)
// expect-error HELD_FENCE_AS_NUMBER: must be 'Fence make_held_fence\(\)'
struct Wrong : HostBackend {
  int make_held_fence() { return 0; }
};
using Result = Made<Sgd, Wrong&>;
#elif defined(RESUME_OF_ONE)
// expect-error RESUME_OF_ONE: must be 'void resume\(\)'
struct Wrong : HostBackend {
  void resume(DeviceId) {}
};
using Result = Made<Sgd, Wrong&>;
#elif defined(WARM_UP_AT_RUN_TIME)
// expect-error WARM_UP_AT_RUN_TIME: 'warm_up_seconds' must be 'static constexpr double'
struct Wrong : HostBackend {
  double warm_up_seconds = 1;
};
using Result = Made<Sgd, Wrong&>;
#elif defined(FEW_ACTIONS_AHEAD)
// expect-error FEW_ACTIONS_AHEAD: must be 'static constexpr std::size_t', at least 4
struct Wrong : HostBackend {
  static constexpr std::size_t compute_actions_ahead = 2;
};
using Result = Made<Sgd, Wrong&>;
#elif defined(LIMIT_OF_EACH)
// expect-error LIMIT_OF_EACH: must be 'void limit_memory\(Bytes\)'
struct Wrong : HostBackend {
  void limit_memory(DeviceId, Bytes) {}
};
using Result = Made<Sgd, Wrong&>;
#elif defined(OVERHEAD_OF_ALL)
// expect-error OVERHEAD_OF_ALL: must be 'Bytes overhead_bytes\(DeviceId\)'
struct Wrong : HostBackend {
  Bytes overhead_bytes() const { return 0; }
};
using Result = Made<Sgd, Wrong&>;

#elif defined(HOOK_OF_DEVICE)
// expect-error HOOK_OF_DEVICE: must be 'void before_host_action\(LaneKind\)'
struct Wrong : HostBackend {
  void before_host_action(DeviceId) {}
};
using Result = Made<Sgd, Wrong&>;
#elif defined(HOST_OVERHEAD_OF_DEVICE)
// expect-error HOST_OVERHEAD_OF_DEVICE: must be 'Bytes host_overhead_bytes\(\)'
struct Wrong : HostBackend {
  Bytes host_overhead_bytes(DeviceId) const { return 0; }
};
using Result = Made<Sgd, Wrong&>;
#elif defined(SHARE_AT_RUN_TIME)
// expect-error SHARE_AT_RUN_TIME: 'page_table_share' of devices must be 'static constexpr double'
struct Wrong : HostBackend {
  double page_table_share = 0.1;
};
using Result = Made<Sgd, Wrong&>;
#elif defined(CODE_AS_FUNCTION)
// expect-error CODE_AS_FUNCTION: 'unloaded_code_bytes' of devices must be 'static constexpr Bytes'
struct Wrong : HostBackend {
  Bytes unloaded_code_bytes() const { return 0; }
};
using Result = Made<Sgd, Wrong&>;
#elif defined(ANNOTATE_NUMBER)
// expect-error ANNOTATE_NUMBER: a stream's member 'annotate' must be 'void annotate\(char
// const\*\)'
struct Wrong : HostStream {
  void annotate(int) {}
};
struct OtherBackend : HostBackend {
  using Stream = Wrong;
  Stream make_stream(DeviceId, LaneKind);
};
using Result = Made<Sgd, OtherBackend&>;
#elif defined(ADD_IN_PLACE)
// expect-error ADD_IN_PLACE: a stream with 'add' needs 'void add\(DeviceTensor const&, DeviceTensor
struct Wrong : HostStream {
  void add(DeviceTensor const&) {}
};
struct OtherBackend : HostBackend {
  using Stream = Wrong;
  Stream make_stream(DeviceId, LaneKind);
};
using Result = Made<Sgd, OtherBackend&>;

// The other doors ask for the same.
#elif defined(SERIAL_WITHOUT_FORWARD)
// expect-error SERIAL_WITHOUT_FORWARD: layer needs 'void forward\(ForwardContext<Stream>&\) const'
struct Wrong : Right {
  void forward() = delete;
};
using Result = decltype(SerialTrainer{Sequential{Wrong{}}, Sgd{}, SerialOptions{}});
#elif defined(AUTOMATIC_WITHOUT_INPUT)
// expect-error AUTOMATIC_WITHOUT_INPUT: a layer needs 'TensorTable input\(BatchShape\) const'
struct Wrong : Right {
  void input() const = delete;
};
using Result = AutomaticChoice;
Result choose(HostBackend& backend) {
  return automatic(Sequential{Wrong{}}, Sgd{}, backend, {}, {});
}

#else
using Result = std::variant<
    Trained<Right>,
    Made<Sgd, HostBackend&>,
    Policies,
    decltype(Pipeline{
        test::MadeModel<Right>{}, Sgd{}, std::declval<HostBackend&>(), PipelineOptions{}})>;
#endif

}  // namespace

Result* use();
