// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hostile_files_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A file that must be refused, and what the message says behind the file's name.
struct Hostile {
  std::string content;
  std::string refusal;
};

/// A file of one tensor.
Hostile tensor(std::string const& fields, std::string const& refusal, std::size_t data_bytes = 4) {
  return {safetensors_of(header_of(fields), std::string(data_bytes, 'x')), refusal};
}

/// A file of tensors of bytes, each "begin,end".
Hostile places(std::vector<std::string> const& offsets,
               std::vector<int> const& sizes,
               std::string const& refusal,
               std::size_t data_bytes) {
  std::string header;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    header += (i == 0 ? "{\"" : ",\"") + std::string(1, static_cast<char>('a' + i)) +
              R"(":{"dtype":"U8","shape":[)" + std::to_string(sizes[i]) + R"(],"data_offsets":[)" +
              offsets[i] + "]}";
  }
  return {safetensors_of(header + "}", std::string(data_bytes, 'x')), refusal};
}

Hostile header(std::string const& json, std::string const& refusal) {
  return {safetensors_of(json), refusal};
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

std::vector<Hostile> hostile_safetensors() {
  constexpr auto f32 = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  auto const twice = std::string(R"({"w":{)") + f32 + R"(},"w":{)" + f32 + "}}";
  std::string const fine = safetensors_of(header_of(f32), "xxxx");
  return {
      // The length of the header
      {"", "the length of the header needs 8 bytes, but the file has 0"},
      {"1234567", "the length of the header needs 8 bytes, but the file has 7"},
      {little_endian(100), "the length of the header is 100, but the file has 0 bytes behind it"},
      {little_endian(3) + "{}", "the length of the header is 3, but the file has 2 bytes"},
      {little_endian(100'000'001) + "{}", "is 100000001; the format allows at most 100000000"},
      {little_endian(~std::uint64_t{0}) + "{}", "is 18446744073709551615; the format allows"},
      {little_endian(~std::uint64_t{0} - 7) + "{}", "is 18446744073709551608; the format allows"},
      {little_endian(std::uint64_t{1} << 63U) + "{}", "is 9223372036854775808; the format allows"},
      {little_endian(0), "the header must begin with '{'"},
      {fine.substr(0, fine.size() - 5), "the length of the header is"},
      // The text
      header("[]", "the header must begin with '{'"),
      header(" {}", "the header must begin with '{'"),
      header("\xEF\xBB\xBF{}", "the header is no JSON: it begins with a byte-order mark"),
      header("{", "the header is no JSON: "),
      header("{}}", "the header is no JSON: "),
      header(R"({"w")", "the header is no JSON: "),
      header("{\"\xff\":1}", "the header is no JSON: "),
      header(R"({"\ud800":1})", "the header is no JSON: "),
      header(std::string("{}\0\0", 4), "the header is no JSON: byte 2 is 0"),
      header(std::string("{\"a\0\":1}", 8), "the header is no JSON: byte 3 is 0"),
      header("{\"w\":" + std::string(1'000'000, '['), "must have an object for 'w', not an array"),
      header("{\"w\":" + std::string(100'000, '{'), "the header is no JSON: "),
      header(R"({"w":{"dtype":{"dtype":{}}}})",
             "dtype of tensor 'w' must be a string, not an object"),
      // Keys
      header(twice, "the header names 'w' twice"),
      header(R"({"__metadata__":{},"__metadata__":{}})", "the header names '__metadata__' twice"),
      header(R"({"__metadata__":{"a":"1","a":"2"}})", "__metadata__ has the key 'a' twice"),
      tensor(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])",
             "tensor 'w' has the field 'dtype' twice"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1])",
             "tensor 'w' has the field 'strides', which the format does not know"),
      tensor(R"("shape":[1],"data_offsets":[0,4])", "tensor 'w' has no dtype"),
      tensor(R"("dtype":"F32","data_offsets":[0,4])", "tensor 'w' has no shape"),
      tensor(R"("dtype":"F32","shape":[1])", "tensor 'w' has no data_offsets"),
      header(R"({"w":{}})", "tensor 'w' has no dtype"),
      // Kinds of values
      header(R"({"w":null})", "the header must have an object for 'w', not null"),
      header(R"({"w":"F32"})", "the header must have an object for 'w', not 'F32'"),
      header(R"({"w":7})", "the header must have an object for 'w', not 7"),
      header(R"({"__metadata__":[]})", "must have an object for '__metadata__', not an array"),
      header(R"({"__metadata__":{"a":1}})", "__metadata__ must have a string for 'a', not 1"),
      header(R"({"__metadata__":{"a":null}})", "__metadata__ must have a string for 'a', not null"),
      header(R"({"__metadata__":{"a":{}}})", "must have a string for 'a', not an object"),
      header(R"({"__metadata__":{"a":["b"]}})", "must have a string for 'a', not an array"),
      header(R"({"__metadata__":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
             "__metadata__ must have a string for 'shape', not an array"),
      tensor(R"("dtype":4,"shape":[1],"data_offsets":[0,4])",
             "dtype of tensor 'w' must be a string, not 4"),
      tensor(R"("dtype":["F32"],"shape":[1],"data_offsets":[0,4])",
             "dtype of tensor 'w' must be a string, not an array"),
      tensor(R"("dtype":"F32","shape":1,"data_offsets":[0,4])",
             "shape of tensor 'w' must be an array, not 1"),
      tensor(R"("dtype":"F32","shape":null,"data_offsets":[0,4])",
             "shape of tensor 'w' must be an array, not null"),
      tensor(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])",
             "shape of tensor 'w' must hold numbers that count, not an array"),
      tensor(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])", "numbers that count, not '1'"),
      tensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", "numbers that count, not 1.0"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":{"begin":0,"end":4})",
             "data_offsets of tensor 'w' must be an array, not an object"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4e0])",
             "data_offsets of tensor 'w' must hold"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,true])",
             "numbers that count, not true"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])", "must be two numbers, not 1"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[])", "must be two numbers, not 0"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,8])",
             "must be two numbers and are more"),
      // Types and extents
      tensor(R"("dtype":"","shape":[1],"data_offsets":[0,4])",
             "dtype of tensor 'w' is '', which the format does not know; it knows BOOL, "),
      tensor(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", "dtype of tensor 'w' is 'f32'"),
      tensor(R"("dtype":"F128","shape":[1],"data_offsets":[0,4])", "dtype of tensor 'w' is 'F128'"),
      tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])",
             "shape of tensor 'w' must hold numbers that count, not -1"),
      tensor(
          R"("dtype":"F32","shape":[-0],"data_offsets":[0,0])", "shape of tensor 'w' must hold", 0),
      tensor(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4])",
             "shape of tensor 'w' has the extent 18446744073709551615, which no file can hold"),
      tensor(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4])",
             "shape of tensor 'w' must hold numbers that count, not 99999999999999999999"),
      tensor(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])",
             "shape of tensor 'w' is F32[4611686018427387905], which no file can hold"),
      tensor(R"("dtype":"F32","shape":[4294967296,4294967296,1],"data_offsets":[0,4])",
             "shape of tensor 'w' is F32[4294967296, 4294967296, 1], which no file can hold"),
      tensor(R"("dtype":"U8","shape":[9223372036854775807,2,0],"data_offsets":[0,0])",
             "which no file can hold",
             0),
      tensor(R"("dtype":"F4","shape":[3],"data_offsets":[0,1])", "which are no whole bytes", 1),
      tensor(R"("dtype":"U8","shape":[1)" + repeated(",1", 64) + R"(],"data_offsets":[0,1])",
             "shape of tensor 'w' has more than 64 extents",
             1),
      tensor(R"("dtype":"U8","shape":[1)" + repeated(",1", 1'000'000) + R"(],"data_offsets":[0,1])",
             "shape of tensor 'w' has more than 64 extents",
             1),
      // Places
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])",
             "data_offsets of tensor 'w' begin at 4, after their end, 0"),
      tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])",
             "data_offsets of tensor 'w' end at 8, but the file holds 4 bytes of data"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,0])",
             "after their end, 0"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615])",
             "end at 18446744073709551615, but the file holds 4"),
      tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])",
             "hold 4 bytes, but F32[2] takes 8"),
      tensor(R"("dtype":"F32","shape":[0],"data_offsets":[0,4])",
             "hold 4 bytes, but F32[0] takes 0"),
      tensor(R"("dtype":"F32","shape":[1],"data_offsets":[1,5])",
             "data_offsets of tensor 'w' begin at 1, with a gap behind the header",
             5),
      tensor(f32, "the data has 5 bytes, but the header tells of 4", 5),
      tensor(f32, "end at 4, but the file holds 3 bytes of data", 3),
      header(header_of(R"("dtype":"F32","shape":[0],"data_offsets":[4,4])"),
             "end at 4, but the file holds 0"),
      {safetensors_of("{}", "x"), "the data has 1 bytes, but the header tells of 0"},
      places({"0,4", "2,6"},
             {4, 4},
             "data_offsets of tensor 'b' begin at 2, in the data of tensor 'a', which ends at 4",
             6),
      places({"0,4", "0,4"},
             {4, 4},
             "data_offsets of tensor 'b' begin at 0, in the data of tensor 'a'",
             4),
      places({"0,8", "2,4"},
             {8, 2},
             "data_offsets of tensor 'b' begin at 2, in the data of tensor 'a'",
             8),
      places({"0,4", "2,2"},
             {4, 0},
             "data_offsets of tensor 'b' begin at 2, in the data of tensor 'a'",
             4),
      places({"5,9", "0,4"},
             {4, 4},
             "data_offsets of tensor 'a' begin at 5, with a gap behind tensor 'b', which ends at 4",
             9),
  };
}

