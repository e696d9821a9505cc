// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/checkpoint_folder.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace checkpoint_folder_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A file of tensors of two bytes, which repeat their name's first letter.
void put_tensors(std::filesystem::path const& path, std::string_view names) {
  std::string header;
  std::string data;
  for (char const name : names) {
    header += (header.empty() ? "{\"" : ",\"") + std::string(1, name) +
              R"(":{"dtype":"U8","shape":[2],"data_offsets":[)" + std::to_string(data.size()) +
              "," + std::to_string(data.size() + 2) + "]}";
    data.append(2, name);
  }
  put_file(path, safetensors_of(header.empty() ? "{}" : header + "}", data));
}

void put_index(std::filesystem::path const& folder, std::string_view weight_map) {
  put_file(folder / "model.safetensors.index.json",
           std::string(R"({"weight_map": {)") + std::string(weight_map) + "}}");
}

}  // namespace

TEST_CASE("a folder with one file has the tensors of this file") {
  TemporaryFolder const folder;
  put_tensors(folder.path / "model.safetensors", "ba");
  CheckpointFolder const checkpoint(folder.path);
  CHECK(checkpoint.path() == folder.path);
  REQUIRE(checkpoint.files().size() == 1);
  REQUIRE(checkpoint.tensors().size() == 2);
  CHECK(checkpoint.tensors()[0].info().name == "b");
  CHECK(text_of(checkpoint.at("a").bytes()) == "aa");
  CHECK(checkpoint.size_bytes() == 4);
  CHECK_FALSE(checkpoint.find("c").has_value());
  auto const error = error_of([&] { (void)checkpoint.at("c"); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "tensor 'c' is missing"));
  CHECK(contains(error.message(), folder.path.string()));
}

TEST_CASE("a folder with an index has the tensors of all of its files") {
  TemporaryFolder const folder;
  put_tensors(folder.path / "2.safetensors", "ca");
  put_tensors(folder.path / "1.safetensors", "b");
  put_tensors(folder.path / "unrelated.safetensors", "z");
  put_index(folder.path, R"("a": "2.safetensors", "b": "1.safetensors", "c": "2.safetensors")");
  CheckpointFolder const checkpoint(folder.path);
  REQUIRE(checkpoint.files().size() == 2);
  CHECK(checkpoint.files()[0].path().filename() == "1.safetensors");
  std::string order;
  for (auto const& tensor : checkpoint.tensors()) {
    order += tensor.info().name;
    CHECK(text_of(tensor.bytes()) == std::string(2, tensor.info().name[0]));
  }
  CHECK(order == "bca");
  CHECK(checkpoint.at("a").file().file().path().filename() == "2.safetensors");
  CHECK_FALSE(checkpoint.find("z").has_value());
}

TEST_CASE("the single file comes before an index") {
  TemporaryFolder const folder;
  put_tensors(folder.path / "model.safetensors", "a");
  put_index(folder.path, R"("b": "none.safetensors")");
  CHECK(CheckpointFolder(folder.path).find("a").has_value());
}

TEST_CASE("views outlive a move of their folder") {
  TemporaryFolder const folder;
  put_tensors(folder.path / "1.safetensors", "a");
  put_tensors(folder.path / "2.safetensors", "b");
  put_index(folder.path, R"("a": "1.safetensors", "b": "2.safetensors")");
  CheckpointFolder first(folder.path);
  auto const tensor = first.at("b");
  CheckpointFolder const second(std::move(first));
  CHECK(text_of(tensor.bytes()) == "bb");
  CHECK(text_of(second.at("a").bytes()) == "aa");
}

TEST_CASE("links to files of another folder are followed") {
  TemporaryFolder const folder;
  std::filesystem::create_directories(folder.path / "blobs");
  std::filesystem::create_directories(folder.path / "snapshot");
  put_tensors(folder.path / "blobs" / "1234", "a");
  std::filesystem::create_symlink("../blobs/1234", folder.path / "snapshot" / "model.safetensors");
  CHECK(text_of(CheckpointFolder(folder.path / "snapshot").at("a").bytes()) == "aa");
}

TEST_CASE("what is no folder of weights is refused by name") {
  TemporaryFolder const folder;
  auto const refusal = [](std::filesystem::path const& path) {
    return error_of([&] { CheckpointFolder const none(path); });
  };
  auto const missing = refusal(folder.path / "none");
  CHECK(missing.code() == std::errc::no_such_file_or_directory);
  CHECK(contains(missing.message(), "none'"));
  CHECK(refusal(put_file(folder.path / "file", "")).code() == std::errc::not_a_directory);
  auto const empty = refusal(folder.path);
  CHECK(empty.code() == Errc::bad_file);
  CHECK(contains(empty.message(), "neither model.safetensors nor model.safetensors.index.json"));
}

TEST_CASE("an index and files that contradict each other are refused by tensor and file") {
  TemporaryFolder const folder;
  put_tensors(folder.path / "1.safetensors", "ab");
  put_tensors(folder.path / "2.safetensors", "c");
  auto const refusal = [&](std::string_view weight_map) {
    put_index(folder.path, weight_map);
    auto const error = error_of([&] { CheckpointFolder const none(folder.path); });
    CHECK(error.code() == Errc::bad_file);
    CHECK(contains(error.message(), "model.safetensors.index.json': weight_map"));
    return error.message();
  };
  std::string const ab = R"("a": "1.safetensors", "b": "1.safetensors")";
  CHECK(contains(refusal(ab + R"(, "c": "3.safetensors")"),
                 "of tensor 'c' is '3.safetensors', which is missing in the folder"));
  CHECK(contains(refusal(ab + R"(, "d": "2.safetensors", "c": "2.safetensors")"),
                 "of tensor 'd' is '2.safetensors', which has no such tensor"));
  CHECK(contains(refusal(ab + R"(, "c": "1.safetensors")"),
                 "of tensor 'c' is '1.safetensors', which has no such tensor"));
  CHECK(contains(refusal(R"("a": "1.safetensors", "c": "2.safetensors")"),
                 "does not name tensor 'b' of '1.safetensors'"));
  put_tensors(folder.path / "2.safetensors", "ca");
  CHECK(contains(refusal(ab + R"(, "c": "2.safetensors")"),
                 "of tensor 'a' is '1.safetensors', but '2.safetensors' has such a tensor, too"));
}

}  // namespace checkpoint_folder_test
