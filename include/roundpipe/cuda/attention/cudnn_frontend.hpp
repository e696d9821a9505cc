// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief cuDNN and cudnn-frontend, after the header that cudnn-frontend uses without including it.

#ifdef ROUNDPIPE_HAS_CUDNN

// clang-format off
#  include <cstring>

#  include <cudnn.h>
#  include <cudnn_frontend.h>
// clang-format on

#endif
