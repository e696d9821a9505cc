// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The digests of an uninterrupted training, in a file, with which others compare theirs.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace roundpipe::test {

using StepDigests = std::vector<std::uint64_t>;  // by step, from 0

inline void write_digests(std::filesystem::path const& file, StepDigests const& digests) {
  write_file(file,
             {reinterpret_cast<char const*>(digests.data()), digests.size() * sizeof digests[0]});
}

inline StepDigests read_digests(std::filesystem::path const& file) {
  auto const bytes = read_file(file, 1_GiB);
  StepDigests digests(bytes.size() / sizeof(std::uint64_t));
  std::memcpy(digests.data(), bytes.data(), digests.size() * sizeof digests[0]);
  return digests;
}

/// \throws std::runtime_error unless \p digest is that of \p step.
inline void require_digest(StepDigests const& digests, std::uint64_t step, std::uint64_t digest) {
  if (digests.at(step) != digest) {
    throw std::runtime_error("step " + std::to_string(step) + " differs");
  }
}

}  // namespace roundpipe::test
