// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the compiler says of a type that does not meet its concept: a sentence for each
/// requirement.
///
/// Public doors call these functions in a `static_assert` before they use their types. Each
/// function returns true: its own asserts are what fails, and the compiler names the type beside
/// them.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/model.hpp>
#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/id.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace roundpipe::detail {

/// Checks each layer that a model hands over. Its result is deduced, so the compiler must look
/// inside. \tparam Stream void: the layers need not run.
template <class Stream>
struct LayerChecker {
  template <class L>
  auto operator()(L const&) const {
    static_assert(std::copy_constructible<L>, "a layer needs a copy constructor");
    static_assert(HasParameters<L>, "a layer needs 'ParameterTable parameters() const'");
    static_assert(HasInput<L>, "a layer needs 'TensorTable input(BatchShape) const'");
    static_assert(HasBoundary<L>, "a layer needs 'TensorTable boundary(BatchShape) const'");
    static_assert(HasFootprint<L>, "a layer needs 'Footprint footprint(BatchShape) const'");
    static_assert(
        HasSideInputs<L> || !requires { &L::side_inputs; },
        "a layer's member 'side_inputs' must be 'TensorTable side_inputs(BatchShape) const'");
    static_assert(
        LossLayer<L> || !requires { &L::loss_terms; },
        "a layer's member 'loss_terms' must be 'std::int64_t loss_terms(std::span<HostTensor "
        "const>, BatchShape) const'");
    static_assert(
        HasResults<L> || !requires { &L::results; },
        "a layer's member 'results' must be 'TensorTable results(BatchShape) const'");
    static_assert(
        HasWork<L> || !requires { &L::work; },
        "a layer's member 'work' must be 'FlopCount work(BatchShape) const'");
    static_assert(
        HasSaveLevels<L> || !requires { &L::save_levels; },
        "a layer's member 'save_levels' must be 'std::vector<Bytes> "
        "save_levels(BatchShape) const'");
    static_assert(
        HasBackwardReads<L> || !requires { &L::backward_reads_parameters; },
        "a layer's member 'backward_reads_parameters' must be 'bool "
        "backward_reads_parameters() const'");
    static_assert(
        HasCarries<L> || !requires { &L::carries; },
        "a layer's member 'carries' must be 'Carries carries() const'");
    static_assert(
        HasName<L> || !requires { &L::name; },
        "a layer's member 'name' must be 'std::string name() const'");
    if constexpr (!std::is_void_v<Stream>) {
      static_assert(HasForward<L, Stream>,
                    "a layer needs 'void forward(ForwardContext<Stream>&) const'");
      static_assert(HasBackward<L, Stream>,
                    "a layer needs 'void backward(BackwardContext<Stream>&) const'");
    }
    return std::size_t{};
  }
};

/// \tparam Stream void: a \ref DescribedModel is enough.
template <class M, class Stream = void>
consteval bool check_model() {
  static_assert(std::move_constructible<M>, "a model needs a move constructor");
  static_assert(Visitable<M, LayerChecker<Stream>>,
                "a model needs 'std::size_t layer_count() const' and 'visit(LayerId, f) const', "
                "which returns f(layer)");
  static_assert(
      HasRuns<M> || !requires { &M::run_of; },
      "a model's member 'run_of' must be 'std::size_t run_of(LayerId) const'");
  return true;
}

/// Whether \p T has a member 'with_rule' of any kind, a template or an overload as well: then it is
/// ambiguous beside another one. A final type tells nothing.
template <class T>
consteval bool has_rule_member() {
  if constexpr (std::is_class_v<T> && !std::is_final_v<T>) {
    struct Other {
      int with_rule;
    };
    struct Both : T, Other {};
    return !requires { &Both::with_rule; };
  } else {
    return false;
  }
}

template <class O>
consteval bool check_optimizer() {
  static_assert(Optimizer<O>,
                "an optimizer needs 'std::size_t state_arrays() const' and 'void update("
                "UpdateContext const&, HostSpan<float>, HostSpan<float const>, "
                "std::span<HostSpan<float> const>) const'");
  static_assert(
      HasWholeUpdates<O> || !requires { &O::updates_whole; },
      "an optimizer's member 'updates_whole' must be 'bool updates_whole(ParameterInfo const&) "
      "const'");
  static_assert(
      HasFreezes<O> || !requires { &O::freezes; },
      "an optimizer's member 'freezes' must be 'bool freezes(ParameterInfo const&, std::uint64_t) "
      "const'");
  static_assert(HasElementRule<O> || !has_rule_member<O>(),
                "an optimizer's member 'with_rule' must be 'template <class F> void "
                "with_rule(UpdateContext const&, F const& f) const', which calls f(rule)");
  return true;
}

