// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Trains random mixes by the ranks of MPI, and compares each with the serial oracle, bit
/// for bit: ranks_equal_serial COUNT.

#include <roundpipe/core/random.hpp>
#include <roundpipe/mpi/mpi_group.hpp>
#include <support/rank_trainings.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Mix number \p number for \p ranks ranks, the same on each.
RankMix mix_of(std::uint64_t number, std::size_t ranks) {
  std::uint64_t drawn = 0;
  auto mix = any_rank_mix([&](char const*, std::size_t first, std::size_t last) {
    return first + random_word({number, 0, 0, 0, 9}, drawn++) % (last - first + 1);
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

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1);
  } catch (std::exception const& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
}
