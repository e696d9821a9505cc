// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The group of a training that runs in one process.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/hosts/group_checks.hpp>
#include <roundpipe/hosts/group_end.hpp>

#include <cstddef>
#include <span>
#include <string>

namespace roundpipe {

/// A group of one rank: every operation copies what it gives to itself.
class SingleProcess {
 public:
  [[nodiscard]] std::size_t rank() const noexcept { return 0; }
  [[nodiscard]] std::size_t size() const noexcept { return 1; }

  void gather(GroupChannel /*channel*/, ConstHostBytes mine, HostBytes all) {
    end_.rethrow();
    detail::check_gather(1, mine, all);
    detail::copy_bytes(mine, all);
  }
  void exchange(GroupChannel /*channel*/,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs) {
    end_.rethrow();
    detail::check_exchange(0, 1, mine, theirs);
    detail::copy_bytes(mine[0], theirs[0]);
  }
  void broadcast(GroupChannel /*channel*/, std::size_t root, HostBytes /*bytes*/) {
    end_.rethrow();
    detail::check_root(1, root);
  }
  void barrier(GroupChannel /*channel*/) { end_.rethrow(); }

  void abort(std::string const& reason) { end_.set(0, reason); }
  void rethrow() const { end_.rethrow(); }

 private:
  GroupEnd end_;
};

static_assert(ProcessGroup<SingleProcess>);

}  // namespace roundpipe
