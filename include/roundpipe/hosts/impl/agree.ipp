// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/agree.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/gather_parts.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace roundpipe::detail {

/// What ranks tell each other of their texts: as the same bytes everywhere.
struct TextHead {
  std::uint64_t bytes = 0;
  std::int32_t kind = 0;  ///< 0: the text of a part; else of an error, whose category it is.
  std::int32_t code = 0;  ///< Of the error.
};

/// The errors of the library, and those of the system, have the same numbers on all ranks.
enum ErrorKind : std::int32_t { no_error, of_library, of_system };

ROUNDPIPE_INLINE TextHead head_of(PartOutcome const& outcome) {
  if (!outcome.error) {
    return {outcome.text.size(), no_error, 0};
  }
  auto const code = outcome.error->code();
  auto const bytes = outcome.error->message().size();
  if (code.category() == std::generic_category() || code.category() == std::system_category()) {
    return {bytes, of_system, code.value()};
  }
  auto const known = code.category() == category() ? code : make_error_code(Errc::device_fault);
  return {bytes, of_library, known.value()};
}

ROUNDPIPE_INLINE std::vector<std::string> tell_all(AnyProcessGroup& group,
                                                   GroupChannel channel,
                                                   PartOutcome const& mine) {
  auto const own = head_of(mine);
  std::vector<TextHead> heads(group.size());
  group.gather(
      channel, std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(heads)));
  std::vector<std::string> texts;
  for (auto const& head : heads) {
    texts.emplace_back(static_cast<std::size_t>(head.bytes), '\0');
  }
  texts[group.rank()] = mine.error ? mine.error->message() : mine.text;
  std::vector<HostBytes> parts;
  for (auto& text : texts) {
    parts.push_back(std::as_writable_bytes(std::span(text)));
  }
  gather_parts(group, channel, parts);
  for (std::size_t r = 0; r < heads.size(); ++r) {
    if (auto const [bytes, kind, code] = heads[r]; kind != no_error) {
      auto const& of_kind = kind == of_system ? std::generic_category() : category();
      throw Error(std::error_code(code, of_kind), "rank " + std::to_string(r) + ": " + texts[r]);
    }
  }
  return texts;
}

}  // namespace roundpipe::detail
