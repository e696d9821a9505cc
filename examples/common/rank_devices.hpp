// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The GPUs of a program that may be one of several on its host.

#include <common/ranks.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/cuda_options.hpp>
#include <roundpipe/cuda/device/device.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace examples {

/// The GPUs of process number \p local_rank of \p local_ranks on its host: \p wanted, or an equal
/// part of those that there are, see \ref first_rank_device.
/// \throws roundpipe::Error as `device_count` and `first_devices` do.
[[nodiscard]] inline std::vector<roundpipe::DeviceId> rank_devices(
    std::optional<std::size_t> wanted, std::size_t local_rank, std::size_t local_ranks) {
  namespace cu = roundpipe::cu;
  auto const count = wanted ? *wanted : std::max<std::size_t>(cu::device_count() / local_ranks, 1);
  return cu::first_devices(count, first_rank_device(local_rank, count));
}

}  // namespace examples
