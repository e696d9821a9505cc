// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/checkpoint_writer.hpp>

#include <roundpipe/io/checkpoint_folder.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace checkpoint_writer_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::vector<std::string> names_in(std::filesystem::path const& folder) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<TensorInfo> const four{
    {"d", "U8", {4}}, {"a", "BF16", {3}}, {"c", "F32", {1}}, {"b", "U8", {5}}};

/// Writes tensors that repeat the first letter of their name.
void write(CheckpointWriter& writer, std::vector<TensorInfo> const& tensors) {
  for (auto const& tensor : tensors) {
    writer.write(tensor.name, 0, bytes_of(std::string(tensor.bytes(), tensor.name[0])));
  }
}

void check_content(std::filesystem::path const& folder, std::vector<TensorInfo> const& tensors) {
  CheckpointFolder const checkpoint(folder);
  CHECK(checkpoint.tensors().size() == tensors.size());
  for (auto const& tensor : tensors) {
    CHECK(checkpoint.at(tensor.name).info() == tensor);
    CHECK(text_of(checkpoint.at(tensor.name).bytes()) ==
          std::string(tensor.bytes(), tensor.name[0]));
  }
}

}  // namespace

TEST_CASE("what fits one file becomes one file, as transformers wants it") {
  TemporaryFolder const folder;
  auto const path = folder.path / "new" / "folder";
  CheckpointWriter writer(path, four);
  CHECK(writer.path() == path);
  CHECK(writer.size() == 1);
  CHECK(writer.info("a") == four[1]);
  write(writer, four);
  writer.finish();
  CHECK(names_in(path) == std::vector<std::string>{"model.safetensors"});
  check_content(path, four);
  CHECK(CheckpointFolder(path).files()[0].metadata() == SafetensorsMetadata{{"format", "pt"}});
}

TEST_CASE("what does not fit one file is cut in the order of the tensors") {
  TemporaryFolder const folder;
  CheckpointWriter writer(folder.path, four, {.most_file_bytes = 11, .metadata = {}});
  CHECK(writer.size() == 2);
  write(writer, four);
  writer.finish();
  CHECK(names_in(folder.path) == std::vector<std::string>{"model-00001-of-00002.safetensors",
                                                          "model-00002-of-00002.safetensors",
                                                          "model.safetensors.index.json"});
  CHECK(content_of(folder.path / "model.safetensors.index.json") == R"({
  "metadata": {
    "total_size": 19
  },
  "weight_map": {
    "a": "model-00001-of-00002.safetensors",
    "b": "model-00002-of-00002.safetensors",
    "c": "model-00002-of-00002.safetensors",
    "d": "model-00001-of-00002.safetensors"
  }
}
)");
  check_content(folder.path, four);
  CHECK(CheckpointFolder(folder.path).files()[0].metadata().empty());
}

TEST_CASE("a tensor larger than a file may be has a file of its own") {
  TemporaryFolder const folder;
  CheckpointWriter writer(folder.path, four, {.most_file_bytes = 4});
  CHECK(writer.size() == 4);
  write(writer, four);
  writer.finish();
  check_content(folder.path, four);
}

TEST_CASE("a checkpoint may have no tensors") {
  TemporaryFolder const folder;
  CheckpointWriter writer(folder.path, {});
  writer.finish();
  CHECK(CheckpointFolder(folder.path).tensors().empty());
}

TEST_CASE("a checkpoint that is not finished leaves no file") {
  TemporaryFolder const folder;
  {
    CheckpointWriter writer(folder.path, four, {.most_file_bytes = 10});
    write(writer, {four[0], four[1], four[2]});
    auto const error = error_of([&] { writer.finish(); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(contains(error.message(), "tensor 'b'"));
  }
  CHECK(names_in(folder.path).empty());
}

TEST_CASE("a file that cannot have its name takes back those before it") {
  TemporaryFolder const folder;
  CheckpointWriter writer(folder.path, four, {.most_file_bytes = 10});
  write(writer, four);
  // A folder in the place of the index, which comes last.
  std::filesystem::create_directories(folder.path / "model.safetensors.index.json" / "x");
  CHECK(error_of([&] { writer.finish(); }).code() == std::errc::is_a_directory);
  CHECK(names_in(folder.path) == std::vector<std::string>{"model.safetensors.index.json"});
}

TEST_CASE("tensors of one name, and tensors that were not announced, are refused") {
  TemporaryFolder const folder;
  auto const refusal = [&](std::vector<TensorInfo> const& tensors) {
    auto const error = error_of(
        [&] { CheckpointWriter const writer(folder.path, tensors, {.most_file_bytes = 1}); });
    CHECK(error.code() == Errc::invalid_argument);
    return error.message();
  };
  CHECK(contains(refusal({{"a", "U8", {1}}, {"b", "U8", {1}}, {"a", "F32", {1}}}),
                 "two tensors 'a'"));
  CHECK(contains(refusal({{"a", "U8", {1}}, {"b", "U9", {1}}}), "'b': its dtype is 'U9'"));
  CheckpointWriter writer(folder.path, four);
  auto const error = error_of([&] { writer.write("x", 0, bytes_of("x")); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(contains(error.message(), "without a tensor 'x'"));
  CHECK(error_of([&] { (void)writer.info("x"); }).code() == Errc::invalid_argument);
}

TEST_CASE("weights of a folder are not mixed with others") {
  TemporaryFolder const folder;
  auto const refusal = [&] {
    auto const error = error_of([&] { CheckpointWriter const writer(folder.path, four); });
    CHECK(error.code() == Errc::invalid_argument);
    return error.message();
  };
  for (char const* name :
       {"model.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json"}) {
    put_file(folder.path / name, "");
    CHECK(contains(refusal(), "already holds weights: '" + std::string(name)));
    std::filesystem::remove(folder.path / name);
  }
  put_file(folder.path / "config.json", "");
  put_file(folder.path / "tokenizer.model", "");
  CHECK_NOTHROW(CheckpointWriter(folder.path, four));
  auto const error =
      error_of([&] { CheckpointWriter const writer(folder.path / "config.json", four); });
  CHECK((error.code() == std::errc::not_a_directory || error.code() == std::errc::file_exists));
}

}  // namespace checkpoint_writer_test
