// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/activation_copies.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/gradient_downloads.hpp>
#include <roundpipe/plan/parameter_uploads.hpp>
#include <roundpipe/plan/save_copies.hpp>
#include <roundpipe/plan/stage_compute.hpp>
#include <roundpipe/plan/streamed_graph.hpp>

#include <cstddef>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE ActionGraph build_streamed_graph(StreamedGraphInput const& input) {
  detail::CallContext call(input);
  detail::ActivationCopies activations(call);
  detail::ParameterUploads parameters(call);
  detail::GradientDownloads gradients(call);
  detail::SaveCopies saves(call);
  detail::StageCompute compute(call, saves);
  for (std::size_t s = 0; s < call.slots.size();) {
    SlotId const first(s);
    auto const turn = call.turn_of(first);
    for (std::size_t w = 0; w < call.micro_batches_per_round();
         ++w) {  // window w: micro-batch w of each computes
      for (auto const slot : turn) {
        activations.add_up(slot, w);
      }
      for (auto const slot : turn) {
        if (w == 0) {
          parameters.add_own(slot);
          saves.begin_slot(slot);
        }
      }
      parameters.add_window(first, w);
      gradients.add_window(first, w);
      for (auto const slot : turn) {
        // Copies stand right behind what they wait for: who issues actions in this order may be
        // only so far ahead of compute.
        compute.add(slot, w, [&](Pass const& pass, bool completes_entry) {
          activations.add_sent(slot, w, pass);
          if (completes_entry) {
            activations.add_down(slot, w);
          }
          if (pass.runs_backward() && w + 1 == call.micro_batches_per_round()) {
            gradients.finish_layer(slot, pass.layer);
          }
        });
        saves.finish_micro_batch(slot, w);
      }
    }
    s += turn.size();
  }
  gradients.finish_call();
  return std::move(call.graph).finish(input.advance);
}

}  // namespace roundpipe
