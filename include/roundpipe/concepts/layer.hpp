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
/// | `save_levels(shape)`           | opt-in: prefixes of `saved()` that are worth keeping        |
/// | `backward_reads_parameters()`  | opt-in: false frees their memory before the backward        |
/// | `carries()`                    | opt-in: tensors that it hands on as it takes them           |
/// | `name()`                       | opt-in: what plans, errors and timelines call it            |
///
/// The names of opt-ins are reserved: a public member that has such a name, but another form, does
/// not compile in a model.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// More than a host has, and little enough that the bytes of all layers can be added up.
inline constexpr Bytes most_layer_bytes = Bytes{1} << 48;

/// More than a micro-batch has, and few enough that those of all micro-batches can be added up.
inline constexpr std::int64_t most_loss_terms = std::int64_t{1} << 40;

/// The device memory of one layer for one micro-batch, without boundaries and parameters.
struct Footprint {
  Bytes saved_bytes = 0;      ///< From the saving forward to the backward.
  Bytes workspace_bytes = 0;  ///< During one forward or backward, whichever needs more.
};

/// Floating-point operations of one layer for one micro-batch (a multiply-add counts two).
struct FlopCount {
  double forward_flops = 0;
  double backward_flops = 0;  ///< Without recomputation.
  /// Opt-in, by save level from 0, without the last: of the recomputation that finds the level when
  /// nobody reads its output. Not known: as many as of the forward.
  std::vector<double> replay_flops = {};
};

/// Tensors that a layer hands on as it takes them: the last ones of its boundary are the last ones
/// of its input.
struct Carries {
  std::size_t tensors = 0;
  /// So many of these, the last ones, have gradients that go back unchanged, too.
  std::size_t gradients = 0;

  friend constexpr bool operator==(Carries const&, Carries const&) noexcept = default;
};

/// \brief A layer that lists its trained tensors.
template <class L>
concept HasParameters = requires(L const& layer) {
  { layer.parameters() } -> std::convertible_to<ParameterTable>;
};

/// \brief A layer that lists what the layer before must hand over.
template <class L>
concept HasInput = requires(L const& layer, BatchShape shape) {
  { layer.input(shape) } -> std::convertible_to<TensorTable>;
};

/// \brief A layer that lists what it hands to the next one.
template <class L>
concept HasBoundary = requires(L const& layer, BatchShape shape) {
  { layer.boundary(shape) } -> std::convertible_to<TensorTable>;
};

/// \brief A layer that says which other memory it needs.
template <class L>
concept HasFootprint = requires(L const& layer, BatchShape shape) {
  { layer.footprint(shape) } -> std::convertible_to<Footprint>;
};

/// \brief A layer that declares which tensors it reads, keeps and hands on.
///
/// Satisfied by: every `nn` layer, and a user's own.
template <class L>
concept LayerDescription = HasParameters<L> && HasInput<L> && HasBoundary<L> && HasFootprint<L>;

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

/// \brief A layer that ends the model with a loss. Before the call, `loss_terms` runs on the host
/// over the micro-batch's side inputs and returns how many terms the loss sums (for example the
/// unmasked labels). The gradient scale of every loss layer is one over the call's total.
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

/// \brief A layer that can keep a part of what it saves. It lists the bytes of each level in
/// ascending order: prefixes of `saved()`, each behind a whole tensor of \ref TensorCarver, and at
/// last all of it (`footprint(shape).saved_bytes`). The number of levels does not depend on the
/// shape. A layer that lists none has one: everything.
template <class L>
concept HasSaveLevels = requires(L const& layer, BatchShape shape) {
  { layer.save_levels(shape) } -> std::convertible_to<std::vector<Bytes>>;
};

/// \brief A layer that says whether `backward` reads parameters. One that does not is called
/// without them: their memory may hold the next weights by then.
template <class L>
concept HasBackwardReads = requires(L const& layer) {
  { layer.backward_reads_parameters() } -> std::convertible_to<bool>;
};

