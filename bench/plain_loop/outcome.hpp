// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The results of a run of plain_loop, and their output.

#include <plain_loop/options.hpp>
#include <roundpipe/nn/transformer_config.hpp>
#include <throughput/speed.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace plain_loop {

struct Outcome {
  std::string device;
  std::uint64_t parameters = 0;
  throughput::Peak peak;
  std::vector<double> iterations_s;  ///< The measured iterations.
  double loss = 0;                   ///< Of the last iteration.
  Bytes device_bytes = 0;            ///< In use after it, by the driver.
};

/// For people.
void print(std::ostream& out,
           Options const& o,
           roundpipe::nn::TransformerConfig const& config,
           Outcome const& outcome);
/// For programs: one object, with the keys of train_throughput.
[[nodiscard]] nlohmann::ordered_json to_json(Options const& o,
                                             roundpipe::nn::TransformerConfig const& config,
                                             Outcome const& outcome);

}  // namespace plain_loop
