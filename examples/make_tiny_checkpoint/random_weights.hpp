// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes random weights of any size in little memory.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstdint>
#include <filesystem>

namespace make_tiny_checkpoint {

/// Writes the weights with which a trainer of \p config and \p seed begins, as `config.dtype`, to
/// \p folder, in files of at most \p most_file_bytes. Each thread of \p pool holds some KiB of
/// them.
/// \returns the number of parameters.
/// \throws roundpipe::Error as roundpipe::CheckpointWriter does.
std::uint64_t write_random_weights(roundpipe::ModelConfig const& config,
                                   std::uint64_t seed,
                                   std::filesystem::path const& folder,
                                   roundpipe::Bytes most_file_bytes,
                                   roundpipe::WorkerPool& pool);

}  // namespace make_tiny_checkpoint
