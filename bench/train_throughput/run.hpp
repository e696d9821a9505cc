// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Trains on GPUs and measures: the part of train_throughput for nvcc.

#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/cuda_resources.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/nn/transformer_config.hpp>
#include <train_throughput/options.hpp>
#include <train_throughput/outcome.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace train_throughput {

/// What runs of one process may have in common.
struct Shared {
  /// Host memory that is pinned already. A run takes from it what fits, from its beginning.
  roundpipe::HostBytes pinned;
  std::shared_ptr<roundpipe::cu::CudaResources> resources;  ///< Null: the run has its own.
  /// The costs of the layers at the cut that the options name; none: they are measured.
  std::optional<roundpipe::CostModel> costs;
};

/// Sets micro-batches and rounds of \p o where the forecast is to choose them. Calls \p on_plan
/// with what is planned, before training.
/// \throws roundpipe::Error as \ref roundpipe::cu::CudaBackend, \ref roundpipe::automatic and \ref
/// roundpipe::Pipeline.
[[nodiscard]] Outcome run(Options& o,
                          roundpipe::nn::TransformerConfig const& config,
                          Shared const& shared = {},
                          std::function<void(Outcome const&)> const& on_plan = {});

}  // namespace train_throughput
