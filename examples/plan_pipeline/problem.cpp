// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "problem.hpp"

#include <plan_pipeline/hardware.hpp>
#include <plan_pipeline/json_fields.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/estimate/shape_costs.hpp>
#include <roundpipe/estimate/transfer_warning.hpp>

#include <cstddef>
#include <string>

namespace plan_pipeline {

namespace rp = roundpipe;

namespace {

rp::Bytes bytes_of(JsonFields const& fields, char const* key, rp::Bytes otherwise = 0) {
  return fields.has(key) ? static_cast<rp::Bytes>(fields.bytes(key)) : otherwise;
}

void read_layer(nlohmann::json const& json, std::string const& where, Problem& problem) {
  JsonFields const fields(json,
                          where,
                          {"name",
                           "forward_ms",
                           "backward_ms",
                           "recompute_ms",
                           "optimizer_ms",
                           "parameter_bytes",
                           "gradient_bytes",
                           "boundary_bytes",
                           "saved_bytes",
                           "workspace_bytes"});
  rp::LayerCost cost{fields.number("forward_ms", true) * 1e-3,
                     fields.number("backward_ms", true) * 1e-3};
  if (fields.has("recompute_ms")) {
    cost.recompute_s = fields.number("recompute_ms", true) * 1e-3;
  }
  cost.optimizer_s = fields.number_or("optimizer_ms", 0) * 1e-3;
  problem.costs.push_back(cost);
  auto const parameters = bytes_of(fields, "parameter_bytes");
  problem.bytes.push_back({parameters,
                           bytes_of(fields, "gradient_bytes", parameters),
                           bytes_of(fields, "boundary_bytes"),
                           bytes_of(fields, "saved_bytes"),
                           bytes_of(fields, "workspace_bytes")});
}

rp::LinkModel read_link(nlohmann::json const& json, std::string const& where) {
  JsonFields const fields(json,
                          where,
                          {"up_gbps",
                           "down_gbps",
                           "latency_us",
                           "both_ways_factor",
                           "device_factors",
                           "groups",
                           "root_gbps",
                           "host_gbps"});
  rp::LinkModel link;
  link.upload_bytes_per_second = fields.number("up_gbps") * 1e9;
  link.download_bytes_per_second = fields.number("down_gbps") * 1e9;
  link.latency_s = fields.number_or("latency_us", 0) * 1e-6;
  link.upload_share_both_ways = fields.number_or("both_ways_factor", 1);
  link.download_share_both_ways = link.upload_share_both_ways;
  link.root_upload_bytes_per_second = fields.number_or("root_gbps", 0) * 1e9;
  link.root_download_bytes_per_second = link.root_upload_bytes_per_second;
  link.host_bytes_per_second = fields.number_or("host_gbps", 0) * 1e9;
  if (fields.has("device_factors")) {
    for (auto const& factor : fields.list("device_factors")) {
      if (!factor.is_number()) {
        fields.fail("'device_factors' must be a list of numbers");
      }
      link.device_factors.push_back(factor.get<double>());
    }
  }
  if (fields.has("groups")) {
    for (auto const& group : fields.list("groups")) {
      auto& devices = link.groups.emplace_back();
      auto const is_device = [](nlohmann::json const& value) {
        return value.is_number_unsigned() && value.get<std::size_t>() < 1'000'000;
      };
      if (!group.is_array() || !std::all_of(group.begin(), group.end(), is_device)) {
        fields.fail("'groups' must be a list of lists of devices");
      }
      for (auto const& device : group) {
        devices.push_back(device.get<std::size_t>());
      }
    }
  }
  return link;
}

}  // namespace

Problem read_costs(std::filesystem::path const& path) {
  auto const json = read_json(path);
  auto const where = path.string();
  JsonFields const fields(json,
                          where,
                          {"model",
                           "micro_batch",
                           "device",
                           "source",
                           "communication_ms",
                           "link",
                           "dispatch_us",
                           "layers"});
  Problem problem;
  problem.name = fields.has("model") ? fields.text("model") : path.stem().string();
  if (fields.has("communication_ms") && fields.has("link")) {
    fields.fail("has both 'communication_ms' and 'link'; a boundary takes the one or the other");
  }
  problem.hand_over_s = fields.number_or("communication_ms", 0) * 1e-3;
  problem.dispatch_s = fields.number_or("dispatch_us", 0) * 1e-6;
  if (fields.has("link")) {
    problem.link = read_link(fields.at("link"), where + ": 'link'");
  }
  auto const& layers = fields.list("layers");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    read_layer(layers[i], where + ": layer " + std::to_string(i), problem);
  }
  return problem;
}

rp::Hardware hardware_named(std::string const& name) {
  return read_hardware(name, ROUNDPIPE_SOURCE_DIR "/examples/plan_pipeline/hardware");
}

Problem estimate_costs(std::string const& name,
                       std::string const& hardware,
                       rp::BatchShape micro_batch,
                       std::int64_t micro_batches_per_round,
                       std::vector<std::string>& warnings) {
  auto const shape = rp::model_shape(name);
  auto const machine = hardware_named(hardware);
  Problem problem;
  problem.name = shape.name;
  problem.costs = rp::layer_costs(shape, machine.device, micro_batch);
  problem.bytes = rp::layer_bytes(shape, micro_batch);
  problem.link.upload_bytes_per_second = machine.device.upload_bytes_per_second;
  problem.link.download_bytes_per_second = machine.device.download_bytes_per_second;
  problem.link.latency_s = machine.latency_seconds;
  if (auto warning =
          rp::transfer_warning(shape, machine.device, micro_batch, micro_batches_per_round)) {
    warnings.push_back(*std::move(warning));
  }
  return problem;
}

}  // namespace plan_pipeline
