// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a type must offer to be trained as one layer.
///
/// Customization points, all member functions:
///
/// | member                         | who has it                                                  |
/// |--------------------------------|-------------------------------------------------------------|
/// | `parameters()`                 | every layer                                                 |
/// | `input(shape)`                 | every layer                                                 |
/// | `boundary(shape)`              | every layer                                                 |
/// | `footprint(shape)`             | every layer                                                 |
/// | `forward(ctx)`                 | every layer                                                 |
/// | `backward(ctx)`                | every layer                                                 |
/// | `side_inputs(shape)`           | opt-in: what it reads from the batch                        |
/// | `loss_terms(side, shape)`      | opt-in: makes it a loss layer, the model's last             |
/// | `results(shape)`               | opt-in: what `evaluate` hands to the caller                 |
/// | `work(shape)`                  | opt-in: FLOPs, for the estimated cost model                 |
/// | `name()`                       | opt-in: what plans, errors and timelines call it            |

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe {

/// The device memory of one layer for one micro-batch, besides boundaries and parameters.
struct Footprint {
  Bytes saved_bytes = 0;      ///< From the saving forward to the backward.
  Bytes workspace_bytes = 0;  ///< During one call of forward or backward, whichever needs more.
};

/// Floating-point operations of one layer for one micro-batch (a multiply-add counts two).
struct FlopCount {
  double forward_flops = 0;
  double backward_flops = 0;  ///< Without recomputation.
};

/// \brief A layer that says which tensors it takes, keeps and hands on.
///
/// Satisfied by: every `nn` layer, and a user's own.
template <class L>
concept LayerDescription = requires(L const& layer, BatchShape shape) {
  { layer.parameters() } -> std::convertible_to<ParameterTable>;
  { layer.input(shape) } -> std::convertible_to<TensorTable>;
  { layer.boundary(shape) } -> std::convertible_to<TensorTable>;
  { layer.footprint(shape) } -> std::convertible_to<Footprint>;
};

/// \brief A layer with a forward pass on \p Stream.
template <class L, class Stream>
concept HasForward = requires(L const& layer, ForwardContext<Stream>& ctx) { layer.forward(ctx); };

/// \brief A layer with a backward pass on \p Stream.
template <class L, class Stream>
concept HasBackward =
    requires(L const& layer, BackwardContext<Stream>& ctx) { layer.backward(ctx); };

/// \brief A layer that reads tensors of the batch.
template <class L>
concept HasSideInputs = requires(L const& layer, BatchShape shape) {
  { layer.side_inputs(shape) } -> std::convertible_to<TensorTable>;
};

/// \brief A layer that ends the model with a loss. `loss_terms` runs on the host, before the call,
/// over the micro-batch's side inputs: it returns how many terms the loss sums (the unmasked
/// labels, say). One over the call's total is every loss layer's gradient scale.
template <class L>
concept LossLayer =
    requires(L const& layer, std::span<HostTensor const> side_inputs, BatchShape shape) {
      { layer.loss_terms(side_inputs, shape) } -> std::convertible_to<std::int64_t>;
    };

/// \brief A layer that hands tensors to the caller of `evaluate`.
template <class L>
concept HasResults = requires(L const& layer, BatchShape shape) {
  { layer.results(shape) } -> std::convertible_to<TensorTable>;
};

/// \brief A layer that counts its own FLOPs.
template <class L>
concept HasWork = requires(L const& layer, BatchShape shape) {
  { layer.work(shape) } -> std::convertible_to<FlopCount>;
};

/// \brief A layer with a name of its own.
template <class L>
concept HasName = requires(L const& layer) {
  { layer.name() } -> std::convertible_to<std::string>;
};

/// \brief One layer of a model, runnable on \p Stream.
///
/// Semantics:
/// 1. A layer is a stateless description. All members are `const`, and depend on nothing but the
///    layer's own constants and their arguments; reason: copies of one layer run on several issuing
///    threads at once, and a backward may run on another device than its forward.
/// 2. `forward` and `backward` are called at *issue* time: they enqueue work on `ctx.stream()` and
///    return; reason: the data is not there yet. They never wait, never allocate device memory,
///    never enqueue elsewhere, and reach device memory from enqueued work only.
/// 3. `forward` reads parameters, inputs and side inputs and writes every output. When
///    `ctx.saving()`, it also writes to `ctx.saved()` what `backward` will need; reason: `backward`
///    finds parameters, inputs, side inputs and `saved()`, but no outputs. A loss layer's saving
///    forward may leave the loss to `backward`; reason: where both form the same products, one of
///    them can do it all.
/// 4. `backward` overwrites every input gradient that is present and *adds* to every parameter
///    gradient that is present; reason: parameter gradients accumulate over the micro-batches of a
///    slot, in their order, in the accumulation type, and frozen parameters have none. What is
///    present does not change the bits of the rest.
/// 5. `forward` may run several times for one micro-batch (recomputation), on different devices,
///    and must write the same bits each time; random numbers come from `ctx.random()` alone.
/// 6. The tables for smaller extents pack into no more bytes than those for the capacity, and the
///    number and types of their tensors do not depend on the extents; reason: memory is planned
///    once, for the capacity.
/// 7. The gradient of a boundary tensor has its shape and type. Integer tensors have none.
/// 8. A layer that throws from `forward` or `backward` stops the pipeline; the caller's next call
///    rethrows with layer, stage and device named.
template <class L, class Stream>
concept Layer = std::copy_constructible<L> && LayerDescription<L> && HasForward<L, Stream> &&
                HasBackward<L, Stream>;

}  // namespace roundpipe
