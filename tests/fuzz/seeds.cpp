// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The main function of a fuzz target without its fuzzer: tries the seeds, and all prefixes
/// and single changed bytes of them; with a folder as argument, writes them there instead.

#include <support/fuzz_target.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

void try_input(std::string const& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<std::uint8_t const*>(text.data()), text.size());
}

}  // namespace

int main(int argc, char** argv) {
  auto const seeds = roundpipe::test::seeds();
  if (argc > 1) {
    std::filesystem::create_directories(argv[1]);
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream file(std::filesystem::path(argv[1]) / ("seed" + std::to_string(i)),
                         std::ios::binary);
      if (!file.write(seeds[i].data(), static_cast<std::streamsize>(seeds[i].size())).flush()) {
        std::fprintf(stderr, "cannot write to '%s'\n", argv[1]);
        return 1;
      }
    }
    return 0;
  }
  std::size_t tried = 0;
  for (auto const& seed : seeds) {
    try_input(seed);
    for (std::size_t i = 0; i < seed.size(); ++i) {
      try_input(seed.substr(0, i));
      for (char const byte : {'\0', '"', '9', '}', '\xff'}) {
        auto changed = seed;
        changed[i] = byte;
        try_input(changed);
      }
      tried += 6;
    }
    ++tried;
  }
  std::printf("%zu inputs\n", tried);
  return 0;
}
