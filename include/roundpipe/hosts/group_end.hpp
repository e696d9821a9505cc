// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether a group of processes has ended, and why.

#include <roundpipe/config.hpp>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

namespace roundpipe {

/// The end of a group, see rule 8 of \ref ProcessGroup. Any thread may call any member.
class GroupEnd {
 public:
  /// Says that rank \p rank has ended the group. \returns whether nobody had before.
  bool set(std::size_t rank, std::string const& reason);

  [[nodiscard]] bool is_set() const noexcept { return is_set_.load(std::memory_order_acquire); }

  /// \throws Error (aborted) once the group has ended.
  void rethrow() const;

 private:
  mutable std::mutex mutex_;
  std::string message_;
  std::atomic<bool> is_set_{false};
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/hosts/impl/group_end.ipp>
#endif
