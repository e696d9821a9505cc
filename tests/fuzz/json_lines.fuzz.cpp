// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/json_lines.hpp>

#include <support/fuzz_target.hpp>
#include <support/made_documents.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

std::string text_of(std::vector<MadeDocument> const& documents) {
  std::string text;
  for (auto const& document : documents) {
    auto const add = [&](char const* field, Tokens const& numbers) {
      text += field;
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
      }
    };
    add("{\"input_ids\":[", document.tokens);
    add("],\"labels\":[", document.labels);
    text += "]}\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> roundpipe::test::seeds() {
  return {
      "{\"input_ids\": [1, 2, 3]}\n",
      "{\"input_ids\": [1, 2147483647], \"labels\": [-100, 7]}\r\n \n{\"input_ids\":[0]}",
      "{\"labels\":[5],\"input_ids\":[6],\"attention_mask\":[1],\"text\":\"\\u00e9\\n\"}\n",
      "{\"a\":[[{\"b\":null}],true,1.5,-3,\"\xc3\xa9\"],\"input_ids\":[6]}\n",
      "{\"input_ids\":[1],\"input_ids\":[2]}\n",
      "{\"input_ids\":[1e9,99999999999999999999,-1]}\n",
      "[[[[[[[[{}]]]]]]]]\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const input(reinterpret_cast<char const*>(data), size);
  expect_answer_or_refusal([&] {
    auto const arrays = parse_json_lines(bytes_of(input), "input");
    auto const view = arrays.view();
    view.require_below(view.vocabulary(), "its own");
    auto const documents = documents_of(view);
    expect(documents.size() == arrays.size(), "each line is a document");
    for (auto const& document : documents) {
      expect(!document.tokens.empty(), "a document has tokens");
      for (auto const token : document.tokens) {
        expect(token >= 0, "a token is no negative number");
      }
      for (auto const label : document.labels) {
        expect(label >= 0 || label == ignored_label, "a label is a token or none");
      }
    }
    auto const text = text_of(documents);
    auto const again = parse_json_lines(bytes_of(text), "input");
    expect(text_of(documents_of(again.view())) == text, "documents survive writing");
  });
  return 0;
}
