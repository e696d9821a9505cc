// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs every layer once on every device, so that devices have seen all of their work.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/model.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/runtime/probe/layer_probe.hpp>
#include <roundpipe/system/on_own_thread.hpp>

#include <cstddef>
#include <optional>
#include <span>

namespace roundpipe {

/// Runs every layer of \p model once on each of \p devices devices, in every way that a pipeline
/// does, for a micro-batch of the shape of \p description. Returns when the devices are done. Runs
/// only the first of equal layers, and calls layers on a thread of its own.
///
/// The layers work in \p lent, one block for each device; nothing else may use the blocks
/// meanwhile. For a layer that does not fit, this allocates memory and frees it again.
/// \throws Error where a layer or the backend throws; the message names layer and device; as \ref
/// start_thread does.
template <class M, Backend B>
  requires Model<M, typename B::Stream>
void warm_up(M const& model,
             B& backend,
             ModelDescription const& description,
             std::size_t devices,
             std::span<DeviceBytes const> lent = {}) {
  using Probe = detail::LayerProbe<M, B>;
  detail::RandomOperands<B> operands(backend);
  auto const runs = detail::runs_of_equal_layers(model, description.size());
  detail::on_own_thread([&] {
    for (std::size_t d = 0; d < devices; ++d) {
      DeviceId const device(d);
      for (auto const& run : runs) {
        LayerId const layer(run.first);
        detail::run_probe("warm-up", description, layer, device, [&] {
          auto const bytes = Probe::bytes_of(description.layers[layer.index()]);
          auto block = d < lent.size() ? lent[d] : DeviceBytes{};
          std::optional<decltype(backend.allocate_device(device, bytes))> taken;
          if (block.size() < bytes) {
            block = taken.emplace(backend.allocate_device(device, bytes)).bytes();
          }
          Probe probe(model, backend, device, description, layer, operands, block);
          static_cast<void>(probe.forward(false));
          static_cast<void>(probe.evaluate());
          static_cast<void>(probe.forward(true));
          static_cast<void>(probe.backward());
        });
      }
    }
  });
}

}  // namespace roundpipe
