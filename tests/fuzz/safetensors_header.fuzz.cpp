// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/safetensors_header.hpp>

#include <support/fuzz_target.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// A file with the header \p text and \p data_bytes of data.
std::string file_of(std::string_view text, std::size_t data_bytes) {
  std::uint64_t const length = text.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file.append(text).append(data_bytes, '\x2a');
}

/// A header that was accepted describes each byte of the data once, and survives writing.
void try_file(std::string_view file) {
  expect_answer_or_refusal([&] {
    auto const header = parse_safetensors_header(bytes_of(file), "input");
    expect(header.file_bytes() == file.size(), "the tensors end where the file ends");
    std::size_t end = 0;
    for (auto const& entry : header.entries) {
      expect(entry.begin == end && entry.end >= entry.begin, "each tensor follows another");
      expect(entry.end - entry.begin == entry.tensor.bytes(), "a tensor has its bytes");
      end = entry.end;
    }
    auto again = safetensors_header_text(header);
    again.append(end, '\0');
    auto const same = parse_safetensors_header(bytes_of(again), "input");
    expect(same.metadata == header.metadata, "metadata survives writing");
    expect(same.entries.size() == header.entries.size(), "tensors survive writing");
    for (std::size_t i = 0; i < same.entries.size(); ++i) {
      // Empty tensors of the same place may come in any order.
      expect(same.entries[i].begin == header.entries[i].begin, "places survive writing");
      expect(same.entries[i].tensor == header.entries[i].tensor, "tensors survive writing");
    }
  });
}

}  // namespace

std::vector<std::string> roundpipe::test::seeds() {
  auto const laid_out = [](std::vector<TensorInfo> tensors, SafetensorsMetadata metadata) {
    auto const header = lay_out_safetensors(std::move(tensors), std::move(metadata));
    return safetensors_header_text(header) +
           std::string(header.file_bytes() - header.data_begin, '\x2a');
  };
  std::vector<std::string> seeds{
      laid_out({}, {}),
      laid_out({{"w", "F32", {2, 3}}}, {}),
      laid_out({{"model.norm.weight", "BF16", {4}}, {"b", "F64", {}}, {"e", "I64", {0, 7}}},
               {{"format", "pt"}}),
      laid_out({{"x", "F4", {2, 2}}, {"y", "F6_E2M3", {4}}, {"z", "BOOL", {1, 1, 1, 1, 1, 1, 1}}},
               {{"a", ""}, {"\xc3\xa9\n", "\"\\"}}),
      file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})", 1),
      file_of(R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})", 1),
      file_of(R"({"a":[[[[[[[[{}]]]]]]]]})", 0),
  };
  // The second way: two bytes for the length of the data, then the text.
  seeds.push_back(
      std::string("\x06\0", 2) +
      R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
      R"("b":{"data_offsets":[2,6],"shape":[],"dtype":"F32"},"__metadata__":{"k":"v"}})");
  seeds.push_back(std::string("\0\0", 2) +
                  R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                  R"("b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})");
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const input(reinterpret_cast<char const*>(data), size);
  try_file(input);
  // Most changes of a file break the length of its header, so the same bytes are also taken for the
  // length of the data and a header.
  if (size >= 2) {
    try_file(file_of(input.substr(2), data[0] | static_cast<std::size_t>(data[1]) << 8U));
  }
  return 0;
}
