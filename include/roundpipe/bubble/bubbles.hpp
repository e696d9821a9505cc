// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The idle time of devices, by what they waited for.

#include <roundpipe/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// What a device without compute waits for.
enum class BubbleCause : std::uint8_t {
  fill,             ///< The first work of the call has not reached the device.
  drain,            ///< The last work of the call has left the device, and no other call has begun.
  imbalance,        ///< Another device still computes what this device needs.
  transfer_stall,   ///< A copy is in flight that could have started earlier.
  memory_stall,     ///< A copy is in flight whose place was in use until now.
  optimizer_stall,  ///< The optimizer, or a buffer that the optimizer reads or writes.
  dispatch,         ///< Nothing: the work was not issued yet, or had just been issued.
};

inline constexpr std::size_t bubble_cause_count = 7;

[[nodiscard]] constexpr char const* name_of(BubbleCause cause) noexcept {
  constexpr char const* names[] = {"fill",
                                   "drain",
                                   "imbalance",
                                   "transfer stall",
                                   "memory stall",
                                   "optimizer stall",
                                   "dispatch"};
  return names[static_cast<std::size_t>(cause)];
}

/// Idle seconds by cause, of all devices together.
class Bubbles {
 public:
  [[nodiscard]] double& operator[](BubbleCause cause) noexcept;
  [[nodiscard]] double operator[](BubbleCause cause) const noexcept;
  [[nodiscard]] double total() const noexcept;
  friend bool operator==(Bubbles const&, Bubbles const&) = default;

 private:
  std::array<double, bubble_cause_count> seconds_{};
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/bubble/impl/bubbles.ipp>
#endif
