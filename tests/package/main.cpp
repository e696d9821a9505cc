// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef CONSUMER_OF_A_PART
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/version.hpp>
#else
#include <roundpipe/roundpipe.hpp>
#endif

#include <cstdio>

int main() {
  if (roundpipe::format_bytes(1) != "1 B") {  // declared, and defined here or in the library
    return 1;
  }
  std::printf("roundpipe %d.%d.%d\n",
              ROUNDPIPE_VERSION_MAJOR,
              ROUNDPIPE_VERSION_MINOR,
              ROUNDPIPE_VERSION_PATCH);
}
