// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A communicator of NCCL, and what its calls say, as errors.

#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <nccl.h>
#include <source_location>
#include <string>

namespace roundpipe::nccl {

/// \throws Error (device_fault) with the name of \p call and NCCL's text, unless \p result is
///         success.
inline void check(::ncclResult_t result,
                  char const* call,
                  std::source_location where = std::source_location::current()) {
  if (result != ::ncclSuccess) {
    throw Error(Errc::device_fault,
                std::string(call) + ": " + ::ncclGetErrorString(result) + ". " +
                    ::ncclGetLastError(nullptr),
                where);
  }
}

/// What rank 0 makes, and all ranks need, for a communicator.
[[nodiscard]] inline ::ncclUniqueId unique_id() {
  ::ncclUniqueId id{};
  check(::ncclGetUniqueId(&id), "ncclGetUniqueId");
  return id;
}

/// An owned communicator of the device that is current at its construction. One thread at a time
/// uses it.
class Communicator {
 public:
  /// An operation of all ranks. Waits for all of them.
  /// \param most_blocks of threads that a kernel of NCCL has.
  /// \throws Error (device_fault) for what NCCL says, such as that two ranks have the same device.
  Communicator(::ncclUniqueId const& id, std::size_t ranks, std::size_t rank, int most_blocks) {
    ::ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.minCTAs = 1;
    config.maxCTAs = most_blocks;
    check(::ncclCommInitRankConfig(
              &handle_, static_cast<int>(ranks), id, static_cast<int>(rank), &config),
          "ncclCommInitRankConfig");
  }
  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;
  /// An operation of all ranks, but after \ref abort. No operation may be under way.
  ~Communicator() {
    if (handle_ != nullptr) {
      (void)::ncclCommDestroy(handle_);
    }
  }

  [[nodiscard]] ::ncclComm_t get() const noexcept { return handle_; }

  /// \throws Error (device_fault) when NCCL has found that an operation failed.
  void check_health() const {
    auto failure = ::ncclSuccess;
    check(::ncclCommGetAsyncError(handle_, &failure), "ncclCommGetAsyncError");
    check(failure, "NCCL");
  }

  /// Ends what is under way on the device, without the other ranks, and gives all resources back.
  void abort() noexcept {
    if (handle_ != nullptr) {
      (void)::ncclCommAbort(handle_);
      handle_ = nullptr;
    }
  }

 private:
  ::ncclComm_t handle_ = nullptr;
};

}  // namespace roundpipe::nccl
