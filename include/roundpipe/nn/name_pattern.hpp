// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Patterns that select parameters and linear maps of a model by name.

#include <algorithm>
#include <cstddef>
#include <fnmatch.h>
#include <string>
#include <vector>

namespace roundpipe::nn {

/// Whether \p pattern matches \p name, such as "1.self_attn.q_proj.weight", or what stands behind
/// one of its dots. A pattern is one of the shell's, by POSIX's \c fnmatch: `*` stands for any
/// characters, also for dots, `?` for one, `[abc]` and `[!abc]` for one of a set or of all others,
/// and a backslash takes the meaning from the character behind it. So "q_proj.weight" and
/// "*.q_proj.*" select the queries of all blocks, and "[12].*" all of the first two blocks.
[[nodiscard]] inline bool matches_name(std::string const& pattern, std::string const& name) {
  std::size_t at = 0;
  do {
    if (::fnmatch(pattern.c_str(), name.c_str() + at, 0) == 0) {
      return true;
    }
    at = name.find('.', at) + 1;
  } while (at > 0);
  return false;
}

/// Whether one of \p patterns matches \p name.
[[nodiscard]] inline bool any_matches_name(std::vector<std::string> const& patterns,
                                           std::string const& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string const& pattern) {
    return matches_name(pattern, name);
  });
}

}  // namespace roundpipe::nn
