// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/memory/stage_budget.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/working_set_choice.hpp>

#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE WorkingSetChoice::WorkingSetChoice(ModelDescription const& model,
                                                    ParameterBlocks const& blocks,
                                                    CostModel const& known,
                                                    WorkingSet chosen)
    : set(std::move(chosen)),
      sizes(model, blocks, set),
      costs(average_costs(known.layers(), set)) {}

}  // namespace detail

}  // namespace roundpipe
