// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/single_process.hpp>

#include <memory>

namespace roundpipe {

ROUNDPIPE_INLINE AnyProcessGroup::AnyProcessGroup() {
  struct Alone {
    SingleProcess process;
    CallsOf<SingleProcess> calls{process};
  };
  auto const alone = std::make_shared<Alone>();
  calls_ = std::shared_ptr<Calls>(alone, &alone->calls);
}

}  // namespace roundpipe
