// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The text file that carries measured costs from one process to the next.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>

#include <optional>
#include <string>

namespace roundpipe {

/// What measured costs depend on, in one line: the name of \p device, the capacity, a hash of all
/// that the layers say of themselves there, and the version of the library. Delete the file after a
/// change of something else, such as a kernel, a driver, or a machine whose device has the same
/// name.
[[nodiscard]] std::string cost_key(ModelDescription const& model, DeviceProperties const& device);

/// The costs that the file \p path keeps of \p model on \p device; none where there is no file, or
/// none of these.
/// \throws Error (std::errc::io_error) when the file cannot be read, (invalid_argument) when it is
///         no file of costs, or a damaged one; the message names the file and the line.
[[nodiscard]] std::optional<CostModel> find_costs(std::string const& path,
                                                  ModelDescription const& model,
                                                  DeviceProperties const& device);

/// Keeps the times of passes of \p costs in the file \p path, beside what it keeps already. The new
/// file takes the place of the old one at once and whole. Of two processes that do so at the same
/// time, one may lose its costs, and will measure again.
/// \throws Error as \ref find_costs; (std::errc::io_error) when the file cannot be written.
void keep_costs(std::string const& path,
                ModelDescription const& model,
                DeviceProperties const& device,
                CostModel const& costs);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/probe/impl/cost_file.ipp>
#endif
