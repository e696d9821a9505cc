// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/safetensors.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace safetensors_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::string const three_tensors =
    safetensors_of(R"({"zz":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                   R"("a":{"dtype":"BF16","shape":[1,2],"data_offsets":[3,7]},)"
                   R"("m":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[7,9]},)"
                   R"("__metadata__":{"format":"pt"}})",
                   "zzzaaaamm");

}  // namespace

TEST_CASE("tensors are found by name and by place, with their bytes") {
  TemporaryFolder const folder;
  SafetensorsFile const file(put_file(folder.path / "file", three_tensors));
  REQUIRE(file.size() == 3);
  CHECK(file.path() == folder.path / "file");
  CHECK(file.metadata() == SafetensorsMetadata{{"format", "pt"}});
  CHECK(file[0].info().name == "zz");
  CHECK(text_of(file[0].bytes()) == "zzz");
  auto const a = file.at("a");
  CHECK(a.info() == TensorInfo{"a", "BF16", {1, 2}});
  CHECK(text_of(a.bytes()) == "aaaa");
  CHECK(a.size_bytes() == 4);
  CHECK(a.begin() == three_tensors.size() - 6);
  CHECK(&a.file() == &file.file());
  REQUIRE(file.find("m").has_value());
  CHECK(text_of(file.find("m")->bytes()) == "mm");
  CHECK_FALSE(file.find("").has_value());
  CHECK_FALSE(file.find("b").has_value());
  CHECK_FALSE(file.find("zzz").has_value());
  auto const error = error_of([&] { (void)file.at("b"); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "file': tensor 'b' is missing"));
}

TEST_CASE("views outlive a move of their file") {
  TemporaryFolder const folder;
  SafetensorsFile first(put_file(folder.path / "file", three_tensors));
  auto const tensor = first.at("a");
  std::vector<SafetensorsFile> files;
  files.push_back(std::move(first));
  files.emplace_back(put_file(folder.path / "other", safetensors_of("{}")));
  CHECK(tensor.info().name == "a");
  CHECK(text_of(tensor.bytes()) == "aaaa");
}

TEST_CASE("a file that is no such file is refused by its name") {
  TemporaryFolder const folder;
  CHECK(error_of([&] { SafetensorsFile const none(folder.path / "none"); }).code() ==
        std::errc::no_such_file_or_directory);
  CHECK(error_of([&] { SafetensorsFile const none(folder.path); }).code() ==
        std::errc::is_a_directory);
  auto const path = put_file(folder.path / "empty", "");
  auto const error = error_of([&] { SafetensorsFile const none(path); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(contains(error.message(), "empty': the length of the header needs 8 bytes"));
}

}  // namespace safetensors_test
