// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The text of a training.

#include <cstddef>

#include "corpus.hpp"
#include "windows.hpp"

namespace train_text {

/// The text and its parts.
struct Text {
  Corpus corpus;
  TextSplit split;
  std::size_t window = 0;  ///< Bytes of a sequence plus its last label.
};

}  // namespace train_text
