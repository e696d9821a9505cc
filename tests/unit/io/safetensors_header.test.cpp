// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/safetensors_header.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace safetensors_header_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

SafetensorsHeader parsed(std::string const& file) {
  return parse_safetensors_header(bytes_of(file), "a file");
}

std::string refusal_of(std::vector<TensorInfo> tensors, SafetensorsMetadata metadata = {}) {
  auto const error =
      error_of([&] { (void)lay_out_safetensors(std::move(tensors), std::move(metadata)); });
  CHECK(error.code() == Errc::invalid_argument);
  return error.message();
}

}  // namespace

TEST_CASE("a header tells the tensors in the order of their data") {
  auto const header =
      parsed(safetensors_of(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[6,14]},)"
                            R"("__metadata__":{"format":"pt","":"x"},)"
                            R"("a":{"data_offsets":[0,6],"shape":[3,1],"dtype":"BF16"}}  )",
                            std::string(14, 'x')));
  REQUIRE(header.entries.size() == 2);
  CHECK(header.entries[0].tensor == TensorInfo{"a", "BF16", {3, 1}});
  CHECK(header.entries[0].begin == 0);
  CHECK(header.entries[0].end == 6);
  CHECK(header.entries[1].tensor == TensorInfo{"b", "F32", {2}});
  CHECK(header.entries[1].end == 14);
  CHECK(header.metadata == SafetensorsMetadata{{"format", "pt"}, {"", "x"}});
  CHECK(header.file_bytes() == header.data_begin + 14);
}

TEST_CASE("files without tensors, without elements, and of single numbers are files") {
  CHECK(parsed(safetensors_of("{}")).entries.empty());
  CHECK(parsed(safetensors_of(R"({"__metadata__":{}})")).metadata.empty());
  auto const header =
      parsed(safetensors_of(R"({"a":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},)"
                            R"("s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                            R"("z":{"dtype":"U8","shape":[0],"data_offsets":[8,8]},)"
                            R"("":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})",
                            std::string(9, 'x')));
  REQUIRE(header.entries.size() == 4);
  CHECK(header.entries[0].tensor.name == "a");
  CHECK(header.entries[1].tensor.name == "s");
  CHECK(header.entries[2].tensor.name == "z");
  CHECK(header.entries[3].tensor.name.empty());
}

TEST_CASE("every element type of the format is read, whether layers know it or not") {
  for (auto const& type : file_dtypes) {
    TensorInfo const tensor{"w", std::string(type.name), {8, 3}};
    auto const bytes = 3 * type.bits;
    auto const header = parsed(safetensors_of(
        header_of("\"dtype\":\"" + tensor.dtype + "\",\"shape\":[8,3],\"data_offsets\":[0," +
                  std::to_string(bytes) + "]"),
        std::string(bytes, 'x')));
    CHECK(header.entries.at(0).tensor == tensor);
    CHECK(header.entries[0].tensor.type() == type.type);
  }
}

TEST_CASE("names may be any text") {
  auto const header = parsed(safetensors_of(
      R"({"a/../\"\\\u0000\u00e9":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  CHECK(header.entries.at(0).tensor.name == std::string("a/../\"\\\0\xc3\xa9", 10));
}

TEST_CASE("a header that is laid out holds large elements first, then goes by name") {
  auto const header = lay_out_safetensors({{"b", "BF16", {3}},
                                           {"d", "F32", {1}},
                                           {"a", "BF16", {1}},
                                           {"h", "F16", {1}},
                                           {"n", "BOOL", {1}},
                                           {"c", "F64", {}}});
  std::string order;
  for (auto const& entry : header.entries) {
    order += entry.tensor.name;
    auto const size = find_file_dtype(entry.tensor.dtype)->bits / 8;
    CHECK((header.data_begin + entry.begin) % size == 0);
  }
  CHECK(order == "cdabhn");
  CHECK(header.data_begin % 8 == 0);
  CHECK(header.entries.back().end == 8 + 4 + 2 + 6 + 2 + 1);
}

TEST_CASE("the text of a header has not changed") {
  auto const header = lay_out_safetensors({{"b", "BF16", {3}}, {"\xc3\xa9\n", "F32", {2, 1}}},
                                          {{"format", "pt"}, {"by", "\"us\""}});
  std::string text = R"({"__metadata__":{"by":"\"us\"","format":"pt"},)"
                     "\"\xc3\xa9\\n\":"
                     R"({"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                     R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}})";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  CHECK(safetensors_header_text(header) == safetensors_of(text));
  CHECK(safetensors_header_text(lay_out_safetensors({})) == safetensors_of("{}      "));
}

TEST_CASE("what is laid out is read again") {
  auto const header = lay_out_safetensors(
      {{"b", "BF16", {3}}, {"x", "F6_E3M2", {4}}, {"e", "U8", {0}}}, {{"\n", "\xe2\x82\xac"}});
  auto const again =
      parsed(safetensors_header_text(header) + std::string(header.entries.back().end, 'x'));
  CHECK(again.metadata == header.metadata);
  CHECK(again.data_begin == header.data_begin);
  REQUIRE(again.entries.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(again.entries[i].tensor == header.entries[i].tensor);
    CHECK(again.entries[i].begin == header.entries[i].begin);
    CHECK(again.entries[i].end == header.entries[i].end);
  }
}

TEST_CASE("what no file can hold is not laid out") {
  CHECK(contains(refusal_of({{"w", "F7", {1}}}), "'w': its dtype is 'F7'"));
  CHECK(contains(refusal_of({{"w", "F32", {-1}}}), "'w': its shape has the extent -1"));
  CHECK(contains(refusal_of({{"__metadata__", "F32", {1}}}), "'__metadata__'"));
  CHECK(contains(refusal_of({{"w", "F32", {1}}, {"v", "U8", {1}}, {"w", "U8", {1}}}),
                 "two tensors 'w'"));
  CHECK(contains(refusal_of({{"w", "U8", {std::int64_t{1} << 59}},
                             {"v", "U8", {std::int64_t{1} << 60}},
                             {"u", "U8", {std::int64_t{1} << 60}},
                             {"t", "U8", {std::int64_t{1} << 60}},
                             {"s", "U8", {std::int64_t{1} << 60}},
                             {"r", "U8", {std::int64_t{1} << 60}},
                             {"q", "U8", {std::int64_t{1} << 60}},
                             {"p", "U8", {std::int64_t{1} << 60}},
                             {"o", "U8", {std::int64_t{1} << 60}}}),
                 "larger than files can be"));
  CHECK(contains(refusal_of({{"\xff", "U8", {1}}}), "JSON cannot hold a string"));
  CHECK(contains(refusal_of({}, {{"key", "\xff"}}), "JSON cannot hold a string"));
  CHECK(contains(refusal_of({}, {{"key", std::string(100'000'001, 'x')}}), "100 MB"));
}

}  // namespace safetensors_header_test