Hostile weight_map(std::string const& entries, std::string const& refusal) {
  return {R"({"metadata":{"total_size":4},"weight_map":{)" + entries + "}}", refusal};
}

std::vector<Hostile> hostile_indices() {
  auto const outside = [](std::string const& name) {
    return weight_map(R"("w":")" + name + "\"", ", which names no .safetensors file of the folder");
  };
  return {
      {"", "the text is no JSON: "},
      {"{", "the text is no JSON: "},
      {std::string("{\"weight_map\":{}}\0", 18), "the text is no JSON: byte 17 is 0"},
      {std::string(1'000'000, '['), "the text nests deeper than 16 levels"},
      {R"({"weight_map":{},"x":)" + std::string(100, '{'), "the text is no JSON: "},
      {"[]", "the index must be an object, not array"},
      {"null", "the index must be an object, not null"},
      {"{}", "weight_map must be an object"},
      {R"({"weight_map":["w"]})", "weight_map must be an object"},
      {R"({"weight_map":{},"weight_map":{}})", "key 'weight_map' stands twice"},
      {R"({"weight_map":{},"metadata":3})", "metadata must be an object, not number"},
      {R"({"weight_map":{},"metadata":{"total_size":"4"}})",
       "metadata.total_size must be a number"},
      {R"({"weight_map":{},"metadata":{"total_size":-4}})", "metadata.total_size must be a number"},
      {R"({"weight_map":{},"metadata":{"total_size":1e30}})",
       "metadata.total_size must be a number"},
      weight_map(R"("w":"1.safetensors","w":"2.safetensors")", "key 'w' stands twice"),
      weight_map(R"("w":1)", "weight_map of tensor 'w' must be a string, not number"),
      weight_map(R"("w":null)", "weight_map of tensor 'w' must be a string, not null"),
      weight_map(R"("w":["1.safetensors"])",
                 "weight_map of tensor 'w' must be a string, not array"),
      outside("/etc/passwd"),
      outside("/etc/x.safetensors"),
      outside("../1.safetensors"),
      outside("sub/1.safetensors"),
      outside("sub\\\\1.safetensors"),
      outside("..\\\\1.safetensors"),
      outside("a..b.safetensors"),
      outside("."),
      outside(""),
      outside(".safetensors"),
      outside(".hidden.safetensors"),
      outside("1.bin"),
      outside("1.safetensors "),
      outside("1\\u0000.safetensors"),
      outside(std::string(300, 'x') + ".safetensors"),
      weight_map(R"("w":"1.safetensors","v":"missing.safetensors")",
                 "weight_map of tensor 'v' is 'missing.safetensors', which is missing"),
      weight_map(R"("w":"1.safetensors","v":"1.safetensors")",
                 "weight_map of tensor 'v' is '1.safetensors', which has no such tensor"),
      weight_map(R"("w":"2.safetensors")", "does not name tensor 'v' of '2.safetensors'"),
      weight_map(R"("v":"2.safetensors","x":"1.safetensors")",
                 "weight_map does not name tensor 'w'"),
      weight_map(
          R"("w":"1.safetensors","v":"2.safetensors","u":"3.safetensors")",
          "weight_map of tensor 'w' is '1.safetensors', but '3.safetensors' has such a tensor"),
      weight_map("", "names no tensor"),
  };
}

}  // namespace

