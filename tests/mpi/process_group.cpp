// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The conformance test of process groups for MPI: process_group [abort|kill|throw]. Without
/// an argument all ranks must agree; else the last rank ends all others: by abort(), by dying, or
/// by an exception that leaves the scope of its group. They wait for it in vain.

#include <roundpipe/concepts/process_group.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/mpi/mpi_error.hpp>
#include <roundpipe/mpi/mpi_group.hpp>
#include <roundpipe/mpi/mpi_launch.hpp>
#include <support/group_conformance.hpp>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <mpi.h>
#include <mpi/programs.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace process_group_test {
namespace {

using namespace roundpipe;

/// Waits until the last rank ends the group. \returns the exit status.
int run_into_end(MpiGroup& group, std::string_view how) {
  if (group.rank() + 1 == group.size()) {
    group.barrier(GroupChannel::control);
    if (how == "kill") {
      std::raise(SIGKILL);
    }
    if (how == "throw") {
      throw std::runtime_error("no more");
    }
    group.abort("no more");
  }
  // The others may still be in the first barrier when the last rank, which has left it, ends all.
  auto const end = test::end_of([&] {
    if (group.rank() + 1 < group.size()) {
      group.barrier(GroupChannel::control);
    }
    group.barrier(GroupChannel::gradients);
  });
  std::printf("rank %zu: %s\n", group.rank(), end.c_str());
  std::fflush(stdout);
  return 3;
}

/// What the launcher says of a rank, where all ranks share a machine, and how MPI's errors read.
std::vector<std::string> check_surroundings(MpiGroup const& group) {
  std::vector<std::string> wrong;
  if (is_under_mpirun() && (local_rank() != group.rank() || local_size() != group.size())) {
    wrong.emplace_back("the launcher names another rank");
  }
  try {
    mpi::check(MPI_SUCCESS, "MPI_Send");
    mpi::check(MPI_ERR_RANK, "MPI_Send");
    wrong.emplace_back("an error of MPI passes");
  } catch (Error const& error) {
    if (error.code() != Errc::device_fault || !error.message().starts_with("MPI_Send: ")) {
      wrong.push_back(error.message());
    }
  }
  return wrong;
}

int run(std::string_view how) {
  MpiGroup group({.piece_bytes = how.empty() ? 100 : mpi::piece_bytes});
  if (!how.empty()) {
    return run_into_end(group, how);
  }
  auto wrong = test::GroupConformance(group).run(6);
  for (auto& each : check_surroundings(group)) {
    wrong.push_back(std::move(each));
  }
  for (auto const& each : wrong) {
    std::printf("%s\n", each.c_str());
  }
  if (wrong.empty()) {
    std::printf("rank %zu of %zu agrees\n", group.rank(), group.size());
  }
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace process_group_test

int roundpipe::test::process_group(Arguments arguments) {
  return process_group_test::run(arguments.empty() ? "" : arguments[0]);
}