template <class D>
consteval bool check_devices() {
  static_assert(DeviceList<D>,
                "devices need 'std::size_t device_count()' and 'DeviceProperties "
                "device_properties(DeviceId)'");
  static_assert(
      HasHostOverhead<D> || !requires { &D::host_overhead_bytes; },
      "the member 'host_overhead_bytes' of devices must be 'Bytes host_overhead_bytes()'");
  static_assert(
      HasDeviceOverhead<D> || !requires { &D::overhead_bytes; },
      "the member 'overhead_bytes' of devices must be 'Bytes overhead_bytes(DeviceId)'");
  static_assert(
      HasPageTableShare<D> || !requires { &D::page_table_share; },
      "the member 'page_table_share' of devices must be 'static constexpr double', at least 0");
  static_assert(
      HasUnloadedCode<D> || !requires { &D::unloaded_code_bytes; },
      "the member 'unloaded_code_bytes' of devices must be 'static constexpr Bytes'");
  return true;
}

template <class S>
consteval bool check_stream() {
  static_assert(
      HasAnnotate<S> || !requires { &S::annotate; },
      "a stream's member 'annotate' must be 'void annotate(char const*)'");
  static_assert(
      AddsTensors<S> || !requires { &S::add; },
      "a stream with 'add' needs 'void add(DeviceTensor const&, DeviceTensor const&)' and 'void "
      "copy(DeviceTensor const&, DeviceTensor const&)'");
  static_assert(
      CopiesToPeers<S> || !requires { &S::copy_to_peer; },
      "a stream's member 'copy_to_peer' must be 'void copy_to_peer(DeviceBytes, "
      "DeviceSpan<std::byte const>)'");
  return true;
}

template <class B>
consteval bool check_backend() {
  static_assert(Backend<B>,
                "the backend lacks a member that Backend (concepts/backend.hpp) asks for");
  static_assert(
      HasResume<B> || !requires { &B::resume; },
      "a backend's member 'resume' must be 'void resume()'");
  static_assert(
      HasHeldFence<B> || !requires { &B::make_held_fence; },
      "a backend's member 'make_held_fence' must be 'Fence make_held_fence()'");
  static_assert(
      HasHostActionHook<B> || !requires { &B::before_host_action; },
      "a backend's member 'before_host_action' must be 'void before_host_action(LaneKind)'");
  static_assert(
      HasActionLimit<B> || !requires { &B::compute_actions_ahead; },
      "a backend's member 'compute_actions_ahead' must be 'static constexpr "
      "std::size_t', at least 4");
  static_assert(
      HasWarmUp<B> || !requires { &B::warm_up_seconds; },
      "a backend's member 'warm_up_seconds' must be 'static constexpr double', at least 0");
  static_assert(
      HasMemoryLimit<B> || !requires { &B::limit_memory; },
      "a backend's member 'limit_memory' must be 'void limit_memory(Bytes)'");
  if constexpr (Backend<B>) {
    static_assert(check_devices<B>() && check_stream<typename B::Stream>());
  }
  return true;
}

template <class S>
consteval bool check_schedule() {
  static_assert(Schedule<S>,
                "a schedule needs 'DeviceTasks tasks(ScheduleShape const&) const' and "
                "'std::size_t advance(ScheduleShape const&) const'");
  static_assert(
      HasFuses<S> || !requires { &S::fuses; },
      "a schedule's member 'fuses' must be 'bool fuses() const', or static");
  return true;
}

template <class T>
consteval bool check_transfers() {
  static_assert(TransferPolicy<T>,
                "a transfer policy needs 'std::vector<Chunk> chunks(std::span<Bytes const>, "
                "std::size_t) const' and 'std::size_t activations_in_flight() const'");
  return true;
}

template <class E>
consteval bool check_protocol() {
  static_assert(EventProtocol<E>,
                "an event protocol needs 'std::vector<BlockEvent> before(BlockEvent, std::size_t) "
                "const', 'int staleness() const', 'std::size_t master_copies() const' and "
                "'std::size_t gradient_buffers() const'");
  return true;
}

template <class G>
consteval bool check_group() {
  static_assert(ProcessGroup<G>,
                "a process group needs 'std::size_t rank() const', 'std::size_t size() const', "
                "'gather', 'exchange', 'broadcast', 'barrier', 'abort' and 'rethrow', see its "
                "concept");
  return true;
}

template <class P>
consteval bool check_partitioner() {
  static_assert(PartitionPolicy<P>,
                "a partition policy needs 'Partition partition(PartitionProblem const&) const'");
  static_assert(
      HasYieldsToForecast<P> || !requires { &P::yields_to_forecast; },
      "a partition policy's member 'yields_to_forecast' must be 'bool "
      "yields_to_forecast() const'");
  return true;
}

}  // namespace roundpipe::detail
