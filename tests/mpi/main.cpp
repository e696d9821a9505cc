// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The program of tests/mpi.

#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <mpi/programs.hpp>
#include <string_view>

int main(int argc, char** argv) {
  using namespace roundpipe::test;
  struct Program {
    std::string_view name;
    int (*run)(Arguments arguments);
  };
  constexpr std::array programs{Program{"process_group", process_group},
                                Program{"ranks_equal_serial", ranks_equal_serial},
                                Program{"kill_a_rank", kill_a_rank},
                                Program{"resident_memory", resident_memory}};
  std::string_view const name = argc > 1 ? argv[1] : "";
  try {
    for (auto const& each : programs) {
      if (each.name == name) {
        return each.run(Arguments(argv + 2, static_cast<std::size_t>(argc) - 2));
      }
    }
    std::fprintf(stderr, "usage: mpi_ranks NAME ARGUMENT...\n");
  } catch (std::exception const& error) {
    std::printf("%s\n", error.what());
  }
  return 2;
}
