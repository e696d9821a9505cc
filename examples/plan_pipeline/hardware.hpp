// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads a device and its link from a JSON file, by path or by name.
///
/// \code{.json}
/// {
///   "name": "RTX 4090",
///   "tflops": 330,            // dense bf16, 10^12 FLOP/s
///   "memory_gib": 24,         // 2^30 bytes
///   "memory_gbps": 1008,      // 10^9 bytes/s
///   "link": {"up_gbps": 32, "down_gbps": 32, "latency_us": 2.8},
///   "source": "where the figures are from"
/// }
/// \endcode

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/hardware.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace plan_pipeline {

namespace detail {

/// The members of one object of the file, each of them asked for and none besides.
class JsonFields {
 public:
  /// \param where How errors name the object: its file, and its key if it is inside another.
  JsonFields(nlohmann::json const& object,
             std::string where,
             std::initializer_list<std::string_view> known)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) {
      fail("is no JSON object");
    }
    for (auto const& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        fail("has a key " + nlohmann::json(key).dump() + ", which means nothing here");
      }
    }
  }

  [[nodiscard]] nlohmann::json const& at(char const* key) const {
    auto const found = object_.find(key);
    if (found == object_.end()) {
      fail("has no '" + std::string(key) + "'");
    }
    return *found;
  }

  [[nodiscard]] std::string text(char const* key) const {
    auto const& value = at(key);
    if (!value.is_string() || value.get_ref<std::string const&>().empty()) {
      fail("'" + std::string(key) + "' must be a text");
    }
    return value.get<std::string>();
  }

  /// A number above 0, or from 0 on with \p or_zero, that its unit does not make absurd.
  [[nodiscard]] double number(char const* key, bool or_zero = false) const {
    auto const& value = at(key);
    auto const n = value.is_number() ? value.get<double>() : -1;
    if (!((or_zero ? n >= 0 : n > 0) && n <= 1e9)) {
      fail("'" + std::string(key) + "' is " +
           (value.is_number() ? value.dump() : std::string("a JSON ") + value.type_name()) +
           ", but must be a number " + (or_zero ? "from 0" : "above 0") + " up to 1e9");
    }
    return n;
  }

 private:
  [[noreturn]] void fail(std::string const& what) const {
    throw roundpipe::Error(roundpipe::Errc::invalid_argument, where_ + ": " + what);
  }

  nlohmann::json const& object_;
  std::string where_;
};

}  // namespace detail

/// The names of the files NAME.json in \p folder, sorted; none when there is no such folder.
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

/// Reads the file \p name if that ends in ".json" or has a folder, else NAME.json in \p folder.
/// \throws roundpipe::Error, one line that names the file and the key: (with the system's code)
/// when
///         it can not be read; (invalid_argument) for a name that \p folder has not, text that is
///         no JSON, and keys that are missing, unknown or out of range.
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
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(std::make_error_code(std::errc::is_a_directory), "can not read '" + where + "'");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(std::error_code(errno != 0 ? errno : EIO, std::generic_category()),
                "can not read '" + where + "'");
  }
  nlohmann::json json;
  try {
    json = nlohmann::json::parse(file);
  } catch (nlohmann::json::exception const& error) {
    throw Error(Errc::invalid_argument, where + ": " + error.what());
  }

  detail::JsonFields const fields(
      json, where, {"name", "tflops", "memory_gib", "memory_gbps", "link", "source"});
  detail::JsonFields const link(
      fields.at("link"), where + ": 'link'", {"up_gbps", "down_gbps", "latency_us"});
  roundpipe::Hardware hardware;
  auto& device = hardware.device;
  device.name = fields.text("name");
  device.memory_bytes = static_cast<roundpipe::Bytes>(fields.number("memory_gib") * 0x1p30);
  device.flops_per_second = fields.number("tflops") * 1e12;
  device.memory_bytes_per_second = fields.number("memory_gbps") * 1e9;
  device.upload_bytes_per_second = link.number("up_gbps") * 1e9;
  device.download_bytes_per_second = link.number("down_gbps") * 1e9;
  hardware.latency_seconds = link.number("latency_us", true) * 1e-6;
  hardware.source = fields.text("source");
  roundpipe::check_hardware(hardware);
  return hardware;
}

}  // namespace plan_pipeline
