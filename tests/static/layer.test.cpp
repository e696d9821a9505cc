// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/layer.hpp>

#include <roundpipe/backend/host_stream.hpp>
#include <support/layer_archetype.hpp>
#include <support/toy_layers.hpp>

#include <concepts>
#include <cstdint>
#include <span>

namespace {

using namespace roundpipe;
using test::FullLayerArchetype;
using test::LayerArchetype;
using test::LossLayerArchetype;

struct AnyStream {};
struct OtherStream {};
using Smallest = LayerArchetype<AnyStream>;
using Full = FullLayerArchetype<AnyStream>;

static_assert(Layer<Smallest, AnyStream>);
static_assert(Layer<LossLayerArchetype<AnyStream>, AnyStream>);
static_assert(Layer<Full, AnyStream>);
static_assert(Layer<test::ToyDense, HostStream>, "a user's own");

static_assert(!Layer<int, AnyStream>);
static_assert(!Layer<AnyStream, AnyStream>);
static_assert(!Layer<Smallest, OtherStream>, "a layer runs on the streams that it was written for");
static_assert(!Layer<test::ToyDense, AnyStream>);
static_assert(LayerDescription<Smallest>, "a description needs no stream");

// The opt-ins: the smallest layer has none of them, the full one has each.
static_assert(!LossLayer<Smallest> && LossLayer<LossLayerArchetype<AnyStream>> && LossLayer<Full>);
static_assert(!HasSideInputs<Smallest> && HasSideInputs<Full>);
static_assert(!HasResults<Smallest> && HasResults<Full>);
static_assert(!HasWork<Smallest> && HasWork<Full>);
static_assert(!HasSaveLevels<Smallest> && HasSaveLevels<Full>);
static_assert(!HasCarries<Smallest> && HasCarries<Full>);
static_assert(!HasName<Smallest> && HasName<Full>);
static_assert(!HasBackwardReads<Smallest> && HasBackwardReads<Full>);

// Each lacks one member of the smallest layer, or has it in another form.
struct LayerThatStays : Smallest {
  using Smallest::Smallest;
  LayerThatStays(LayerThatStays const&) = delete;
};
struct LayerWithoutParameters : Smallest {
  using Smallest::Smallest;
  void parameters() const = delete;
};
struct LayerWithParametersAsTensors : Smallest {
  using Smallest::Smallest;
  TensorTable parameters() const;
};
struct LayerWithoutInput : Smallest {
  using Smallest::Smallest;
  void input(BatchShape) const = delete;
};
struct LayerWithoutBoundary : Smallest {
  using Smallest::Smallest;
  void boundary(BatchShape) const = delete;
};
struct LayerWithOneShapeAsBoundary : Smallest {
  using Smallest::Smallest;
  Shape boundary(BatchShape) const;
};
struct LayerWithFixedBoundary : Smallest {
  using Smallest::Smallest;
  TensorTable boundary() const;
};
struct LayerWithoutFootprint : Smallest {
  using Smallest::Smallest;
  void footprint(BatchShape) const = delete;
};
struct LayerWithBareFootprint : Smallest {
  using Smallest::Smallest;
  Bytes footprint(BatchShape) const;
};
struct LayerWithoutForward : Smallest {
  using Smallest::Smallest;
  void forward(ForwardContext<AnyStream>&) const = delete;
};
struct LayerWithoutBackward : Smallest {
  using Smallest::Smallest;
  void backward(BackwardContext<AnyStream>&) const = delete;
};
struct LayerThatChangesInForward : Smallest {
  using Smallest::Smallest;
  void forward(ForwardContext<AnyStream>&);
};
struct LayerThatChangesInBackward : Smallest {
  using Smallest::Smallest;
  void backward(BackwardContext<AnyStream>&);
};
struct LayerWithMutableDescription : Smallest {
  using Smallest::Smallest;
  ParameterTable parameters();
};
struct LayerThatSwapsContexts : Smallest {
  using Smallest::Smallest;
  void forward(BackwardContext<AnyStream>&) const;
};
static_assert(!Layer<LayerThatStays, AnyStream>);
static_assert(!Layer<LayerWithoutParameters, AnyStream>);
static_assert(!Layer<LayerWithParametersAsTensors, AnyStream>);
static_assert(!Layer<LayerWithoutInput, AnyStream>);
static_assert(!Layer<LayerWithoutBoundary, AnyStream>);
static_assert(!Layer<LayerWithOneShapeAsBoundary, AnyStream>);
static_assert(!Layer<LayerWithFixedBoundary, AnyStream>);
static_assert(!Layer<LayerWithoutFootprint, AnyStream>);
static_assert(!Layer<LayerWithBareFootprint, AnyStream>);
static_assert(!Layer<LayerWithoutForward, AnyStream>);
static_assert(!Layer<LayerWithoutBackward, AnyStream>);
static_assert(!Layer<LayerThatChangesInForward, AnyStream>);
static_assert(!Layer<LayerThatChangesInBackward, AnyStream>);
static_assert(!Layer<LayerWithMutableDescription, AnyStream>);
static_assert(!Layer<LayerThatSwapsContexts, AnyStream>);

// Opt-ins in another form do not count.
struct LossWithoutCount : Smallest {
  using Smallest::Smallest;
  void loss_terms(std::span<HostTensor const>, BatchShape) const;
};
struct LossOfMutableTensors : Smallest {
  using Smallest::Smallest;
  std::int64_t loss_terms(std::span<HostTensor>, BatchShape) const;
};
struct SideInputsWithoutShape : Smallest {
  using Smallest::Smallest;
  TensorTable side_inputs() const;
};
struct ResultsAsShape : Smallest {
  using Smallest::Smallest;
  Shape results(BatchShape) const;
};
struct WorkAsOneNumber : Smallest {
  using Smallest::Smallest;
  double work(BatchShape) const;
};
struct NameAsNumber : Smallest {
  using Smallest::Smallest;
  int name() const;
};
static_assert(!LossLayer<LossWithoutCount>);
static_assert(!LossLayer<LossOfMutableTensors>);
static_assert(!HasSideInputs<SideInputsWithoutShape>);
static_assert(!HasResults<ResultsAsShape>);
static_assert(!HasWork<WorkAsOneNumber>);
static_assert(!HasName<NameAsNumber>);
struct CarriesAsNumber {
  int carries() const;
};
static_assert(!HasCarries<CarriesAsNumber>);

// The types that layers see: device memory does not convert to host memory, nor the reverse.
static_assert(!std::convertible_to<DeviceSpan<float>, HostSpan<float>>);
static_assert(!std::convertible_to<HostSpan<float>, DeviceSpan<float>>);
static_assert(std::convertible_to<DeviceSpan<float>, DeviceSpan<float const>>);
static_assert(!std::convertible_to<DeviceSpan<float const>, DeviceSpan<float>>);

}  // namespace
