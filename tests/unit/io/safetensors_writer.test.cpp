// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/safetensors_writer.hpp>

#include <roundpipe/io/safetensors.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace safetensors_writer_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("parts of tensors come in any order") {
  TemporaryFolder const folder;
  auto const path = folder.path / "file";
  SafetensorsWriter writer(
      path, {{"b", "U8", {4}}, {"a", "I8", {2}}, {"none", "F32", {0}}}, {{"format", "pt"}});
  CHECK(writer.path() == path);
  CHECK(writer.info("b") == TensorInfo{"b", "U8", {4}});
  writer.write("b", 3, bytes_of("4"));
  writer.write("a", 0, bytes_of("xy"));
  writer.write("b", 0, bytes_of("123"));
  writer.write("b", 4, {});
  CHECK_FALSE(std::filesystem::exists(path));
  writer.finish();
  SafetensorsFile const file(path);
  CHECK(text_of(file.at("a").bytes()) == "xy");
  CHECK(text_of(file.at("b").bytes()) == "1234");
  CHECK(file.at("none").bytes().empty());
  CHECK(file.metadata().at("format") == "pt");
}

TEST_CASE("a writer may be moved while it writes") {
  TemporaryFolder const folder;
  SafetensorsWriter first(folder.path / "file", {{"tensor", "U8", {4}}, {"t", "F32", {1}}});
  first.write("tensor", 0, bytes_of("12"));
  SafetensorsWriter second(std::move(first));
  second.write("tensor", 2, bytes_of("34"));
  second.write("t", 0, bytes_of("xxxx"));
  second.finish();
  CHECK(text_of(SafetensorsFile(folder.path / "file").at("tensor").bytes()) == "1234");
}

TEST_CASE("tensors of every type and of any rank survive writing and reading") {
  TemporaryFolder const folder;
  std::vector<TensorInfo> tensors;
  for (auto const& type : file_dtypes) {
    std::string const name(type.name);
    tensors.push_back({name, name, {2, 4}});
    tensors.push_back({name + " deep", name, {1, 2, 1, 1, 2, 1, 1, 2, 1}});
    tensors.push_back({name + " empty", name, {3, 0}});
    if (type.bits % 8 == 0) {
      tensors.push_back({name + " scalar", name, {}});
    }
  }
  auto const content = [](TensorInfo const& tensor) {
    std::string bytes(tensor.bytes(), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<char>(tensor.name[i % tensor.name.size()] + static_cast<char>(i));
    }
    return bytes;
  };
  SafetensorsWriter writer(folder.path / "file", tensors);
  for (auto const& tensor : tensors) {
    writer.write(tensor.name, 0, bytes_of(content(tensor)));
  }
  writer.finish();
  SafetensorsFile const file(folder.path / "file");
  CHECK(file.size() == tensors.size());
  for (auto const& tensor : tensors) {
    CHECK(file.at(tensor.name).info() == tensor);
    CHECK(text_of(file.at(tensor.name).bytes()) == content(tensor));
  }
}

TEST_CASE("threads write one file at once") {
  TemporaryFolder const folder;
  constexpr std::size_t size = 100'000;
  SafetensorsWriter writer(folder.path / "file",
                           {{"a", "U8", {size}}, {"b", "U8", {size}}, {"c", "U8", {size}}});
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&writer, thread] {
      for (std::size_t at = thread * 1000; at < size; at += 4000) {
        for (char const* name : {"a", "b", "c"}) {
          writer.write(name, at, bytes_of(std::string(1000, *name)));
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  writer.finish();
  SafetensorsFile const file(folder.path / "file");
  CHECK(text_of(file.at("b").bytes()) == std::string(size, 'b'));
  CHECK(text_of(file.at("c").bytes()) == std::string(size, 'c'));
}

TEST_CASE("equal tensors make equal files, in whatever order they are announced") {
  TemporaryFolder const folder;
  auto const write = [&](std::string const& name, std::vector<TensorInfo> tensors) {
    SafetensorsWriter writer(folder.path / name, tensors, {{"b", "1"}, {"a", "2"}});
    for (auto const& tensor : tensors) {
      writer.write(tensor.name, 0, bytes_of(std::string(tensor.bytes(), tensor.name[0])));
    }
    writer.finish();
    return content_of(folder.path / name);
  };
  TensorInfo const x{"x", "F32", {3}};
  TensorInfo const y{"y", "BF16", {5}};
  TensorInfo const z{"z", "F32", {2, 2}};
  CHECK(write("one", {x, y, z}) == write("two", {z, y, x}));
}

TEST_CASE("a file that is not finished leaves nothing, and what was there stays") {
  TemporaryFolder const folder;
  auto const path = put_file(folder.path / "file", "old");
  {
    SafetensorsWriter writer(path, {{"w", "U8", {2}}});
    writer.write("w", 0, bytes_of("x"));
    auto const error = error_of([&] { writer.finish(); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(contains(error.message(), "tensor 'w' of"));
    CHECK(contains(error.message(), "file' has 2 bytes, but 1 were written"));
    writer.write("w", 0, bytes_of("xx"));
    CHECK(contains(error_of([&] { writer.finish(); }).message(), "but 3 were written"));
  }
  CHECK(content_of(path) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("bytes that belong nowhere are refused") {
  TemporaryFolder const folder;
  SafetensorsWriter writer(folder.path / "file", {{"w", "U8", {4}}});
  auto const refusal = [&](std::string_view name, Bytes offset, std::string const& bytes) {
    auto const error = error_of([&] { writer.write(name, offset, bytes_of(bytes)); });
    CHECK(error.code() == Errc::invalid_argument);
    return error.message();
  };
  CHECK(contains(refusal("v", 0, "x"), "without a tensor 'v'"));
  CHECK(contains(refusal("w", 3, "xx"), "bytes 3 to 5 were written to tensor 'w'"));
  CHECK(contains(refusal("w", 5, ""), "which has 4"));
  CHECK(contains(refusal("w", ~Bytes{0}, "xx"), "which has 4"));
  CHECK(error_of([&] { (void)writer.info("v"); }).code() == Errc::invalid_argument);
}

TEST_CASE("a disk without room is one error, before anything is written") {
  TemporaryFolder const folder;
  auto const error = error_of([&] {
    SafetensorsWriter const writer(folder.path / "file", {{"w", "U8", {std::int64_t{1} << 60}}});
  });
  CHECK(
      (error.code() == std::errc::no_space_on_device || error.code() == std::errc::file_too_large));
  CHECK(contains(error.message(), "reserve"));
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a folder that is not there is refused by name") {
  TemporaryFolder const folder;
  auto const error =
      error_of([&] { SafetensorsWriter const writer(folder.path / "none" / "file", {}); });
  CHECK(error.code() == std::errc::no_such_file_or_directory);
  CHECK(contains(error.message(), "none/file"));
}

}  // namespace safetensors_writer_test
