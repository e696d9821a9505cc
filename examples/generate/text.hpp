// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A text of tokens grows, token by token, through a trainer's `evaluate`.

#include <common/pick.hpp>
#include <roundpipe/architectures/adapter_weights.hpp>
#include <roundpipe/architectures/checkpoint_weights.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model.hpp"
#include "options.hpp"

namespace generate {

/// The prompt and what comes after it. Each token takes one forward of the whole text.
template <class Trainer>
[[nodiscard]] std::vector<std::int32_t> continued(Trainer& trainer,
                                                  Model const& model,
                                                  Options const& o) {
  roundpipe::WorkerPool pool(roundpipe::usable_cpus().threads);
  roundpipe::load_weights(trainer, model.names, model.checkpoint, pool);
  if (!o.adapter.empty()) {
    roundpipe::load_adapter(trainer, model.names, o.adapter, pool);
  }
  auto text = o.prompt;
  for (std::int64_t i = 0; i < o.tokens; ++i) {
    auto const length = static_cast<std::int64_t>(text.size());
    // The loss of these labels means nothing; the last logits do not depend on them.
    auto const evaluation =
        trainer.evaluate(roundpipe::Batch(1, {1, length}).set("tokens", text).set("labels", text));
    auto const logits = evaluation.template result<float>(0, 0);
    auto const next =
        examples::pick(logits, o.sampling, examples::draw(o.seed, static_cast<std::uint64_t>(i)));
    text.push_back(static_cast<std::int32_t>(next));
  }
  return text;
}

}  // namespace generate
