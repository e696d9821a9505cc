// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What calls of MPI say of themselves, as errors.

#include <roundpipe/core/error.hpp>

#include <array>
#include <cstddef>
#include <mpi.h>
#include <source_location>
#include <string>

namespace roundpipe::mpi {

/// \throws Error (device_fault) with the name of \p call and MPI's text, unless \p status is
///         success.
inline void check(int status,
                  char const* call,
                  std::source_location where = std::source_location::current()) {
  if (status == MPI_SUCCESS) {
    return;
  }
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(status, text.data(), &length) != MPI_SUCCESS) {
    length = 0;
  }
  throw Error(Errc::device_fault,
              std::string(call) + ": " + std::string(text.data(), static_cast<std::size_t>(length)),
              where);
}

}  // namespace roundpipe::mpi
