// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The smallest models of Layer and of its opt-ins: exactly the members that the concepts
/// require.

#include <roundpipe/concepts/layer.hpp>
#include <support/copy_only.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace roundpipe::test {

/// Not a T, but converts to one.
template <class T>
struct ConvertsTo {
  operator T() const { return {}; }
};

/// A layer that takes nothing, does nothing and hands over nothing.
template <class Stream>
struct LayerArchetype : CopyOnly {
  using CopyOnly::CopyOnly;
  ConvertsTo<ParameterTable> parameters() const { return {}; }
  ConvertsTo<TensorTable> input(BatchShape) const { return {}; }
  ConvertsTo<TensorTable> boundary(BatchShape) const { return {}; }
  ConvertsTo<Footprint> footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<Stream>&) const {}
  void backward(BackwardContext<Stream>&) const {}
};

/// The same, with a loss of no terms: the smallest last layer.
template <class Stream>
struct LossLayerArchetype : LayerArchetype<Stream> {
  using LayerArchetype<Stream>::LayerArchetype;
  ConvertsTo<std::int64_t> loss_terms(std::span<HostTensor const>, BatchShape) const { return {}; }
};

/// The same, with every opt-in.
template <class Stream>
struct FullLayerArchetype : LossLayerArchetype<Stream> {
  using LossLayerArchetype<Stream>::LossLayerArchetype;
  ConvertsTo<TensorTable> side_inputs(BatchShape) const { return {}; }
  ConvertsTo<TensorTable> results(BatchShape) const { return {}; }
  ConvertsTo<FlopCount> work(BatchShape) const { return {}; }
  ConvertsTo<std::vector<Bytes>> save_levels(BatchShape) const { return {}; }
  ConvertsTo<bool> backward_reads_parameters() const { return {}; }
  ConvertsTo<Carries> carries() const { return {}; }
  ConvertsTo<std::string> name() const { return {}; }
};

}  // namespace roundpipe::test
