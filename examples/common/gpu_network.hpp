// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the ranks of a program on GPUs send their messages by.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/hosts/any_process_group.hpp>

#include <optional>
#include <string>

#ifdef ROUNDPIPE_HAS_NCCL
#  include <roundpipe/nccl/nccl_group.hpp>
#endif

namespace examples {

/// The ranks of a program, as --network wants them.
class GpuNetwork {
 public:
  /// \p ranks, whose large messages go by NCCL from \p device, which is this rank's alone, where
  /// \p network is "nccl". Make it before the pipeline, whose budget then counts NCCL's memory.
  /// \throws roundpipe::Error (unsupported) where the program was built without NCCL; as
  ///         `roundpipe::NcclGroup` does.
  GpuNetwork(std::string const& network,
             roundpipe::AnyProcessGroup const& ranks,
             [[maybe_unused]] roundpipe::DeviceId device)
      : group_(ranks) {
#ifdef ROUNDPIPE_HAS_NCCL
    if (network == "nccl") {
      group_ = nccl_.emplace(ranks, roundpipe::NcclOptions{.device = device});
    }
#else
    roundpipe::require(network == "mpi",
                       roundpipe::Errc::unsupported,
                       "--network nccl: this program was built without NCCL");
#endif
  }

  /// It must not outlive this.
  [[nodiscard]] roundpipe::AnyProcessGroup group() const { return group_; }

 private:
#ifdef ROUNDPIPE_HAS_NCCL
  std::optional<roundpipe::NcclGroup> nccl_;
#endif
  roundpipe::AnyProcessGroup group_;
};

}  // namespace examples
