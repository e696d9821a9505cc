// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The command line of train_throughput.

#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/nn/transformer_config.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <throughput/workload.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace train_throughput {

using throughput::Bytes;

/// All options with their defaults.
struct Options : throughput::Workload {
  std::size_t devices = 1;       ///< Of each rank.
  std::size_t first_device = 0;  ///< By CUDA's numbers.
  /// The ranks that mpirun has started, if any; they share \c batch.
  roundpipe::AnyProcessGroup group{};
  std::string network = "mpi";              ///< What large messages of ranks go by.
  std::string deal = "equal";               ///< How rounds are dealt to ranks.
  std::size_t micro_batches_per_round = 0;  ///< In a round; 0: as the forecast chooses.
  std::size_t rounds = 0;                   ///< 0: likewise.
  bool automatic = false;                   ///< Lets the forecast choose even where both are given.
  std::string checkpoints = "auto";         ///< "stages", "layers", or as the forecast chooses.
  std::string overlap = "auto";             ///< Of rounds: "on", "off", or as the forecast chooses.
  std::string resident_parameters = "auto";  ///< Likewise; so are the next two.
  std::string resident_boundaries = "auto";
  std::string peer_boundaries = "auto";
  std::optional<roundpipe::Buffering> buffering;  ///< None: as the forecast chooses.
  /// Micro-batches of a round whose saves are offloaded; none: as the forecast chooses.
  std::optional<std::size_t> offload;
  Bytes device_memory = Bytes{24} << 30;  ///< 0: what the device has.
  Bytes host_memory = 0;                  ///< 0: what the process may take.
  std::string precision = "bf16";
  std::string states = "fp32";
  bool sync = false;
  bool check_finite = false;
  std::string schedule = "roundpipe";
  std::string protocol = "event";
  std::string transfers = "planned";
  std::string partition = "bound";
  std::string cost_file;  ///< Empty: none.
  std::string json;       ///< Empty: none; "-": standard output.
  std::string trace;      ///< Empty: none.

  /// Whether the forecast chooses micro-batches and rounds, or what of them is not given.
  [[nodiscard]] bool chooses_cut() const noexcept {
    return automatic || micro_batches_per_round == 0 || rounds == 0;
  }
  /// Micro-batches in an iteration, of all ranks, once all is chosen.
  [[nodiscard]] std::size_t micro_batches() const noexcept {
    return micro_batches_per_round * rounds * group.size();
  }
  /// Sequences in a micro-batch.
  [[nodiscard]] std::int64_t rows() const noexcept {
    return batch / static_cast<std::int64_t>(micro_batches());
  }
};

/// Adds the options of what is trained and how to \p app, which writes them to \p o: all but
/// budgets, and what becomes of the results. Both must live while it parses.
void add_training_options(CLI::App& app, Options& o);

/// Lets \p o train with the ranks of \p group, of which rank 0 alone prints and writes. This
/// process is number \p local_rank of its host, and takes its GPUs behind those of the ones before.
/// \throws roundpipe::Error (invalid_argument) when the ranks cannot share the batch, and for
/// options
///         that are for one process.
void join(Options& o, roundpipe::AnyProcessGroup group, std::size_t local_rank);

/// Checks them, and fills in what follows from them.
/// \throws roundpipe::Error (invalid_argument) for options that make no training.
void complete(Options& o);

/// Pins in \p options what \p o pin of a plan, but for micro-batches and rounds.
void pin_plan(Options const& o, roundpipe::PipelineOptions& options);

/// The constants of the model in the precision that \p o names.
/// \throws roundpipe::Error (invalid_argument) as \ref throughput::config_of.
[[nodiscard]] roundpipe::nn::TransformerConfig config_of(Options const& o);

/// As \ref examples::budget_of reads it.
[[nodiscard]] std::string budget_text(Bytes budget);

/// Reads and checks the command line. \returns nothing if the user asked for help, which it has
/// printed.
/// \throws roundpipe::Error (invalid_argument) for options that it cannot read or that make no
/// training.
[[nodiscard]] std::optional<Options> parse_options(int argc, char const* const* argv);

}  // namespace train_throughput
