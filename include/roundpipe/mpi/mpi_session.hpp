// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief MPI from its beginning to its end, its ranks, and the notices by which one ends all.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/mpi/mpi_error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <mpi.h>
#include <optional>
#include <string>
#include <vector>

namespace roundpipe::mpi {

/// Why a rank has ended the group.
struct Notice {
  std::size_t rank = 0;
  std::string reason;
};

/// MPI as one thread sees it, which alone may use this and destroys it.
class Session {
 public:
  /// An operation of all ranks. Initializes MPI where nobody has.
  /// \throws Error (device_fault) for what MPI says, (unsupported) where MPI was initialized with
  ///         less than MPI_THREAD_SERIALIZED.
  Session() {
    int initialized = 0;
    check(MPI_Initialized(&initialized), "MPI_Initialized");
    int provided = MPI_THREAD_SINGLE;
    if (initialized != 0) {
      check(MPI_Query_thread(&provided), "MPI_Query_thread");
      require(provided >= MPI_THREAD_SERIALIZED,
              Errc::unsupported,
              "MPI was initialized with less than MPI_THREAD_SERIALIZED");
    } else {  // this is MPI's main thread
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
      finalizes_ = true;
    }
    for (auto& channel : channels_) {
      channel = duplicate();
    }
    notices_ = duplicate();
    check(MPI_Comm_rank(notices_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(notices_, &size_), "MPI_Comm_size");
  }

  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  /// An operation of all ranks, but after \ref leave.
  ~Session() {
    if (left_) {
      return;
    }
    for (auto& channel : channels_) {
      MPI_Comm_free(&channel);
    }
    MPI_Comm_free(&notices_);
    if (finalizes_) {
      MPI_Finalize();
    }
  }

  [[nodiscard]] std::size_t rank() const noexcept { return static_cast<std::size_t>(rank_); }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(size_); }
  [[nodiscard]] MPI_Comm channel(GroupChannel channel) const {
    return channels_[static_cast<std::size_t>(channel)];
  }

  /// Leaves MPI as it is, for there are calls that will never be complete.
  void leave() noexcept { left_ = true; }

  /// A notice that has arrived, if any.
  [[nodiscard]] std::optional<Notice> poll_notice() {
    int there = 0;
    MPI_Status status{};
    check(MPI_Iprobe(MPI_ANY_SOURCE, 0, notices_, &there, &status), "MPI_Iprobe");
    if (there == 0) {
      return std::nullopt;
    }
    Text text{};
    check(MPI_Recv(text.data(), text_bytes, MPI_CHAR, status.MPI_SOURCE, 0, notices_, &status),
          "MPI_Recv");
    return Notice{static_cast<std::size_t>(status.MPI_SOURCE), text.data()};
  }

  /// Sends \p reason to all other ranks, cut to what a notice holds. Waits for those that take it
  /// within a second: others may have ended.
  void send_notice(std::string const& reason) {
    std::copy_n(reason.begin(), std::min(reason.size(), sent_.size() - 1), sent_.begin());
    std::vector<MPI_Request> requests;
    for (int r = 0; r < size_; ++r) {
      if (r != rank_) {
        check(MPI_Issend(
                  sent_.data(), text_bytes, MPI_CHAR, r, 0, notices_, &requests.emplace_back()),
              "MPI_Issend");
      }
    }
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (int done = 0; done == 0 && std::chrono::steady_clock::now() < end;) {
      check(MPI_Testall(
                static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
    }
  }

 private:
  static constexpr int text_bytes = 1024;
  using Text = std::array<char, text_bytes>;

  /// All ranks, for messages that meet no others.
  [[nodiscard]] static MPI_Comm duplicate() {
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return copy;
  }

  bool finalizes_ = false;
  bool left_ = false;
  int rank_ = 0;
  int size_ = 1;
  std::array<MPI_Comm, group_channel_count> channels_{};
  MPI_Comm notices_ = MPI_COMM_NULL;
  Text sent_{};  // lives as long as calls that may read it
};

}  // namespace roundpipe::mpi
