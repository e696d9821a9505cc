// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The policy concepts accept their smallest models and the library's policies. They reject types
// that lack a member, have it non-const, or return another type.
#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/policy_archetypes.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// The same model without copies.
template <class T>
struct Uncopyable : T {
  explicit Uncopyable(int) : T(0) {}
  Uncopyable(Uncopyable const&) = delete;
  Uncopyable& operator=(Uncopyable const&) = delete;
};

// Schedule

static_assert(Schedule<ScheduleArchetype>);
static_assert(Schedule<RoundRobinSchedule>);

struct ScheduleWithoutTasks {
  std::size_t advance(ScheduleShape const&) const;
};
struct ScheduleWithoutAdvance {
  DeviceTasks tasks(ScheduleShape const&) const;
};
struct ScheduleOfOneList {
  std::vector<Task> tasks(ScheduleShape const&) const;
  std::size_t advance(ScheduleShape const&) const;
};
struct ScheduleThatChanges {
  DeviceTasks tasks(ScheduleShape const&);
  std::size_t advance(ScheduleShape const&) const;
};
struct ScheduleOfChangedShape {
  DeviceTasks tasks(ScheduleShape&) const;
  std::size_t advance(ScheduleShape const&) const;
};
struct ScheduleAdvancingNothing {
  DeviceTasks tasks(ScheduleShape const&) const;
  void advance(ScheduleShape const&) const;
};
static_assert(!Schedule<int>);
static_assert(!Schedule<Uncopyable<ScheduleArchetype>>);
static_assert(!Schedule<ScheduleWithoutTasks>);
static_assert(!Schedule<ScheduleWithoutAdvance>);
static_assert(!Schedule<ScheduleOfOneList>);
static_assert(!Schedule<ScheduleThatChanges>);
static_assert(!Schedule<ScheduleOfChangedShape>);
static_assert(!Schedule<ScheduleAdvancingNothing>);

// TransferPolicy

static_assert(TransferPolicy<TransferPolicyArchetype>);
static_assert(TransferPolicy<PriorityTransferEngine>);

struct TransfersWithoutChunks {
  std::size_t activations_in_flight() const;
};
struct TransfersWithoutDepth {
  std::vector<Chunk> chunks(std::span<Bytes const>, std::size_t) const;
};
struct TransfersOfPieces {
  std::vector<Piece> chunks(std::span<Bytes const>, std::size_t) const;
  std::size_t activations_in_flight() const;
};
struct TransfersThatChangeSizes {
  std::vector<Chunk> chunks(std::span<Bytes>, std::size_t) const;
  std::size_t activations_in_flight() const;
};
struct TransfersThatChange {
  std::vector<Chunk> chunks(std::span<Bytes const>, std::size_t);
  std::size_t activations_in_flight() const;
};
struct TransfersOfNamedDepth {
  std::vector<Chunk> chunks(std::span<Bytes const>, std::size_t) const;
  std::string activations_in_flight() const;
};
static_assert(!TransferPolicy<int>);
static_assert(!TransferPolicy<Uncopyable<TransferPolicyArchetype>>);
static_assert(!TransferPolicy<TransfersWithoutChunks>);
static_assert(!TransferPolicy<TransfersWithoutDepth>);
static_assert(!TransferPolicy<TransfersOfPieces>);
static_assert(!TransferPolicy<TransfersThatChangeSizes>);
static_assert(!TransferPolicy<TransfersThatChange>);
static_assert(!TransferPolicy<TransfersOfNamedDepth>);

// EventProtocol

static_assert(EventProtocol<EventProtocolArchetype>);
static_assert(EventProtocol<LayerEventProtocol>);
static_assert(EventProtocol<BlockingProtocol>);

struct ProtocolWithoutBefore {
  int staleness() const;
  std::size_t master_copies() const;
  std::size_t gradient_buffers() const;
};
struct ProtocolWithoutStaleness {
  std::vector<BlockEvent> before(BlockEvent, std::size_t) const;
  std::size_t master_copies() const;
  std::size_t gradient_buffers() const;
};
struct ProtocolWithoutCopies {
  std::vector<BlockEvent> before(BlockEvent, std::size_t) const;
  int staleness() const;
  std::size_t gradient_buffers() const;
};
struct ProtocolWithoutBuffers {
  std::vector<BlockEvent> before(BlockEvent, std::size_t) const;
  int staleness() const;
  std::size_t master_copies() const;
};
struct ProtocolOfKinds {
  std::vector<BlockEventKind> before(BlockEvent, std::size_t) const;
  int staleness() const;
  std::size_t master_copies() const;
  std::size_t gradient_buffers() const;
};
struct ProtocolThatChanges {
  std::vector<BlockEvent> before(BlockEvent, std::size_t);
  int staleness() const;
  std::size_t master_copies() const;
  std::size_t gradient_buffers() const;
};
static_assert(!EventProtocol<int>);
static_assert(!EventProtocol<Uncopyable<EventProtocolArchetype>>);
static_assert(!EventProtocol<ProtocolWithoutBefore>);
static_assert(!EventProtocol<ProtocolWithoutStaleness>);
static_assert(!EventProtocol<ProtocolWithoutCopies>);
static_assert(!EventProtocol<ProtocolWithoutBuffers>);
static_assert(!EventProtocol<ProtocolOfKinds>);
static_assert(!EventProtocol<ProtocolThatChanges>);

