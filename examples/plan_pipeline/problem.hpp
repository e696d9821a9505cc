// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The input of planning: times and bytes of layers, and the machine's links.
///
/// \code{.json}
/// {
///   "model": "a name",
///   "communication_ms": 1.6,    // a boundary's way to another device; or "link", or neither
///   "link": {"up_gbps": 32, "down_gbps": 32, "latency_us": 3, "both_ways_factor": 0.9,
///            "device_factors": [1, 1, 1, 0.5],  // these multiply the rates of each device
///            "groups": [[0, 1], [2, 3]], "root_gbps": 50, "host_gbps": 150},
///   "dispatch_us": 5,           // the time to issue an action
///   "layers": [
///     {"name": "layer.0", "forward_ms": 7.4, "backward_ms": 15.8,
///      "recompute_ms": 7.4,     // default: forward_ms
///      "optimizer_ms": 2,       // default of this and all following keys: 0
///      "parameter_bytes": 1e8, "gradient_bytes": 1e8, "boundary_bytes": 1.6e7,
///      "saved_bytes": 2e8, "workspace_bytes": 1e7}
///   ]
/// }
/// \endcode

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/estimate/hardware.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/simulate/link_model.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace plan_pipeline {

/// Rates of links in gbps are 10^9 bytes per second.
struct Problem {
  std::string name;
  std::vector<roundpipe::LayerCost> costs;
  std::vector<roundpipe::LayerBytes> bytes;
  roundpipe::LinkModel link;
  double hand_over_s =
      0;  ///< The time of a boundary from one device to another, besides its copies.
  double dispatch_s = 0;
};

/// Reads measured costs.
/// \throws roundpipe::Error, one line that names the file and the key, as \ref read_json, and
///         (invalid_argument) for keys that are missing, unknown, negative or no numbers.
[[nodiscard]] Problem read_costs(std::filesystem::path const& path);

/// The hardware in the file \p name, or the one that is known by that name.
/// \throws roundpipe::Error as \ref read_hardware.
[[nodiscard]] roundpipe::Hardware hardware_named(std::string const& name);

/// Estimates costs of the model shape \p name for \p micro_batch on the hardware \p hardware, a
/// file or a name; \p micro_batches_per_round: M_R. Adds a sentence to \p warnings if the
/// round's compute is too short to hide its uploads.
/// \throws roundpipe::Error for unknown names, and as \ref read_hardware.
[[nodiscard]] Problem estimate_costs(std::string const& name,
                                     std::string const& hardware,
                                     roundpipe::BatchShape micro_batch,
                                     std::int64_t micro_batches_per_round,
                                     std::vector<std::string>& warnings);

}  // namespace plan_pipeline
