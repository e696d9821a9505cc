// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The errors of files: what the system refuses, and what is wrong with a file's content.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <filesystem>
#include <source_location>
#include <string>
#include <string_view>

namespace roundpipe {

namespace detail {

/// \p text with '?' in place of control characters.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace detail

/// \p text in quotes, for messages: control characters become '?', and a long text is cut.
[[nodiscard]] std::string in_quotes(std::string_view text);

/// The name of a file in quotes, for messages: in whole, but control characters become '?'.
[[nodiscard]] std::string path_in_quotes(std::filesystem::path const& path);

/// The error of a call of the system that failed: its code is the system's \p number (an errno),
/// and its message is "cannot \p action 'FILE'".
[[nodiscard]] Error file_error(std::string const& action,
                               std::filesystem::path const& file,
                               int number,
                               std::source_location where = std::source_location::current());

/// The error (Errc::bad_file) of a file whose content is not as its format wants.
/// \param field The part of the file that is wrong: "shape of tensor 'w'".
/// \param fault What is wrong, after the field: "has the extent -1".
[[nodiscard]] Error bad_file(std::string const& file,
                             std::string const& field,
                             std::string const& fault,
                             std::source_location where = std::source_location::current());

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/file_error.ipp>
#endif