TEST_CASE("hostile safetensors files are refused, with the file and the field") {
  TemporaryFolder const folder;
  auto const path = folder.path / "hostile.safetensors";
  auto const files = hostile_safetensors();
  CHECK(files.size() >= 40);
  for (auto const& hostile : files) {
    CAPTURE(hostile.refusal);
    put_file(path, hostile.content);
    auto const error = error_of([&] { SafetensorsFile const file(path); });
    CHECK(error.code() == Errc::bad_file);
    INFO(error.message());
    CHECK(error.message().starts_with("'" + path.string() + "': "));
    CHECK(contains(error.message(), hostile.refusal));
    CHECK(error.message().size() < 1000);
  }
}

TEST_CASE("hostile indices are refused, with the file and the field") {
  TemporaryFolder const folder;
  auto const put_tensors = [&](char const* name, std::string const& tensors) {
    std::string json = "{";
    for (char const tensor : tensors) {
      json += (json.size() == 1 ? "\"" : ",\"") + std::string(1, tensor) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    }
    put_file(folder.path / name, safetensors_of(json + "}"));
  };
  put_tensors("1.safetensors", "w");
  put_tensors("2.safetensors", "v");
  put_tensors("3.safetensors", "uw");
  auto const path = folder.path / "model.safetensors.index.json";
  auto const files = hostile_indices();
  CHECK(files.size() >= 30);
  for (auto const& hostile : files) {
    CAPTURE(hostile.refusal);
    put_file(path, hostile.content);
    auto const error = error_of([&] { CheckpointFolder const checkpoint(folder.path); });
    CHECK(error.code() == Errc::bad_file);
    INFO(error.message());
    CHECK(error.message().starts_with("'" + path.string() + "': "));
    CHECK(contains(error.message(), hostile.refusal));
    CHECK(error.message().size() < 1000);
  }
}

TEST_CASE("a shard that is hostile itself is refused by its own name") {
  TemporaryFolder const folder;
  put_file(folder.path / "1.safetensors", "no header");
  put_file(folder.path / "model.safetensors.index.json", R"({"weight_map":{"w":"1.safetensors"}})");
  auto const error = error_of([&] { CheckpointFolder const checkpoint(folder.path); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "1.safetensors': the length of the header"));
}

TEST_CASE("huge files of nothing are refused without reading or holding them") {
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "huge.safetensors", little_endian(100'000'000));
  std::filesystem::resize_file(path, std::uintmax_t{1} << 36U);  // it takes no room on the disk
  auto const error = error_of([&] { SafetensorsFile const file(path); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "the header is no JSON: byte 0 is 0"));
  auto const index = put_file(folder.path / "model.safetensors.index.json", "{");
  std::filesystem::resize_file(index, std::uintmax_t{1} << 36U);
  auto const refused = error_of([&] { CheckpointFolder const checkpoint(folder.path); });
  CHECK(refused.code() == Errc::bad_file);
  CHECK(contains(refused.message(), "index.json': the file has 68719476736 bytes, and at most"));
}

}  // namespace hostile_files_test
