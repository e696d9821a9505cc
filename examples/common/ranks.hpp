// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the ranks of a program agree on, which rounds each has, and which GPUs of its host.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/system/cpu_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

namespace examples {

/// The first of the \p count GPUs that process number \p local_rank of its host takes: those behind
/// the GPUs of the processes before it. Where the launcher has shown it no more than \p count GPUs,
/// they are its own. \p visible: the value of CUDA_VISIBLE_DEVICES; null: not set.
[[nodiscard]] inline std::size_t first_rank_device(
    std::size_t local_rank,
    std::size_t count,
    char const* visible = std::getenv("CUDA_VISIBLE_DEVICES")) noexcept {
  if (visible != nullptr) {
    std::string_view const names = visible;
    if (static_cast<std::size_t>(std::count(names.begin(), names.end(), ',')) < count) {
      return 0;
    }
  }
  return local_rank * count;
}

/// The threads that choose how a batch is cut, see \ref roundpipe::automatic: all CPUs of a process
/// by itself; of several ranks few, since ranks of one host share its CPUs, and each has as many.
[[nodiscard]] inline std::size_t planning_threads(roundpipe::AnyProcessGroup const& group) {
  constexpr std::size_t of_a_rank = 4;
  return group.size() > 1 ? of_a_rank : roundpipe::usable_cpus().threads;
}

/// Lets the rounds of all ranks be dealt as \p deal says: "equal", "speed" (what ranks measure), or
/// the speed of each rank, as "3,1".
/// \throws roundpipe::Error (invalid_argument) for anything else.
inline void deal_rounds(std::string const& deal, roundpipe::PipelineOptions& options) {
  options.measures_rank_speeds = deal == "speed";
  if (deal == "equal" || deal == "speed") {
    return;
  }
  std::istringstream words(deal);
  for (std::string word; std::getline(words, word, ',');) {
    char* end = nullptr;
    options.rank_speeds.push_back(std::strtod(word.c_str(), &end));
    roundpipe::require(end != word.c_str() && *end == '\0',
                       roundpipe::Errc::invalid_argument,
                       "--deal is equal, speed, or a number for each rank, as 3,1");
  }
}

/// What rank 0 says of \p stops; ranks must stop after the same step.
[[nodiscard]] inline bool as_rank_0_says(roundpipe::AnyProcessGroup group, bool stops) {
  std::byte said{stops ? std::uint8_t{1} : std::uint8_t{0}};
  group.broadcast(roundpipe::GroupChannel::control, 0, {&said, 1});
  return said == std::byte{1};
}

}  // namespace examples
