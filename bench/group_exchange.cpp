// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief How fast do ranks exchange host memory with NCCL, and without? Each rank sends messages
/// of a size to all others at once. Under mpirun, ranks are processes, and MPI is the other way;
/// else they are threads, one for each GPU, and the other way is two copies by the CPU.
/// `group_exchange
/// --help` lists the options. The program checks all bytes, and fails where one is wrong.

#include <common/command_line.hpp>
#include <common/run_program.hpp>
#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/exchange_seconds.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/nccl/nccl_group.hpp>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#ifdef ROUNDPIPE_HAS_MPI
#  include <roundpipe/mpi/mpi_group.hpp>
#  include <roundpipe/mpi/mpi_launch.hpp>
#endif

namespace {

namespace rp = roundpipe;
using rp::Bytes;

struct Options {
  std::string smallest = "64KiB";
  std::string largest = "64MiB";
  std::string staging = "64MiB";
  std::size_t tries = 5;
  int blocks = rp::NcclOptions{}.most_blocks;
};

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  CLI::App app{"Measures how fast ranks exchange host memory, with NCCL and without.\n",
               "group_exchange"};
  auto const add = [&](char const* name, auto& value, char const* help) {
    return app.add_option(name, value, help)->capture_default_str();
  };
  add("--smallest", o.smallest, "The smallest message")->type_name("SIZE");
  add("--largest", o.largest, "The largest message; sizes grow by 4")->type_name("SIZE");
  add("--staging", o.staging, "Memory of each GPU for messages under way")->type_name("SIZE");
  add("--blocks", o.blocks, "Blocks of threads of NCCL's kernels");
  add("--tries", o.tries, "Exchanges of each size, of which the fastest counts");
  return examples::parse(app, argc, argv) ? std::optional(o) : std::nullopt;
}

/// Fills \p words with numbers that name their sender and their place.
void write_pattern(rp::HostBytes bytes, std::size_t sender) {
  for (std::size_t i = 0; i < bytes.size() / sizeof(std::uint64_t); ++i) {
    std::uint64_t const word = (i + sender) * 0x9E3779B97F4A7C15U;
    std::memcpy(bytes.data() + i * sizeof(word), &word, sizeof(word));
  }
}

/// \returns the seconds of an exchange of \p mine with each other rank.
/// \throws Error (device_fault) where what has arrived is wrong.
template <rp::ProcessGroup G>
double measure(G& group, rp::HostBytes mine, rp::HostBytes theirs, std::size_t tries) {
  write_pattern(mine, group.rank());
  std::memset(theirs.data(), 0, theirs.size());
  auto const seconds = rp::exchange_seconds(group, rp::GroupChannel::weights, mine, theirs, tries);
  std::vector<std::byte> expected(mine.size());
  for (std::size_t r = 0; r < group.size(); ++r) {
    if (r == group.rank()) {
      continue;
    }
    write_pattern(expected, r);
    auto const part = theirs.subspan((r < group.rank() ? r : r - 1) * mine.size(), mine.size());
    rp::require(std::memcmp(part.data(), expected.data(), part.size()) == 0,
                rp::Errc::device_fault,
                "a message is not what was sent");
  }
  return seconds;
}

/// What one rank does; rank 0 prints. \p way: the name of the group that NCCL is compared with.
void run_rank(Options const& o, rp::AnyProcessGroup other, char const* way, rp::DeviceId device) {
  rp::cu::CurrentDevice const current(device);
  auto const others = other.size() - 1;
  bool const prints = other.rank() == 0;
  auto const largest = rp::parse_bytes(o.largest);
  rp::NcclOptions options{
      .device = device, .staging_bytes = rp::parse_bytes(o.staging), .most_blocks = o.blocks};
  {
    rp::NcclGroup const found(other, options);  // measures
    auto const from = found.smallest_bytes();
    if (prints) {
      fmt::print("{} ranks; NCCL takes {}\n",
                 other.size(),
                 from == std::numeric_limits<std::size_t>::max()
                     ? "no message"
                     : "messages from " + rp::format_bytes(from) + " on");
    }
  }
  options.smallest_bytes = 0;
  rp::NcclGroup group(other, options);
  rp::cu::PinnedMemory const memory((1 + others) * largest);
  if (prints) {
    fmt::print("{:>12} {:>10} GB/s {:>10} GB/s {:>8}\n", "message", way, "NCCL", "times");
  }
  for (auto bytes = rp::parse_bytes(o.smallest); bytes <= largest; bytes *= 4) {
    auto const mine = memory.bytes().first(bytes);
    auto const theirs = memory.bytes().subspan(largest, others * bytes);
    auto const other_s = measure(other, mine, theirs, o.tries);
    auto const nccl_s = measure(group, mine, theirs, o.tries);
    auto const rate = [&](double s) { return 1e-9 * static_cast<double>(others * bytes) / s; };
    if (prints) {
      fmt::print("{:>12} {:>10.2f}      {:>10.2f}      {:>8.2f}\n",
                 rp::format_bytes(bytes),
                 rate(other_s),
                 rate(nccl_s),
                 other_s / nccl_s);
      std::fflush(stdout);
    }
  }
}

void run_threads(Options const& o) {
  auto const ranks = rp::cu::device_count();
  if (ranks < 2) {
    fmt::print("skipped: NCCL wants a GPU for each rank, and there is one\n");
    return;
  }
  rp::LoopbackNetwork network(ranks);
  std::vector<std::optional<rp::Error>> errors(ranks);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      rp::LoopbackGroup other(network, r);
      try {
        run_rank(o, other, "copies", rp::DeviceId(static_cast<int>(r)));
      } catch (...) {
        errors[r] = rp::current_error("");
        other.abort(errors[r]->message());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (bool const echoes : {false, true}) {
    for (auto const& error : errors) {
      if (error && (error->code() == rp::Errc::aborted) == echoes) {
        throw *error;
      }
    }
  }
}

void run(Options const& o) {
#ifdef ROUNDPIPE_HAS_MPI
  if (rp::is_under_mpirun()) {
    rp::MpiGroup group;
    run_rank(o, group, "MPI", rp::DeviceId(static_cast<int>(rp::local_rank())));
    return;
  }
#endif
  run_threads(o);
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("group_exchange", parse_options, run, argc, argv);
}
