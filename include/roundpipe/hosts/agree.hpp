// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Work of which each rank does a part, and which all have done or none.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/any_process_group.hpp>

#include <optional>
#include <string>
#include <vector>

namespace roundpipe {

namespace detail {

/// What a rank says of its part.
struct PartOutcome {
  std::string text;
  std::optional<Error> error{};
};

/// Tells all ranks \p mine. \returns the texts of all, by rank.
/// \throws Error as \ref agree does.
[[nodiscard]] std::vector<std::string> tell_all(AnyProcessGroup& group,
                                                GroupChannel channel,
                                                PartOutcome const& mine);

}  // namespace detail

/// An operation of all ranks: each calls \p f, which does its part and returns a text for the
/// others. Returns when all are done. \returns the texts of all, by rank.
/// \throws Error on every rank what \p f throws on any, the lowest of them: its code, and its
///         message behind "rank 2: "; with one rank what \p f throws. And as the group's operations
///         do.
template <class F>
std::vector<std::string> agree(AnyProcessGroup& group, GroupChannel channel, F&& f) {
  if (group.size() == 1) {
    return {f()};
  }
  detail::PartOutcome mine;
  try {
    mine.text = f();
  } catch (...) {
    mine.error = current_error("");
  }
  return detail::tell_all(group, channel, mine);
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/hosts/impl/agree.ipp>
#endif
