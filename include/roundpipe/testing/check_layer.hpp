// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks that a layer keeps the rules of \ref roundpipe::Layer, by itself on any backend.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/layer_checks.hpp>
#include <roundpipe/testing/layer_layout.hpp>
#include <roundpipe/testing/layer_values.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::testing {

namespace detail {

/// Runs passes of one layer on device 0 of a backend.
template <class L, Backend B>
class LayerRunner {
 public:
  /// The arguments must outlive this.
  LayerRunner(L const& layer, B& backend)
      : layer_(layer),
        backend_(backend),
        stream_(backend.make_stream(DeviceId(0), LaneKind::compute)),
        done_(backend.make_event(DeviceId(0))) {}

  /// What \p pass makes of \p image. Bytes of \p layout behind it are whatever they were.
  [[nodiscard]] Image run(LayerLayout const& layout, Image image, LayerPass const& pass) {
    if (!device_ || device_->bytes().size() < layout.bytes()) {
      device_.reset();
      device_.emplace(backend_.allocate_device(DeviceId(0), layout.bytes()));
      host_.emplace(backend_.allocate_host(layout.bytes()));
    }
    auto const device = DeviceBytes(device_->bytes()).subspan(0, image.size());
    auto const host = HostBytes(host_->bytes()).first(image.size());
    std::copy(image.begin(), image.end(), host.begin());
    stream_.copy(device, host);
    auto const tensors = layout.tensors(device_->bytes(), pass);
    if (pass.kind == LayerPass::Kind::backward) {
      BackwardContext<Stream> context(stream_, pass.call, tensors);
      layer_.backward(context);
    } else {
      ForwardContext<Stream> context(stream_, pass.call, tensors);
      layer_.forward(context);
    }
    stream_.copy(host, device);
    stream_.record(done_);
    done_.wait();
    std::copy(host.begin(), host.end(), image.begin());
    return image;
  }

 private:
  using Stream = typename B::Stream;

  L const& layer_;
  B& backend_;
  std::optional<decltype(std::declval<B&>().allocate_device(DeviceId{}, Bytes{}))> device_;
  std::optional<decltype(std::declval<B&>().allocate_host(Bytes{}))> host_;
  Stream stream_;
  typename B::Event done_;
};

}  // namespace detail

/// Checks the rules of \ref roundpipe::Layer, with the exception of 1 and 2, for \p layer on device
/// 0 of \p backend, at the capacity and at smaller extents:
///
/// - Gradients of inputs and parameters equal finite differences. The tolerance follows the
///   coarsest type of the layer's tensors.
/// - The backward overwrites input gradients and adds to parameter gradients.
/// - No pass writes what it may only read, beside its buffers, or to the gradient of a frozen
///   parameter; all that it hands on is written, and depends on nothing that no pass has written.
/// - A pass that runs twice writes the same bits, and so does a replay from each save level.
/// - Tables and footprint at smaller extents take no more bytes, and name the same tensors.
/// - Carried tensors (`carries()`) and their gradients go on unchanged, also in place.
/// - A loss layer multiplies its loss by the gradient scale.
///
/// A layer that writes to the address of an absent gradient ends the process on the host backend.
///
/// \returns what is wrong, a sentence each, with tensor, index, what it is and what it should be;
///          nothing for a sound layer. An error of a pass is the last finding: the backend may have
///          stopped.
/// \throws Error (invalid_argument) for options out of their domain.
template <class L, Backend B>
  requires Layer<L, typename B::Stream>
[[nodiscard]] std::vector<std::string> check_layer(L const& layer,
                                                   B& backend,
                                                   LayerCheckOptions const& options = {}) {
  require(options.smaller.fits(options.capacity),
          Errc::invalid_argument,
          "LayerCheckOptions::smaller does not fit the capacity");
  LayerFacts capacity;
  LayerFacts smaller;
  try {
    capacity = facts_of(layer, options.capacity);
    smaller = facts_of(layer, options.smaller);
  } catch (Error const& error) {
    return {error.message()};
  }
  detail::LayerRunner<L, B> runner(layer, backend);
  return detail::check_passes(
      capacity,
      smaller,
      options,
      [&](detail::LayerLayout const& layout, detail::Image image, detail::LayerPass const& pass) {
        return runner.run(layout, std::move(image), pass);
      });
}

/// \throws Error (invalid_argument) with all that \ref check_layer finds, unless that is nothing.
template <class L, Backend B>
  requires Layer<L, typename B::Stream>
void require_sound(L const& layer, B& backend, LayerCheckOptions const& options = {}) {
  auto const findings = check_layer(layer, backend, options);
  if (findings.empty()) {
    return;
  }
  auto text = "layer '" + roundpipe::detail::name_of(layer) + "' is not sound:";
  for (auto const& finding : findings) {
    text += "\n- " + finding;
  }
  throw Error(Errc::invalid_argument, text);
}

}  // namespace roundpipe::testing
