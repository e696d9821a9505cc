// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The base of archetypes that need no more than a copy.

namespace roundpipe::test {

/// Makes an archetype copyable, and nothing else: no default constructor, assignment or comparison.
class CopyOnly {
 public:
  constexpr explicit CopyOnly(int) {}
  CopyOnly(CopyOnly const&) = default;
  CopyOnly& operator=(CopyOnly const&) = delete;
  ~CopyOnly() = default;
};

}  // namespace roundpipe::test
