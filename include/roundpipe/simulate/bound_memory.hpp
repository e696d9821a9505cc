// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The memory of devices that keep the weights of their stages, in a simulation.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <span>
#include <vector>

namespace roundpipe {

/// The largest number of bytes of each class that a device holds at once.
struct DeviceUse {
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes boundaries = 0;  ///< Checkpoints, and boundaries in transit.
  Bytes saved = 0;       ///< Between a saving forward and its backward.
  Bytes workspace = 0;

  [[nodiscard]] Bytes total() const noexcept {
    return parameters + gradients + boundaries + saved + workspace;
  }
  friend bool operator==(DeviceUse const&, DeviceUse const&) = default;
};

/// For each device, the peak of each class in \p simulation, of graphs from \ref
/// build_resident_graph. Counts weights and gradients of all layers that the device runs; for each
/// micro-batch, the input of each of its stages, from the forward to the end of the backward; the
/// saved bytes and inner boundaries of its layers, from the saving forward to the end of the
/// backward; and the largest workspace, with two boundaries.
/// \throws Error (invalid_argument) when \p layers does not have all layers.
[[nodiscard]] std::vector<DeviceUse> bound_device_bytes(Simulation const& simulation,
                                                        std::span<LayerBytes const> layers);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/bound_memory.ipp>
#endif
