// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Starts the operations of a group as non-blocking calls of MPI.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/mpi/mpi_error.hpp>

#include <algorithm>
#include <cstddef>
#include <mpi.h>
#include <span>
#include <vector>

namespace roundpipe::mpi {

/// More bytes than this go in several calls. So it shows whether a long one goes on, and what one
/// process copies for another is still in a cache.
inline constexpr std::size_t piece_bytes = std::size_t{4} << 20U;

/// Calls `f(offset, count)` for the pieces of \p bytes bytes, at most \p most each.
template <class F>
void for_each_piece(std::size_t bytes, std::size_t most, F&& f) {
  for (std::size_t offset = 0; offset < bytes; offset += most) {
    f(offset, static_cast<int>(std::min(most, bytes - offset)));
  }
}

/// The calls of one operation. What they read and write must live until \ref are_done.
class Requests {
 public:
  /// \p most: the bytes of a call.
  explicit Requests(std::size_t most = piece_bytes) : most_(most) {}

  void gather(MPI_Comm group, ConstHostBytes mine, HostBytes all) {
    auto const stride = static_cast<MPI_Aint>(mine.size());
    for_each_piece(mine.size(), most_, [&](std::size_t offset, int count) {
      // A rank's piece, as far apart from the next rank's as their parts are.
      MPI_Datatype piece{};
      MPI_Datatype spaced{};
      check(MPI_Type_contiguous(count, MPI_BYTE, &piece), "MPI_Type_contiguous");
      check(MPI_Type_create_resized(piece, 0, stride, &spaced), "MPI_Type_create_resized");
      check(MPI_Type_commit(&spaced), "MPI_Type_commit");
      check(
          MPI_Iallgather(
              mine.data() + offset, count, MPI_BYTE, all.data() + offset, 1, spaced, group, &add()),
          "MPI_Iallgather");
      check(MPI_Type_free(&piece), "MPI_Type_free");  // calls under way keep what they use
      check(MPI_Type_free(&spaced), "MPI_Type_free");
    });
  }

  void exchange(MPI_Comm group,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs) {
    for (std::size_t r = 0; r < mine.size(); ++r) {
      auto const rank = static_cast<int>(r);
      for_each_piece(theirs[r].size(), most_, [&](std::size_t offset, int count) {
        check(MPI_Irecv(theirs[r].data() + offset, count, MPI_BYTE, rank, 0, group, &add()),
              "MPI_Irecv");
      });
      for_each_piece(mine[r].size(), most_, [&](std::size_t offset, int count) {
        check(MPI_Isend(mine[r].data() + offset, count, MPI_BYTE, rank, 0, group, &add()),
              "MPI_Isend");
      });
    }
  }

  void broadcast(MPI_Comm group, std::size_t root, HostBytes bytes) {
    for_each_piece(bytes.size(), most_, [&](std::size_t offset, int count) {
      check(
          MPI_Ibcast(bytes.data() + offset, count, MPI_BYTE, static_cast<int>(root), group, &add()),
          "MPI_Ibcast");
    });
  }

  void barrier(MPI_Comm group) { check(MPI_Ibarrier(group, &add()), "MPI_Ibarrier"); }

  /// Lets MPI go on with the calls. \returns whether any has been completed.
  [[nodiscard]] bool advance() {
    completed_.resize(requests_.size());
    int count = 0;
    check(MPI_Testsome(static_cast<int>(requests_.size()),
                       requests_.data(),
                       &count,
                       completed_.data(),
                       MPI_STATUSES_IGNORE),
          "MPI_Testsome");
    if (count == MPI_UNDEFINED || count == 0) {  // the former where none are left
      return false;
    }
    std::erase(requests_, MPI_REQUEST_NULL);
    return true;
  }

  /// Whether all calls are complete.
  [[nodiscard]] bool are_done() const noexcept { return requests_.empty(); }

 private:
  [[nodiscard]] MPI_Request& add() { return requests_.emplace_back(MPI_REQUEST_NULL); }

  std::size_t most_;
  std::vector<MPI_Request> requests_;  // that are not complete
  std::vector<int> completed_;         // by the latest look
};

}  // namespace roundpipe::mpi
