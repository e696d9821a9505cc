// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads a device and its link from a JSON file, by path or by name.
///
/// \code{.json}
/// {
///   "name": "RTX 4090",
///   "tflops": 330,            // the peak of dense bf16 products, 10^12 FLOP/s
///   "sustained_tflops": 211,  // of layers' products in training; default: unknown
///   "memory_gib": 24,         // 2^30 bytes
///   "memory_gbps": 1008,      // 10^9 bytes/s
///   "link": {"up_gbps": 32, "down_gbps": 32, "latency_us": 2.8,
///            "host_up_gbps": 146,    // of all devices' uploads together; default: unlimited
///            "host_down_gbps": 107,  // of all downloads
///            "host_gbps": 158,       // of both; default: unlimited
///            "peer_gbps": 300},      // from a device to others; default: they reach none
///   "source": "where the figures are from"
/// }
/// \endcode

#include <plan_pipeline/json_fields.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/hardware.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace plan_pipeline {

/// The names of the files NAME.json in \p folder, sorted; none if there is no such folder.
[[nodiscard]] inline std::vector<std::string> known_hardware(std::filesystem::path const& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (auto const& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Reads the file \p name if \p name ends in ".json" or has a folder, otherwise NAME.json in \p
/// folder.
/// \throws roundpipe::Error, one line that names the file and the key: (with the system's code) if
/// the
///         file cannot be read; (invalid_argument) for a name that is not in \p folder, text that
///         is not JSON, and keys that are missing, unknown or out of range.
[[nodiscard]] inline roundpipe::Hardware read_hardware(std::string const& name,
                                                       std::filesystem::path const& folder) {
  using roundpipe::Errc;
  using roundpipe::Error;
  std::filesystem::path path = name;
  if (path.extension() != ".json" && !path.has_parent_path()) {
    auto const names = known_hardware(folder);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string list;
      for (auto const& known : names) {
        list += (list.empty() ? "" : ", ") + known;
      }
      throw Error(Errc::invalid_argument,
                  "no hardware is called '" + name + "'; " + folder.string() + " has " +
                      (list.empty() ? "none" : list) + "; or give a file *.json");
    }
    path = folder / (name + ".json");
  }
  auto const where = path.string();
  auto const json = read_json(path);
  JsonFields const fields(
      json,
      where,
      {"name", "tflops", "sustained_tflops", "memory_gib", "memory_gbps", "link", "source"});
  JsonFields const link(fields.at("link"),
                        where + ": 'link'",
                        {"up_gbps",
                         "down_gbps",
                         "latency_us",
                         "host_up_gbps",
                         "host_down_gbps",
                         "host_gbps",
                         "peer_gbps"});
  roundpipe::Hardware hardware;
  auto& device = hardware.device;
  device.name = fields.text("name");
  device.memory_bytes = static_cast<roundpipe::Bytes>(fields.number("memory_gib") * 0x1p30);
  device.flops_per_second = fields.number("tflops") * 1e12;
  hardware.sustained_flops_per_second = fields.number_or("sustained_tflops", 0) * 1e12;
  device.memory_bytes_per_second = fields.number("memory_gbps") * 1e9;
  device.upload_bytes_per_second = link.number("up_gbps") * 1e9;
  device.download_bytes_per_second = link.number("down_gbps") * 1e9;
  device.host_upload_bytes_per_second = link.number_or("host_up_gbps", 0) * 1e9;
  device.host_download_bytes_per_second = link.number_or("host_down_gbps", 0) * 1e9;
  device.host_bytes_per_second = link.number_or("host_gbps", 0) * 1e9;
  device.reaches_peers = link.has("peer_gbps");
  device.peer_bytes_per_second = device.reaches_peers ? link.number("peer_gbps") * 1e9 : 0;
  hardware.latency_seconds = link.number("latency_us", true) * 1e-6;
  hardware.source = fields.text("source");
  roundpipe::check_hardware(hardware);
  return hardware;
}

}  // namespace plan_pipeline
