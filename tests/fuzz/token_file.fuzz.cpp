// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/token_file.hpp>

#include <roundpipe/data/token_rows.hpp>
#include <support/fuzz_target.hpp>
#include <support/made_documents.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// A file whose sections lie where they should. The first five bytes of \p input are its width and
/// whether it has a mask, the vocabulary (two), the numbers of tokens and of documents; then come
/// the bytes of the tokens, a byte for each number of the documents, and the mask. So everything
/// but the header may be wrong.
std::string file_of(std::string_view input) {
  std::size_t next = 0;
  auto const take = [&]() -> std::uint64_t {
    return next < input.size() ? static_cast<unsigned char>(input[next++]) : 0;
  };
  auto const flags = take();
  std::uint64_t const token_bytes = (flags & 1U) != 0 ? 4 : 2;
  auto const low = take();
  auto const vocabulary = low | take() << 8U;
  auto const tokens = take();
  auto const documents = take();
  std::string file(128, '\0');
  auto const set = [&](std::size_t offset, std::uint64_t value) {
    std::memcpy(file.data() + offset, &value, sizeof value);
  };
  auto const add = [&](std::size_t field, std::uint64_t count, std::uint64_t bytes) {
    file.resize((file.size() + 63) / 64 * 64);
    set(field, file.size());
    set(field + 8, count * bytes);
    for (std::uint64_t i = 0; i < count; ++i) {
      file += static_cast<char>(take());
      file.append(bytes - 1, '\0');
    }
  };
  add(56, tokens * token_bytes, 1);
  add(72, documents + 1, 8);
  if ((flags & 2U) != 0) {
    add(88, (tokens + 7) / 8, 1);
  }
  std::memcpy(file.data(), "RPTOKENS\1\0\0\0\x80\0\0\0", 16);
  set(16, token_bytes);
  set(24, vocabulary);
  set(32, tokens);
  set(40, documents);
  set(48, file.size());
  return file;
}

/// The documents of a file that was accepted cover all tokens, and rows of any context have them.
void try_file(std::string_view file, std::size_t context) {
  expect_answer_or_refusal([&] {
    auto const view = parse_token_file(bytes_of(file), "input");
    std::uint64_t end = 0;
    for (std::uint64_t d = 0; d < view.documents(); ++d) {
      auto const range = view.document(d);
      expect(range.first == end && range.end > end, "each document follows another");
      expect(view.document_of(range.first) == d, "a document is found by its first token");
      expect(view.document_of(range.end - 1) == d, "a document is found by its last token");
      end = range.end;
    }
    expect(end == view.size(), "the documents end with the tokens");
    std::size_t predicted = 0;
    for (auto const& document : documents_of(view)) {
      for (std::size_t i = 0; i < document.tokens.size(); ++i) {
        auto const label = document.labels[i];
        expect(static_cast<std::uint64_t>(document.tokens[i]) < view.vocabulary(),
               "tokens are in the vocabulary");
        expect(label == document.tokens[i] || (label == ignored_label && view.has_labels()),
               "a label is its token or none");
        predicted += i > 0 && label != ignored_label ? 1 : 0;
      }
    }
    view.require_below(view.vocabulary(), "its own");
    TokenRows const rows(view, {.context = context});
    std::size_t labels_of_rows = 0;
    Tokens tokens(context);
    Tokens labels(context);
    for (std::uint64_t row = 0; row < rows.size(); ++row) {
      rows.copy(row, RowEnd::predicts, tokens, labels);
      labels_of_rows += context - static_cast<std::size_t>(
                                      std::count(labels.begin(), labels.end(), ignored_label));
    }
    expect(labels_of_rows == predicted, "each label is predicted once");
  });
}

}  // namespace

std::vector<std::string> roundpipe::test::seeds() {
  using namespace std::string_literals;
  // Five narrow tokens in two documents, and four wide ones with a mask in one.
  auto const narrow = "\0\xff\xff\5\2"s + "0123456789" + "\0\2\5"s;
  auto const wide = "\3\xff\xff\4\1"s + "1\0\0\0002\0\0\0003\0\0\0004\0\0\0"s + "\0\4\x0b"s;
  return {
      narrow,
      wide,
      file_of(narrow),
      file_of(wide),
      "\2\xff\0\x09\3"s + "1\0002\0003\0004\0005\0006\0007\0008\0009\0"s + "\0\1\5\x09\xff\1"s,
      "RPTOKENS"s,
  };
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const input(reinterpret_cast<char const*>(data), size);
  std::size_t const context = 1 + (size > 0 ? data[size - 1] % 40U : 0U);
  try_file(input, context);
  // Most changes of a file break the places of its sections, so the same bytes also fill a file.
  try_file(file_of(input), context);
  return 0;
}
