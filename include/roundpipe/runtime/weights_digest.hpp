// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A 64-bit hash of all fp32 weights, by which two runs are compared bit for bit.

#include <roundpipe/core/digest.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe {

/// The digest of the weights that \p trainer shows by `for_each_parameter`: of every parameter in
/// layer order, shared ones once.
template <class Trainer>
[[nodiscard]] std::uint64_t weights_digest(Trainer& trainer) {
  Digest digest;
  trainer.for_each_parameter([&](std::string const&, auto const&, HostSpan<float const> values) {
    digest.add(std::as_bytes(values));
  });
  return digest.value();
}

}  // namespace roundpipe