// PartitionPolicy

static_assert(PartitionPolicy<PartitionPolicyArchetype>);
static_assert(PartitionPolicy<Partitioner>);

struct PartitionsNothing {};
struct PartitionsForwardOnly {
  std::vector<LayerRange> partition(PartitionProblem const&) const;
};
struct PartitionsByPointer {
  std::unique_ptr<Partition> partition(PartitionProblem const&) const;
};
struct PartitionsChangedProblem {
  Partition partition(PartitionProblem&) const;
};
struct PartitionsThatChange {
  Partition partition(PartitionProblem const&);
};
static_assert(!PartitionPolicy<int>);
static_assert(!PartitionPolicy<Uncopyable<PartitionPolicyArchetype>>);
static_assert(!PartitionPolicy<PartitionsNothing>);
static_assert(!PartitionPolicy<PartitionsForwardOnly>);
static_assert(!PartitionPolicy<PartitionsByPointer>);
static_assert(!PartitionPolicy<PartitionsChangedProblem>);
static_assert(!PartitionPolicy<PartitionsThatChange>);

// Optimizer

static_assert(Optimizer<OptimizerArchetype>);
static_assert(Optimizer<AdamW>);
static_assert(Optimizer<Sgd>);

using States = std::span<HostSpan<float> const>;
struct OptimizerWithoutStates {
  void update(UpdateContext const&, HostSpan<float>, HostSpan<float const>, States) const;
};
struct OptimizerWithoutUpdate {
  std::size_t state_arrays() const;
};
struct OptimizerThatChangesGradients {
  std::size_t state_arrays() const;
  void update(UpdateContext const&, HostSpan<float>, HostSpan<float>, States) const;
};
struct OptimizerThatChanges {
  std::size_t state_arrays() const;
  void update(UpdateContext const&, HostSpan<float>, HostSpan<float const>, States);
};
struct OptimizerInDouble {
  std::size_t state_arrays() const;
  void update(UpdateContext const&, HostSpan<double>, HostSpan<double const>, States) const;
};
struct OptimizerOnDevices {
  std::size_t state_arrays() const;
  void update(UpdateContext const&, DeviceSpan<float>, DeviceSpan<float const>, States) const;
};
static_assert(!Optimizer<int>);
static_assert(!Optimizer<Uncopyable<OptimizerArchetype>>);
static_assert(!Optimizer<OptimizerWithoutStates>);
static_assert(!Optimizer<OptimizerWithoutUpdate>);
static_assert(!Optimizer<OptimizerThatChangesGradients>);
static_assert(!Optimizer<OptimizerThatChanges>);
static_assert(!Optimizer<OptimizerInDouble>);
static_assert(!Optimizer<OptimizerOnDevices>);

struct GroupWithoutEnd {  // all but abort and rethrow
  std::size_t rank() const;
  std::size_t size() const;
  void gather(GroupChannel, ConstHostBytes, HostBytes);
  void exchange(GroupChannel, std::span<ConstHostBytes const>, std::span<HostBytes const>);
  void broadcast(GroupChannel, std::size_t, HostBytes);
  void barrier(GroupChannel);
};
struct GroupThatEnds : GroupWithoutEnd {
  void abort(std::string const&);
  void rethrow();
};
struct GroupWithoutExchange : GroupThatEnds {
  void exchange() = delete;
};
static_assert(ProcessGroup<GroupThatEnds>);
static_assert(!ProcessGroup<int>);
static_assert(!ProcessGroup<GroupWithoutEnd>);
static_assert(!ProcessGroup<GroupWithoutExchange>);

// Host spans and device spans do not convert to each other.
static_assert(!std::is_convertible_v<DeviceSpan<float>, HostSpan<float>>);
static_assert(!std::is_convertible_v<HostSpan<float>, DeviceSpan<float>>);

}  // namespace
