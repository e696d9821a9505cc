// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The files of a checkpoint's folder that are no weights: found, and copied.

#include <roundpipe/config.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// The names of the files of \p folder that a tuned model needs besides its weights, sorted:
/// configurations, tokenizer, chat template, licence, code. Left out are folders, hidden files, and
/// weights in any format, since the weights are about to change. Links count as what they lead to.
/// \throws Error with the system's code when the folder cannot be read.
[[nodiscard]] std::vector<std::string> files_beside_weights(std::filesystem::path const& folder);

/// Copies the files \p names of the folder \p from to the folder \p to, each at once and whole.
/// What \p to has already stays as it is: write first what shall differ.
/// \throws Error with the system's code when a file cannot be read or written.
void copy_files(std::filesystem::path const& from,
                std::filesystem::path const& to,
                std::span<std::string const> names);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/carried_files.ipp>
#endif
