// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Chooses which boundaries devices keep.

#include <roundpipe/config.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_finder.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <span>

namespace roundpipe::detail {

/// Which plans \ref keep_resident looks at.
enum class ResidencyTrial {
  all,     ///< That where boundaries stay with their makers, and that where they go to peers, too.
  most,    ///< The one of these that keeps most alone: a search has half as much to forecast.
  forced,  ///< The same without a forecast: that which takes least of the host.
};

/// Lets devices keep boundaries: of those that no other device reads, and where devices reach each
/// other of all, as many as \p found leaves room for, first those that are read soonest. Where \p
/// options leave the choice to \p forecast, returns what that finds fastest, which may be \p found
/// as it is, if the host has room for that. \p slots run the stages of a training call, and \p
/// evaluating those of an evaluation.
[[nodiscard]] FoundPlan keep_resident(FoundPlan found,
                                      std::span<Slot const> slots,
                                      std::span<Slot const> evaluating,
                                      PlanOptions const& options,
                                      PlanForecast const& forecast,
                                      ResidencyTrial trial = ResidencyTrial::all);

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/residency_choice.ipp>
#endif
