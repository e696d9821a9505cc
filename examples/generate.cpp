// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Lets the model of a checkpoint folder go on after a prompt, so that one can see whether a
/// tuned model speaks. `generate --help` lists the options.

#include <common/run_program.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <vector>

#include "generate/model.hpp"
#include "generate/options.hpp"
#include "generate/run_cuda.hpp"
#include "generate/text.hpp"

namespace {

using namespace generate;
namespace rp = roundpipe;

std::vector<std::int32_t> run_host(Options const& o, Model const& model) {
  rp::SerialTrainer trainer{rp::nn::transformer<rp::nn::HostOps<float>>(model.config.transformer),
                            rp::Sgd{},
                            rp::SerialOptions{.capacity = model.capacity}};
  return continued(trainer, model, o);
}

void run(Options const& o) {
  auto const model = open_model(o);
  bool const on_gpu = o.backend.empty() ? has_cuda() : o.backend == "cuda";
  fmt::print("{}\n", fmt::join(on_gpu ? run_cuda(o, model) : run_host(o, model), ","));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("generate", parse_options, run, argc, argv);
}
