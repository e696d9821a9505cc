// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// expect-error: roundpipe_cuda\.cuh holds device code: include it from a \.cu file only

#ifndef ROUNDPIPE_CONTROL
#  include <roundpipe/roundpipe_cuda.cuh>
#endif
