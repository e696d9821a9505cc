// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The options of programs that run under mpirun.

#include <common/command_line.hpp>

#include <CLI/CLI.hpp>

#include <string>

namespace examples {

/// Adds to \p app, in \p group, what messages of ranks go by, and how rounds are dealt to them.
inline void add_rank_options(CLI::App& app,
                             std::string& network,
                             std::string& deal,
                             char const* group = "Options") {
  auto const add = [&](char const* name, std::string& value, char const* help) {
    return app.add_option(name, value, wrapped(help))->capture_default_str()->group(group);
  };
  add("--network",
      network,
      "Under mpirun, what gradients and weights of ranks go by: mpi, or nccl, from GPU to GPU")
      ->check(CLI::IsMember({"mpi", "nccl"}));
  add("--deal",
      deal,
      "Under mpirun, how the rounds of all ranks are dealt to them: equal; speed, by how fast "
      "their "
      "layers run; or by a number for each, as 3,1");
}

/// \throws roundpipe::Error (invalid_argument) when \p network is for GPUs, and \p backend is not.
inline void check_network(std::string const& network, std::string const& backend) {
  if (network == "nccl" && backend != "cuda") {
    refuse("--network nccl is for GPUs, with --backend cuda");
  }
}

}  // namespace examples
