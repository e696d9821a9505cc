// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a file of `tests/fuzz/` defines.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Tries one input. Whatever the input is, nothing may happen but an answer or a refusal.
/// \returns 0.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace roundpipe::test {

/// Inputs to begin with, good ones and nearly good ones.
std::vector<std::string> seeds();

inline HostSpan<std::byte const> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// Ends the program, for the fuzzer to report the input.
inline void expect(bool holds, char const* what) {
  if (!holds) {
    std::fprintf(stderr, "not so: %s\n", what);
    std::abort();
  }
}

/// Calls \p f, which may refuse its input as a bad file, and in no other way.
template <class F>
void expect_answer_or_refusal(F&& f) {
  try {
    f();
  } catch (Error const& error) {
    expect(error.code() == Errc::bad_file, "a bad input is a bad file");
    expect(error.message().starts_with("'input': "), "the message names the file");
  }
}

}  // namespace roundpipe::test
