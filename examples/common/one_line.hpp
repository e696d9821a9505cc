// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Prints the error that ends a program.

#include <roundpipe/core/error.hpp>

#include <exception>
#include <string>

namespace examples {

/// The message of \p error in a single line.
[[nodiscard]] inline std::string one_line(std::exception const& error) {
  std::string text = error.what();
  if (auto const* ours = dynamic_cast<roundpipe::Error const*>(&error);
      ours != nullptr && ours->code().category() == roundpipe::category()) {
    text = ours->message();  // its code adds nothing
  }
  for (auto& c : text) {
    c = static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return text;
}

}  // namespace examples
