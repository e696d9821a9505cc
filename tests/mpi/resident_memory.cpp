// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Compares the ledger of each rank with the memory that the system reports for its process:
/// resident_memory WIDTH [unequal] trains eight matrices of WIDTH times WIDTH; with "unequal", rank
/// r keeps r + 1 times as much of the optimizer states as rank 0. Prints "rank RANK of RANKS: ..."
/// where both are within 2 %.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/mpi/mpi_group.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/any_optimizer.hpp>
#include <support/rank_trainings.hpp>
#include <support/resident_bytes.hpp>
#include <support/toy_model.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mpi/programs.hpp>

namespace resident_memory_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

int run(std::int64_t width, bool is_unequal) {
  MpiGroup group;
  RankMix mix{.ranks = group.size(), .dtype = DType::bf16, .clips = true, .adam = true};
  mix.width = width;
  mix.layers = 8;
  auto options = rank_options(mix);
  for (std::size_t r = 0; is_unequal && r < mix.ranks; ++r) {
    options.rank_shares.push_back(static_cast<double>(r + 1));
  }
  HostBackend backend(host_devices(1));
  group.barrier(GroupChannel::control);
  // Not counted: what the process holds by now (MPI's own memory) and pages of files or shared ones
  // (code, MPI's messages), and what stands for the memory of the device.
  auto const before = resident_bytes("RssAnon:");
  RankPipeline pipeline(
      rank_model(mix), AnyOptimizer(true), backend, options, rank_policies(mix, group));
  ToyData const data(group.size(), {1, 1}, 0);
  (void)pipeline.forward_backward(data.batch());
  pipeline.step();
  pipeline.synchronize();
  auto const& ledger = pipeline.plan().ledger;
  auto const planned = static_cast<double>(total_bytes(ledger, LedgerLine::Space::host));
  auto const device = static_cast<double>(total_bytes(ledger, LedgerLine::Space::device));
  auto const taken = static_cast<double>(resident_bytes("RssAnon:") - before) - device;
  auto const error = taken / planned - 1;
  std::printf("rank %zu of %zu: ledger %.1f MB, resident %.1f MB, %+.2f %%\n",
              group.rank(),
              group.size(),
              planned / 1e6,
              taken / 1e6,
              100 * error);
  return std::abs(error) <= 0.02 ? 0 : 1;
}

}  // namespace
}  // namespace resident_memory_test

int roundpipe::test::resident_memory(Arguments arguments) {
  if (has_shadow_memory) {
    std::printf("skipped: a sanitizer holds memory of its own\n");
    return 0;
  }
  return resident_memory_test::run(arguments.empty() ? 1024 : std::atoll(arguments[0]),
                                   arguments.size() > 1);
}
