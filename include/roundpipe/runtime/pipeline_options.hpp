// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a user decides about a pipeline.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// Where the times that stages are balanced by come from.
enum class CostSource {
  estimated,  ///< From FLOPs and bytes.
  measured,   ///< By running every layer a few times before step 1.
};

/// Options of \ref Pipeline.
struct PipelineOptions {
  BatchShape capacity{};          ///< Largest extents of a micro-batch.
  std::size_t micro_batches = 1;  ///< M_R: micro-batches of a round.
  std::size_t rounds = 1;         ///< R: rounds of a call.
  std::size_t devices = 0;        ///< Devices to use; 0: all of the backend.
  Bytes device_memory = 0;        ///< Budget of each device; 0: what the backend says it has.
  Bytes host_memory = 0;          ///< Budget of the host; 0: what this process may take.
  double clip_norm = 0;           ///< Largest global norm of a step's gradient; 0: no clipping.
  std::uint64_t seed = 0;         ///< Of first values and of dropout.
  CostSource costs = CostSource::estimated;
  std::size_t optimizer_threads = 1;
  std::size_t timeline_calls = 0;  ///< How many of the latest runs `timeline()` keeps; 0: none.
};

}  // namespace roundpipe
