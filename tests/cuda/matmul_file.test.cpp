// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/matmul/matmul_file.hpp>

#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>

#include <cublasLt.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace cu = roundpipe::cu;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::test::error_of;
using roundpipe::test::TemporaryFolder;

namespace {

cu::MatmulFile example() {
  cu::MatmulFile file;
  file.devices = {"90 132 NVIDIA H100 80GB HBM3", "80 108 a card"};
  for (std::size_t const device : {1, 0, 1}) {
    cu::MatmulChoice choice;
    choice.device = device;
    choice.problem = {.m = 5, .n = 1LL << 33, .k = 7, .operands = DType::f16, .adds = true};
    choice.algorithm.data[0] = 0x0123456789abcdef + device;
    choice.algorithm.data[7] = ~0ULL;
    file.choices.push_back(choice);
  }
  return file;
}

std::string text_of(std::filesystem::path const& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a file of algorithms survives writing and reading") {
  TemporaryFolder const folder;
  auto const path = folder.path / "algorithms.txt";
  auto const file = example();
  cu::write_matmul_file(path, file);
  auto const copy = cu::read_matmul_file(path);
  CHECK(copy.devices == file.devices);
  REQUIRE(copy.choices.size() == file.choices.size());
  for (std::size_t i = 0; i < file.choices.size(); ++i) {
    CHECK(copy.choices[i].device == file.choices[i].device);
    CHECK(copy.choices[i].problem == file.choices[i].problem);
    CHECK(std::ranges::equal(copy.choices[i].algorithm.data, file.choices[i].algorithm.data));
  }
}

TEST_CASE("the format of the file has not changed") {
  TemporaryFolder const folder;
  auto const path = folder.path / "algorithms.txt";
  auto file = example();
  file.choices.resize(1);
  cu::write_matmul_file(path, file);
  CHECK(text_of(path) == "roundpipe matmul algorithms 1\ncublaslt " +
                             std::to_string(::cublasLtGetVersion()) +
                             "\ndevice 90 132 NVIDIA H100 80GB HBM3\ndevice 80 108 a card\n"
                             "algorithm 1 5 8589934592 7 " +
                             std::to_string(static_cast<int>(DType::f16)) + ' ' +
                             std::to_string(static_cast<int>(DType::f32)) +
                             " 0 0 1 256 256 256 256 0123456789abcdf0" +
                             std::string(std::size_t{16} * 6, '0') + std::string(16, 'f') + '\n');
}

TEST_CASE("a broken, foreign or missing file of algorithms is refused by name") {
  TemporaryFolder const folder;
  auto const path = folder.path / "algorithms.txt";
  cu::write_matmul_file(path, example());
  auto const text = text_of(path);
  auto const refusal = [&](std::string const& word, std::string const& other) {
    auto changed = text;
    auto const place = changed.find(word);
    REQUIRE(place != std::string::npos);
    changed.replace(place, word.size(), other);
    auto const copy = folder.path / "changed.txt";
    std::ofstream(copy) << changed;
    auto const error = error_of([&] { (void)cu::read_matmul_file(copy); });
    CHECK(error.message().find("changed.txt") != std::string::npos);
    return error;
  };
  auto const version = refusal("cublaslt ", "cublaslt 1");
  CHECK(version.code() == Errc::unsupported);
  CHECK(version.message().find("cuBLASLt 1") != std::string::npos);
  CHECK(refusal("cublaslt", "cublas").code() == Errc::invalid_argument);
  CHECK(refusal("roundpipe", "squarepipe").code() == Errc::invalid_argument);
  CHECK(refusal("\nalgorithm ", "\nalgorithms ").code() == Errc::invalid_argument);
  CHECK(refusal("algorithm 1", "algorithm 7").code() == Errc::invalid_argument);
  CHECK(refusal("algorithm 1 5", "algorithm 1 five").code() == Errc::invalid_argument);
  CHECK(refusal("abcdef", "abcdeg").code() == Errc::invalid_argument);
  CHECK(error_of([&] { (void)cu::read_matmul_file(folder.path / "none.txt"); }).code() ==
        std::errc::no_such_file_or_directory);
  CHECK(error_of([&] { cu::write_matmul_file(folder.path / "none" / "none.txt", {}); }).code() ==
        std::errc::io_error);
}
