// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/optim/sgd.hpp>

#include <cmath>

namespace roundpipe {

ROUNDPIPE_INLINE void Sgd::check(SgdOptions const& options) {
  require(options.momentum >= 0 && options.momentum < 1,
          Errc::invalid_argument,
          "SGD's momentum must be in [0, 1)");
  require(options.weight_decay >= 0 && std::isfinite(options.weight_decay),
          Errc::invalid_argument,
          "SGD's weight decay must be finite and not negative");
  require(!options.nesterov || options.momentum > 0,
          Errc::invalid_argument,
          "Nesterov's look-ahead needs a momentum");
  require(options.groups != nullptr, Errc::invalid_argument, "SGD needs a function of groups");
}

}  // namespace roundpipe
