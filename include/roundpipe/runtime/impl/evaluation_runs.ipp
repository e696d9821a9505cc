// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/evaluation_runs.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

namespace roundpipe {

ROUNDPIPE_INLINE CallData evaluation_call(PipelinePlan const& plan,
                                          PipelineOptions const& options,
                                          ShapedModel const& shaped,
                                          TakeHostMemory const& take) {
  CallData call;
  take_staging(call,
               options.micro_batches_per_round,
               shaped.batch.tensors.bytes(),
               plan.model.layers.back().results.bytes(),
               take);
  call.stages = plan.stages.evaluate;
  call.micro_batches_per_round = options.micro_batches_per_round;
  call.evaluating = true;
  return call;
}

}  // namespace roundpipe
