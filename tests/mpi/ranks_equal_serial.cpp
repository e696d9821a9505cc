// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Trains random mixes by the ranks of MPI, and compares each with the serial oracle, bit
/// for bit: ranks_equal_serial COUNT.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/mpi/mpi_group.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/any_optimizer.hpp>
#include <support/rank_trainings.hpp>
#include <support/toy_model.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mpi/programs.hpp>

namespace ranks_equal_serial_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Mix number \p number of those for \p ranks ranks, the same on each.
RankMix mix_of(std::uint64_t number, std::size_t ranks) {
  std::uint64_t drawn = 0;
  auto mix = any_rank_mix([&](char const*, std::size_t first, std::size_t last) {
    return first + random_word({number, static_cast<std::uint32_t>(ranks), 0, 0, 9}, drawn++) %
                       (last - first + 1);
  });
  mix.ranks = ranks;
  return mix;
}

int run(std::uint64_t count) {
  MpiGroup group;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto const mix = mix_of(i, group.size());
    if (rank_outcome(mix, group) != serial_outcome(mix)) {
      std::printf("rank %zu: training %zu differs\n", group.rank(), static_cast<std::size_t>(i));
      return 1;
    }
  }
  std::printf("rank %zu of %zu: %zu trainings equal the oracle's\n",
              group.rank(),
              group.size(),
              static_cast<std::size_t>(count));
  return 0;
}

/// The code of docs/11_several_hosts.md; docs_are_tested.cmake looks for it here.
int run_docs() {
  auto const model = rank_model(RankMix{});
  AnyOptimizer const optimizer(true);
  HostBackend backend(HostBackendOptions{});
  MpiGroup group;  // begins MPI, and ends it when it goes
  PipelineOptions const options{
      .capacity = {2, 3}, .micro_batches_per_round = 2, .rounds = 12 / group.size()};
  Pipeline pipeline{model, optimizer, backend, options, Policies{.group = group}};
  double loss = 0;
  for (std::uint64_t step = 0; step < 5; ++step) {
    ToyData const data(24, {2, 3}, step);  // the batch of all ranks, the same on each
    loss = pipeline.forward_backward(data.batch());
    pipeline.step();
  }
  std::size_t const digest = weights_digest(pipeline);  // each rank has a part of the weights
  if (group.rank() == 0) {
    std::printf("loss %a, weights %016zx\n", loss, digest);
  }
  return 0;
}

}  // namespace
}  // namespace ranks_equal_serial_test

int roundpipe::test::ranks_equal_serial(Arguments arguments) {
  using namespace ranks_equal_serial_test;
  return arguments.empty() ? run_docs() : run(std::strtoull(arguments[0], nullptr, 10));
}
