// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What every process group must do, as one rank sees it.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/hosts/gather_parts.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace roundpipe::test {

/// Bytes that depend on who sends them, to whom, and when.
inline std::vector<std::byte> group_bytes(std::size_t size,
                                          std::size_t from,
                                          std::size_t to,
                                          std::uint64_t when) {
  std::vector<std::byte> bytes(size);
  RandomKey const key{when, static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to), 0, 0};
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(random_word(key, i));
  }
  return bytes;
}

/// Runs operations of all kinds on one rank of a group, and says what was wrong.
template <ProcessGroup G>
class GroupConformance {
 public:
  explicit GroupConformance(G& group) : group_(group), rank_(group.rank()), ranks_(group.size()) {}

  /// All ranks call it; \p rounds: of the operations of each channel.
  [[nodiscard]] std::vector<std::string> run(std::size_t rounds) {
    // Each channel has a thread; they begin with different operations, so that both are under way.
    std::vector<std::string> of_gradients;
    std::thread gradients([&] { of_gradients = run_channel(GroupChannel::gradients, 1, rounds); });
    auto wrong = run_channel(GroupChannel::control, 0, rounds);
    gradients.join();
    wrong.insert(wrong.end(), of_gradients.begin(), of_gradients.end());
    return wrong;
  }

 private:
  [[nodiscard]] std::vector<std::string> run_channel(GroupChannel channel,
                                                     std::size_t first,
                                                     std::size_t rounds) {
    std::vector<std::string> wrong;
    auto const expect = [&](bool holds, std::string const& what) {
      if (!holds) {
        wrong.push_back("rank " + std::to_string(rank_) + ": " + what);
      }
    };
    try {
      for (std::size_t i = 0; i < rounds; ++i) {
        auto const when = 100 * i + static_cast<std::uint64_t>(channel);
        for (std::size_t k = 0; k < 5; ++k) {
          switch ((first + k) % 5) {
            case 0:
              expect(gathers(channel, when), "gather");
              break;
            case 1:
              expect(exchanges(channel, when), "exchange");
              break;
            case 2:
              expect(broadcasts(channel, when), "broadcast");
              break;
            case 3:
              expect(completes(channel, when), "gather_parts");
              break;
            default:
              group_.barrier(channel);
          }
        }
      }
    } catch (std::exception const& error) {
      expect(false, error.what());
    }
    return wrong;
  }

  [[nodiscard]] bool gathers(GroupChannel channel, std::uint64_t when) {
    bool right = true;
    for (std::size_t const size : {std::size_t{0}, std::size_t{1}, std::size_t{1003}}) {
      auto const mine = group_bytes(size, rank_, 0, when);
      std::vector<std::byte> all(ranks_ * size);
      group_.gather(channel, mine, all);
      std::vector<std::byte> expected;
      for (std::size_t r = 0; r < ranks_; ++r) {
        auto const theirs = group_bytes(size, r, 0, when);
        expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      right = right && all == expected;
    }
    return right;
  }

  [[nodiscard]] bool exchanges(GroupChannel channel, std::uint64_t when) {
    // Some parts are empty, and no two pairs exchange as much.
    auto const size = [](std::size_t from, std::size_t to) {
      return (from + to) % 3 == 1 ? 0 : 17 * from + 5 * to + 1;
    };
    std::vector<std::vector<std::byte>> sent;
    std::vector<std::vector<std::byte>> received;
    std::vector<ConstHostBytes> mine;
    std::vector<HostBytes> theirs;
    for (std::size_t r = 0; r < ranks_; ++r) {
      sent.push_back(group_bytes(size(rank_, r), rank_, r, when));
      received.emplace_back(size(r, rank_));
    }
    for (std::size_t r = 0; r < ranks_; ++r) {
      mine.emplace_back(sent[r]);
      theirs.emplace_back(received[r]);
    }
    group_.exchange(channel, mine, theirs);
    bool right = true;
    for (std::size_t r = 0; r < ranks_; ++r) {
      right = right && received[r] == group_bytes(size(r, rank_), r, rank_, when);
    }
    return right;
  }

  [[nodiscard]] bool broadcasts(GroupChannel channel, std::uint64_t when) {
    bool right = true;
    for (std::size_t root = 0; root < ranks_; ++root) {
      auto bytes = group_bytes(257, rank_, 0, when);
      group_.broadcast(channel, root, bytes);
      right = right && bytes == group_bytes(257, root, 0, when);
    }
    return right;
  }

  [[nodiscard]] bool completes(GroupChannel channel, std::uint64_t when) {
    auto const size = [](std::size_t rank) { return rank % 3 == 1 ? 0 : 301 * rank + 7; };
    std::vector<std::vector<std::byte>> expected;
    std::vector<std::vector<std::byte>> memory;
    for (std::size_t r = 0; r < ranks_; ++r) {
      expected.push_back(group_bytes(size(r), r, 0, when));
      memory.push_back(r == rank_ ? expected.back() : std::vector<std::byte>(size(r)));
    }
    std::vector<HostBytes> const parts(memory.begin(), memory.end());
    gather_parts(group_, channel, parts);
    return memory == expected;
  }

  G& group_;
  std::size_t rank_;
  std::size_t ranks_;
};

/// The message of the Error (aborted) that \p f throws; another one's code, or "nothing".
template <class F>
std::string end_of(F&& f) {
  try {
    f();
  } catch (Error const& error) {
    return error.code() == Errc::aborted ? error.message() : "another error: " + error.message();
  }
  return "nothing";
}

}  // namespace roundpipe::test
