// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The main function of every host test, compiled once.

#define DOCTEST_CONFIG_IMPLEMENT
#include <support/run.hpp>

int main(int argc, char** argv) {
  return roundpipe::test::run(argc, argv);
}
