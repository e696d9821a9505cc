// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/roundpipe.hpp>

#include <cstdio>

int main() {
  std::printf("roundpipe %d.%d.%d\n",
              ROUNDPIPE_VERSION_MAJOR,
              ROUNDPIPE_VERSION_MINOR,
              ROUNDPIPE_VERSION_PATCH);
}
