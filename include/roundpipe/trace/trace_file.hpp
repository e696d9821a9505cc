// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The common part of all writers of timelines: input checks, and writing a file.

#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <system_error>

namespace roundpipe::detail {

/// \throws Error (invalid_argument) when an entry names a device that \p timeline does not have.
inline void require_known_devices(Timeline const& timeline) {
  for (auto const& entry : timeline) {
    require(!entry.lane.device.valid() || entry.lane.device.index() < timeline.devices,
            Errc::invalid_argument,
            "an entry of a timeline names a device that the timeline does not have");
  }
}

/// \throws Error (std::errc::io_error) when \p out failed to take everything.
inline void require_written(std::ostream& out) {
  if (!out.flush()) {
    throw Error(std::make_error_code(std::errc::io_error), "a trace could not be written");
  }
}

/// Calls \p write(stream) with the file \p path, which it replaces.
/// \throws Error (with the system's code) when the file cannot be opened, and the exceptions of \p
/// write; an unfinished file is removed.
template <class F>
void write_trace_file(std::filesystem::path const& path, F&& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) {
    auto const code = errno != 0 ? std::error_code(errno, std::generic_category())
                                 : std::make_error_code(std::errc::io_error);
    throw Error(code, "cannot write the trace to '" + path.string() + "'");
  }
  try {
    write(static_cast<std::ostream&>(file));
  } catch (...) {
    file.close();
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) {
      std::filesystem::remove(path, ignored);
    }
    throw;
  }
}

}  // namespace roundpipe::detail
