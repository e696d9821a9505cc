// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The text file that carries measured costs from one process to the next.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace roundpipe {

/// What measured costs depend on, in one line: how many \p devices were measured at once (the
/// slowest one counts, and they share the host and its power), the name of \p device, which is the
/// first of them, the capacity, a hash of all that the layers say of themselves there, and the
/// version of the library. Delete the file after a change of something else, such as a kernel, a
/// driver, or a machine whose device has the same name.
///
/// The budget of device memory is no part of the key, though it may change costs a little: on CUDA,
/// algorithms of matrix products are chosen in the memory that the budget leaves. Where that is too
/// little for a product, a smaller one stands for it, and another algorithm may win. If that
/// matters, give each budget a file of its own.
[[nodiscard]] std::string cost_key(ModelDescription const& model,
                                   DeviceProperties const& device,
                                   std::size_t devices);

/// The costs that the file \p path keeps of \p model on \p devices devices, see \ref cost_key; none
/// where there is no file, or none of these.
/// \throws Error (std::errc::io_error) when the file cannot be read, (invalid_argument) when it is
///         no file of costs, or a damaged one; the message names the file and the line.
[[nodiscard]] std::optional<CostModel> find_costs(std::string const& path,
                                                  ModelDescription const& model,
                                                  DeviceProperties const& device,
                                                  std::size_t devices);

/// Keeps the times of passes of \p costs in the file \p path, beside what it keeps already. The new
/// file takes the place of the old one at once and whole. Of two processes that do so at the same
/// time, one may lose its costs, and will measure again.
/// \throws Error as \ref find_costs; (std::errc::io_error) when the file cannot be written.
void keep_costs(std::string const& path,
                ModelDescription const& model,
                DeviceProperties const& device,
                std::size_t devices,
                CostModel const& costs);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/probe/impl/cost_file.ipp>
#endif
