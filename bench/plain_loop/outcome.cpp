// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <plain_loop/outcome.hpp>

#include <roundpipe/core/bytes.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ostream>
#include <string>

namespace plain_loop {

namespace {

throughput::Speed speed_of(Options const& o,
                           roundpipe::nn::TransformerConfig const& config,
                           Outcome const& outcome) {
  return throughput::speed_of(outcome.iterations_s, config, o, 1, outcome.peak);
}

}  // namespace

void print(std::ostream& out,
           Options const& o,
           roundpipe::nn::TransformerConfig const& config,
           Outcome const& outcome) {
  auto const speed = speed_of(o, config, outcome);
  auto const line = [&](char const* name, std::string const& value) {
    out << fmt::format("{:<26}{}\n", name, value);
  };
  line("model", throughput::model_text(o, config, outcome.parameters));
  line("device", outcome.device);
  line("iteration",
       fmt::format("{} sequences of {} tokens: {} micro-batches of {}",
                   o.batch,
                   o.context,
                   o.micro_batches(),
                   o.rows));
  line("beside the next iteration",
       o.optimizer ? "gradients down, AdamW on the host, weights up"
       : o.copies  ? "gradients down, weights up"
                   : "nothing");
  line("iteration time", throughput::iteration_text(speed, outcome.iterations_s.size()));
  line("tokens/s",
       fmt::format("{:.0f} (median {:.0f})", speed.tokens_per_second, o.tokens() / speed.median_s));
  line("model TFLOP/s", throughput::flops_text(speed, outcome.peak));
  line("device memory", roundpipe::format_bytes(outcome.device_bytes));
  line("loss", fmt::format("{:.4f}", outcome.loss));
}

nlohmann::ordered_json to_json(Options const& o,
                               roundpipe::nn::TransformerConfig const& config,
                               Outcome const& outcome) {
  auto const speed = speed_of(o, config, outcome);
  nlohmann::ordered_json json;
  json["shape"] = o.shape;
  json["layers"] = config.layers;
  json["parameters"] = outcome.parameters;
  json["device"] = outcome.device;
  json["context"] = o.context;
  json["batch"] = o.batch;
  json["rows"] = o.rows;
  json["copies"] = o.copies;
  json["optimizer"] = o.optimizer;
  json["warmup"] = o.warmup;
  json["loss_chunk"] = o.loss_chunk;
  throughput::add_speed(json, outcome.iterations_s, speed, outcome.peak);
  json["median_tokens_per_second"] = o.tokens() / speed.median_s;
  json["device_bytes"] = outcome.device_bytes;
  json["loss"] = outcome.loss;
  return json;
}

}  // namespace plain_loop
