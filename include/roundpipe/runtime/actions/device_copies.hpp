// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which bytes an upload, a download or a copy to another device moves.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/actions/device_places.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// What one action copies, in that order.
struct CopyList {
  struct Upload {
    DeviceBytes to;
    HostSpan<std::byte const> from;
  };
  struct Download {
    HostBytes to;
    DeviceSpan<std::byte const> from;
  };

  struct Send {
    DeviceBytes to;
    DeviceSpan<std::byte const> from;
  };

  std::vector<Upload> uploads;
  std::vector<Download> downloads;
  std::vector<Send> sends;

  void clear() noexcept {
    uploads.clear();
    downloads.clear();
    sends.clear();
  }
};

/// Lists the copies of actions. Not changed by use: any thread may ask.
class DeviceCopies {
 public:
  /// All arguments must outlive this.
  DeviceCopies(DevicePlaces const& places,
               ParameterMemory const& parameters,
               BoundaryStore const& boundaries)
      : places_(places), parameters_(parameters), boundaries_(boundaries) {}

  /// Replaces \p list by what \p here copies. \throws Error (unsupported) when it copies nothing.
  void list(DeviceAction const& here, CopyList& list) const;

 private:
  void upload_parameters(DeviceAction const& here, CopyList& list) const;

  void download_gradients(DeviceAction const& here, CopyList& list) const;

  void upload_activation(DeviceAction const& here, CopyList& list) const;

  void upload_gradient(DeviceAction const& here, CopyList& list) const;

  void upload_save(DeviceAction const& here, CopyList& list) const;

  void download_save(DeviceAction const& here, CopyList& list) const;

  void download_activation(DeviceAction const& here, CopyList& list) const;

  void send_boundary(DeviceAction const& here, CopyList& list) const;

  /// The host's entry of a boundary or a save that the action reads or writes.
  [[nodiscard]] HostBytes boundary(DeviceAction const& here, Buffer const& buffer) const {
    return boundaries_.entry(buffer.ring, here.run.ring_base(buffer.ring) + buffer.sequence);
  }
  [[nodiscard]] static HostSpan<std::byte const> source(HostBytes memory,
                                                        Bytes offset,
                                                        Bytes bytes) {
    return memory.subspan(offset, bytes);
  }
  [[nodiscard]] ParameterBlocks const& blocks() const { return parameters_.blocks(); }

  DevicePlaces const& places_;
  ParameterMemory const& parameters_;
  BoundaryStore const& boundaries_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/device_copies.ipp>
#endif
