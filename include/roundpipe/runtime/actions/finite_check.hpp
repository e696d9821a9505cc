// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads back what layers write on devices, and refuses what is not finite.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_tensors.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/runtime/state/finite_values.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace roundpipe {

/// Examines what passes of layers have written. The thread that enqueues a pass waits until the
/// pass has run, so a device computes or copies, never both. Each device is for one thread.
template <Backend B>
class FiniteCheck {
 public:
  using Stream = typename B::Stream;

  /// Examines nothing.
  FiniteCheck() = default;
  /// Examines \p passes of \p devices devices of \p backend.
  FiniteCheck(B& backend,
              FinitePasses passes,
              std::size_t devices,
              TakeHostMemory const& take_host_memory)
      : passes_(passes) {
    for (std::size_t d = 0; d < devices && passes != FinitePasses::none; ++d) {
      readers_.push_back(
          {take_host_memory(finite_check_bytes(passes)), backend.make_event(DeviceId(d))});
    }
  }

  /// Behind a forward or a recomputation on \p device, enqueued to \p stream.
  /// \throws Error (not_finite) as \ref require_finite does.
  void forward(LayerTensors const& tensors, Stream& stream, DeviceId device) {
    if (passes_ != FinitePasses::none) {
      for_each_written_forward(tensors,
                               [&](WrittenTensor const& w) { examine(w, stream, device); });
    }
  }
  /// Behind a backward. \throws Error (not_finite) as \ref require_finite does.
  void backward(LayerTensors const& tensors, Stream& stream, DeviceId device) {
    if (passes_ == FinitePasses::all) {
      for_each_written_backward(tensors,
                                [&](WrittenTensor const& w) { examine(w, stream, device); });
    }
  }

 private:
  struct Reader {
    HostBytes bytes;
    typename B::Event done;
  };

  void examine(WrittenTensor const& written, Stream& stream, DeviceId device) {
    auto& [host, done] = readers_[device.index()];
    auto const type = written.tensor.dtype();
    if (!is_floating(type)) {
      return;
    }
    auto const all = written.tensor.bytes();
    for (Bytes begin = 0; begin < all.size(); begin += host.size()) {
      auto const part = host.first(std::min(host.size(), all.size() - begin));
      stream.copy(part, all.subspan(begin, part.size()));
      stream.record(done);
      done.wait();
      require_finite(part, type, written.title, begin / size_of(type));
    }
  }

  FinitePasses passes_ = FinitePasses::none;
  std::vector<Reader> readers_;  // by device
};

}  // namespace roundpipe
