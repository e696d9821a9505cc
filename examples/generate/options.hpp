// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The command line of generate.

#include <common/pick.hpp>
#include <roundpipe/core/bytes.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace generate {

/// All options with their defaults.
struct Options {
  std::string model;
  std::string adapter;  ///< Empty: none.
  std::vector<std::int32_t> prompt;
  std::int64_t tokens = 64;
  examples::Sampling sampling;
  std::uint64_t seed = 1;
  std::string precision = "as-model";
  std::string backend;                 ///< Empty: chosen.
  roundpipe::Bytes device_memory = 0;  ///< 0: what the device has.
};

/// Reads and checks the command line. \returns nothing if the user asked for help, which it has
/// printed.
/// \throws roundpipe::Error (invalid_argument) for options that it cannot read.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace generate
