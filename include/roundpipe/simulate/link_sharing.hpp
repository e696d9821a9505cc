// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The rates of simultaneous copies.

#include <roundpipe/config.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/simulate/link_model.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace roundpipe {

/// Between a device and the host, or from a device to another one.
enum class CopyDirection { up, down, peer };

/// Of the copies on lanes of \p kind; none for lanes that copy nothing.
[[nodiscard]] constexpr std::optional<CopyDirection> copy_direction(LaneKind kind) noexcept {
  switch (kind) {
    case LaneKind::activation_up:
    case LaneKind::parameter_up:
    case LaneKind::save_up:
      return CopyDirection::up;
    case LaneKind::activation_down:
    case LaneKind::gradient_down:
    case LaneKind::save_down:
      return CopyDirection::down;
    case LaneKind::peer:
      return CopyDirection::peer;
    default:
      return std::nullopt;
  }
}

/// A copy that is moving bytes.
struct CopyFlow {
  std::size_t device = 0;  ///< Of its lane.
  CopyDirection direction = CopyDirection::up;
};

/// Shares links, switches, the root and host memory among copies, max-min fairly: a copy can only
/// become faster at the cost of one that is no faster, by their weights (progressive filling,
/// Bertsekas and Gallager, Data Networks, 6.5.2). Copies of one direction have one weight, so
/// weights count in host memory alone.
class LinkSharing {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  /// \throws Error (invalid_argument) like \ref check(LinkModel const&, std::size_t).
  LinkSharing(LinkModel link, std::size_t devices);

  [[nodiscard]] LinkModel const& link() const noexcept { return link_; }

  /// The bytes per second of each of \p flows, or \ref unlimited.
  [[nodiscard]] std::vector<double> rates(std::span<CopyFlow const> flows) const;

 private:
  static constexpr auto none = static_cast<std::size_t>(-1);

  /// A limit that some flows share.
  struct Limit {
    double left;            ///< Bytes per second, or \ref unlimited.
    std::size_t flows = 0;  ///< Whose rate is not known yet,
    double weight = 0;      ///< and their weights together.

    /// Of a flow of weight 1.
    [[nodiscard]] double share() const { return left / weight; }
  };

  [[nodiscard]] double rate(CopyDirection direction) const noexcept {
    switch (direction) {
      case CopyDirection::up:
        return link_.upload_bytes_per_second;
      case CopyDirection::down:
        return link_.download_bytes_per_second;
      case CopyDirection::peer:
        break;
    }
    return link_.peer_bytes_per_second;
  }

  [[nodiscard]] double weight(CopyDirection direction) const noexcept {
    return direction == CopyDirection::up ? 1 : link_.host_download_weight;
  }

  [[nodiscard]] std::size_t limits_one_way() const noexcept {
    return switch_of_.size() + link_.groups.size() + 1;
  }
  [[nodiscard]] std::size_t host_limit() const noexcept { return 2 * limits_one_way(); }

  /// The numbers of the limits of \p flow: its device's link, its switch or \ref none, the root,
  /// host memory. A copy to another device has its device's link to others alone.
  [[nodiscard]] std::array<std::size_t, 4> limits_of(CopyFlow const& flow) const noexcept;

  LinkModel link_;
  std::vector<std::size_t> switch_of_;  // by device
  // Up, then down: links, switches, the root; host memory; by device: the link to other devices.
  std::vector<Limit> limits_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/link_sharing.ipp>
#endif
