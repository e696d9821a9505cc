// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Our side of the comparison with the safetensors library: `safetensors_files write
/// FOLDER`, `check FOLDER`, and `judge FOLDER`. safetensors_files.py knows the same tensors.

#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/io/checkpoint_writer.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <roundpipe/io/safetensors_writer.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace roundpipe;

/// Tensors of many types, ranks and sizes, and names.
std::vector<TensorInfo> const single{
    {"layer.0.weight", "BF16", {3, 5}},
    {"layer.0.bias", "BF16", {5}},
    {"scalar", "F64", {}},
    {"f32", "F32", {2, 3, 4}},
    {"f16", "F16", {7}},
    {"i64", "I64", {1, 1, 2}},
    {"i32", "I32", {3}},
    {"i16", "I16", {3}},
    {"i8", "I8", {3}},
    {"u8", "U8", {3}},
    {"u16", "U16", {3}},
    {"u32", "U32", {3}},
    {"u64", "U64", {3}},
    {"bool", "BOOL", {3}},
    {"f8_e4m3", "F8_E4M3", {5}},
    {"f8_e5m2", "F8_E5M2", {5}},
    {"empty", "F32", {4, 0, 2}},
    {"deep", "F16", {1, 2, 1, 2, 1, 2, 1, 2}},
    {"a \"name\" with \\ and /", "F32", {1}},
    {"na\xc3\xafve \xe2\x82\xac\n", "F32", {1}},
};
std::vector<TensorInfo> const sharded{
    {"a", "F32", {8}}, {"c", "BF16", {8}}, {"b", "F32", {8}}, {"d", "U8", {8}}};
constexpr Bytes shard_bytes = 48;

std::string content_of(TensorInfo const& tensor) {
  std::string bytes(tensor.bytes(), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto const value = 7 * i + 13 * tensor.name.size() + static_cast<unsigned char>(tensor.name[0]);
    bytes[i] = static_cast<char>(tensor.dtype == "BOOL" ? value % 2 : value);
  }
  return bytes;
}

template <class Writer>
void write(Writer& writer, std::vector<TensorInfo> const& tensors) {
  for (auto const& tensor : tensors) {
    auto const bytes = content_of(tensor);
    writer.write(tensor.name, 0, std::as_bytes(std::span(bytes)));
  }
  writer.finish();
}

void require(bool holds, std::string const& what) {
  if (!holds) {
    throw std::runtime_error("not so: " + what);
  }
}

template <class Source>
void check(Source const& source, std::vector<TensorInfo> const& tensors) {
  for (auto const& tensor : tensors) {
    auto const stored = source.at(tensor.name);
    require(stored.info() == tensor, tensor.name + " is as it was written");
    auto const bytes = stored.bytes();
    require(std::string_view(reinterpret_cast<char const*>(bytes.data()), bytes.size()) ==
                content_of(tensor),
            tensor.name + " has its bytes");
  }
}

/// What we refuse and the library reads: it leaves aside what it does not know, takes the last of
/// equal keys, an array for an object, and counts on with numbers that no file has.
constexpr std::array<std::string_view, 6> stricter_refusals{" twice",
                                                            "which the format does not know",
                                                            "must begin with '{'",
                                                            "must have an object for",
                                                            "which no file can hold",
                                                            "more than 64 extents"};

/// Reads verdicts.txt, a line "NAME reads" or "NAME refuses" for each file. What the library
/// refuses we refuse, too; what it reads we read, or have one of these reasons.
void judge(std::filesystem::path const& folder) {
  std::ifstream verdicts(folder / "verdicts.txt");
  std::size_t reads = 0;
  std::size_t refuses = 0;
  std::size_t stricter = 0;
  for (std::string name, verdict; verdicts >> name >> verdict;) {
    std::string message;
    try {
      SafetensorsFile const file(folder / name);
    } catch (Error const& error) {
      require(error.code() == Errc::bad_file, name + " is refused as a bad file");
      message = error.message();
    }
    if (verdict == "refuses") {
      require(!message.empty(), name + " is refused by us, too");
      ++refuses;
    } else if (message.empty()) {
      ++reads;
    } else {
      require(std::any_of(stricter_refusals.begin(),
                          stricter_refusals.end(),
                          [&](std::string_view reason) {
                            return message.find(reason) != std::string::npos;
                          }),
              name + " is read by us, too: " + message);
      ++stricter;
    }
  }
  require(reads > 100 && refuses > 100 && stricter > 10, "there are files of all kinds");
  std::printf(
      "%zu files read by both, %zu by neither, %zu by theirs alone\n", reads, refuses, stricter);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    require(argc == 3, "safetensors_files MODE FOLDER");
    std::string const mode = argv[1];
    std::filesystem::path const folder = argv[2];
    if (mode == "write") {
      std::filesystem::create_directories(folder);
      SafetensorsWriter one(folder / "single.safetensors", single, {{"format", "pt"}});
      write(one, single);
      CheckpointWriter several(folder / "sharded", sharded, {.most_file_bytes = shard_bytes});
      write(several, sharded);
    } else if (mode == "check") {
      SafetensorsFile const one(folder / "single.safetensors");
      require(one.size() == single.size(), "there are no more tensors");
      require(one.metadata() == SafetensorsMetadata{{"format", "pt"}}, "metadata is there");
      check(one, single);
      CheckpointFolder const several(folder / "sharded");
      require(several.files().size() == 2, "there are two shards");
      check(several, sharded);
    } else {
      judge(folder);
    }
    return 0;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
