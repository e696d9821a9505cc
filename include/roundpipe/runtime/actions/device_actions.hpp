// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns a device's actions into copies and layer calls on its streams.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/issuer.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/runtime/actions/device_copies.hpp>
#include <roundpipe/runtime/actions/device_places.hpp>
#include <roundpipe/runtime/actions/finite_check.hpp>
#include <roundpipe/runtime/actions/layer_calls.hpp>
#include <roundpipe/runtime/execute/device_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// Enqueues the actions of devices' lanes. It owns the devices' arenas.
template <class Model, Backend B>
class DeviceActions final : public DeviceWork<B> {
 public:
  using Stream = typename B::Stream;

  /// Takes each device's arena from \p backend. All arguments but the last must outlive this.
  DeviceActions(Model const& model,
                B& backend,
                std::size_t devices,
                DeviceMemoryPlan const& memory,
                ParameterMemory const& parameters,
                BoundaryStore const& boundaries,
                FiniteCheck<B> finite_check = {})
      : model_(model),
        arenas_(allocate(backend, devices, memory.bytes)),
        places_(memory, bytes_of(arenas_)),
        copies_(places_, parameters, boundaries),
        layers_(places_, parameters.blocks()),
        finite_check_(std::move(finite_check)),
        scratch_(issuers_of(devices)) {}

  DeviceActions(DeviceActions const&) = delete;
  DeviceActions& operator=(DeviceActions const&) = delete;

  /// Each device's memory, which holds nothing while no run is under way.
  [[nodiscard]] std::vector<DeviceBytes> const& arenas() const noexcept { return places_.arenas(); }

  void issue(RunState const& run, ActionId id, Stream& stream, DeviceId device) override {
    DeviceAction const here{run, run.program()[id], device};
    switch (here.action.kind) {
      case ActionKind::forward:
      case ActionKind::recompute:
        return forward(here, stream);
      case ActionKind::backward:
        return backward(here, stream);
      default:
        return copy(here, stream);
    }
  }

 private:
  using Arena = decltype(std::declval<B&>().allocate_device(DeviceId{}, Bytes{}));

  /// Of one issuing thread.
  struct Scratch {
    CopyList copies;
    PreparedLayer layer;
  };

  [[nodiscard]] static std::vector<Arena> allocate(B& backend, std::size_t devices, Bytes bytes) {
    std::vector<Arena> arenas;
    for (std::size_t d = 0; d < devices; ++d) {
      arenas.push_back(backend.allocate_device(DeviceId(d), bytes));
    }
    return arenas;
  }
  [[nodiscard]] static std::vector<DeviceBytes> bytes_of(std::vector<Arena> const& arenas) {
    std::vector<DeviceBytes> result;
    for (auto const& arena : arenas) {
      result.push_back(arena.bytes());
    }
    return result;
  }

  [[nodiscard]] Scratch& scratch_of(DeviceAction const& here) {
    return scratch_[Issuer::of({here.action.lane.kind, here.device}).index()];
  }

  void copy(DeviceAction const& here, Stream& stream) {
    auto& list = scratch_of(here).copies;
    copies_.list(here, list);
    for (auto const& upload : list.uploads) {
      stream.copy(upload.to, upload.from);
    }
    for (auto const& download : list.downloads) {
      stream.copy(download.to, download.from);
    }
    for (auto const& send : list.sends) {
      if constexpr (CopiesToPeers<Stream>) {
        stream.copy_to_peer(send.to, send.from);
      } else {
        throw Error(Errc::unsupported, "the backend's streams cannot copy to other devices");
      }
    }
  }

  void forward(DeviceAction const& here, Stream& stream) {
    auto& layer = scratch_of(here).layer;
    layers_.prepare_forward(here, layer);
    ForwardContext<Stream> context(stream, layer.call, layer.tensors);
    model_.visit(here.action.layer, [&](auto const& l) { l.forward(context); });
    if (layer.call.wants_output) {
      finite_check_.forward(layer.tensors, stream, here.device);
    }
  }

  void backward(DeviceAction const& here, Stream& stream) {
    auto& layer = scratch_of(here).layer;
    layers_.prepare_backward(here, layer);
    for (auto const& gradient : layer.zeroed) {
      stream.fill(gradient, std::byte{0});
    }
    BackwardContext<Stream> context(stream, layer.call, layer.tensors);
    model_.visit(here.action.layer, [&](auto const& l) { l.backward(context); });
    finite_check_.backward(layer.tensors, stream, here.device);
    for (auto const& [to, from] : layer.rounded) {
      if (to.dtype() == DType::f16) {
        stream.round(to.template as<Float16>(), from);
      } else {
        stream.round(to.template as<BFloat16>(), from);
      }
    }
  }

  Model const& model_;
  std::vector<Arena> arenas_;  // by device
  DevicePlaces places_;
  DeviceCopies copies_;
  LayerCalls layers_;
  FiniteCheck<B> finite_check_;
  std::vector<Scratch> scratch_;  // by issuer
};

}  // namespace roundpipe
