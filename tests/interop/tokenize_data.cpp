// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief `interop.tokenize_data FILE` prints what the library reads from a file of tokens or of
/// JSON lines: a line with its extents, then its documents as JSON lines.

#include <roundpipe/core/error.hpp>
#include <roundpipe/data/open_data.hpp>
#include <support/made_documents.hpp>

#include <cstddef>
#include <cstdio>

namespace {

void print(char const* name, roundpipe::test::Tokens const& numbers) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::printf("%s%d", i == 0 ? "" : ", ", numbers[i]);
  }
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: interop.tokenize_data FILE\n");
    return 2;
  }
  try {
    auto const source = roundpipe::open_data(argv[1]);
    auto const& view = source.documents;
    view.require_below(view.vocabulary(), "its own");
    std::printf("vocabulary %llu tokens %llu labels %d\n",
                static_cast<unsigned long long>(view.vocabulary()),
                static_cast<unsigned long long>(view.size()),
                view.has_labels() ? 1 : 0);
    for (auto const& document : roundpipe::test::documents_of(view)) {
      std::printf("{");
      print("input_ids", document.tokens);
      std::printf(", ");
      print("labels", document.labels);
      std::printf("}\n");
    }
  } catch (roundpipe::Error const& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return 2;
  }
  return 0;
}