/// \brief A layer that says which tensors it hands on unchanged: rule 12 of \ref Layer.
template <class L>
concept HasCarries = requires(L const& layer) {
  { layer.carries() } -> std::convertible_to<Carries>;
};

/// \brief A layer that has a name.
template <class L>
concept HasName = requires(L const& layer) {
  { layer.name() } -> std::convertible_to<std::string>;
};

/// \brief One layer of a model, runnable on \p Stream.
///
/// Semantics:
/// 1. A layer is a stateless description. All members are `const` and depend only on the layer's
///    constants and on their arguments; reason: several issuing threads use copies of one layer at
///    once, and a backward may run on another device than its forward.
/// 2. `forward` and `backward` are called at *issue* time: they enqueue work on `ctx.stream()` and
///    return; reason: the data is not there yet. They never wait, never allocate device memory,
///    never enqueue on another stream, and touch device memory in enqueued work only.
/// 3. `forward` reads parameters, inputs and side inputs and writes every output, but need not
///    where `ctx.wants_output()` is false; reason: a recomputation may have no reader. When
///    `ctx.saving()`, `forward` also writes to `ctx.saved()` what `backward` will need; reason:
///    `backward` receives parameters (unless `backward_reads_parameters()` is false), inputs, side
///    inputs and `saved()`, but no outputs. What lies in `saved()` holds no addresses: `backward`
///    may find it elsewhere, or on another device. The saving forward of a loss layer may leave the
///    loss to `backward`; reason: where both need the same products, computing them once is enough.
///    A forward that finds a save level in `saved()` (`ctx.found_level()`) need not compute those
///    bytes again; reason: they have waited on the host since the first forward.
/// 4. `backward` overwrites every input gradient that is present and *adds* to every parameter
///    gradient that is present; reason: parameter gradients accumulate over the micro-batches of a
///    slot, in their order, in the accumulation type; frozen parameters have no gradient. Absent
///    gradients do not change the bits of the others.
/// 5. `forward` may run several times for one micro-batch (recomputation), on different devices,
///    and must write the same bits each time. Random numbers come only from `ctx.random()`.
/// 6. Tables for smaller extents pack into no more bytes than tables for the capacity. The number
///    and types of their tensors do not depend on the extents; reason: memory is planned once, for
///    the capacity.
/// 7. The gradient of a boundary tensor has the tensor's shape and type. Integer tensors have no
///    gradient.
/// 8. A layer that throws from `forward` or `backward` stops the pipeline. The caller's next call
///    rethrows the error and names layer, stage and device.
/// 9. The members that describe a layer answer for each shape that is planned: extents are not
///    negative, each parameter has a name of its own, no table and no part of the footprint takes
///    more than \ref most_layer_bytes, and FLOPs are finite and not negative; reason: bytes and
///    times are added up. What such a member throws breaks this rule, too.
/// 10. Save levels ascend as \ref HasSaveLevels says.
/// 11. Both functions only read what rules 3 and 4 do not let them write: parameters, inputs and
///     side inputs; `backward` also output gradients and what the forward saved. Reason: a backward
///     runs again on the same tensors where costs are measured, and both halves of a split backward
///     read the output gradients. `workspace()` is for scratch.
/// 12. Carried tensors (`carries()`) have the same shapes and types in input and boundary. Their
///     elements are the same, and so are the gradients of so many as it says. The output may *be*
///     the input, and the input gradient the output gradient: at the same address, and then the
///     layer leaves it alone; reason: inside of a stage a tensor that goes past layers need not be
///     copied.
/// 13. `loss_terms` is 0 to \ref most_loss_terms for a micro-batch; reason: the terms of a call are
///     added up. What it throws breaks this rule, too.
template <class L, class Stream>
concept Layer = std::copy_constructible<L> && LayerDescription<L> && HasForward<L, Stream> &&
                HasBackward<L, Stream>;

}  // namespace roundpipe
