// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/staged_writes.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/safetensors_writer.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

namespace staged_writes_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::vector<std::byte> content(std::string const& name, Bytes size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((i >> 8U) + i + static_cast<std::size_t>(name[0]));
  }
  return bytes;
}

}  // namespace

TEST_CASE("what is written may change at once, and is hashed as it was") {
  TemporaryFolder const folder;
  StagingMemory memory;
  std::vector<TensorInfo> tensors;
  Bytes all = 0;
  for (Bytes const size : {20_MiB, Bytes{0}, Bytes{100}, 9_MiB - 3, 300_KiB, 8_MiB, Bytes{4097}}) {
    std::string const name(1, static_cast<char>('a' + tensors.size()));
    tensors.push_back({name, "U8", {static_cast<std::int64_t>(size)}});
    all += size;
  }
  REQUIRE(all > memory.bytes());
  SafetensorsWriter writer(folder.path / "file", tensors);
  StagedFile file(writer.file());
  {
    StagedWrites writes(memory);
    for (auto const& tensor : tensors) {
      auto bytes = content(tensor.name, tensor.bytes());
      writer.write_by(
          tensor.name, 0, bytes, [&](Bytes at, auto const& from) { writes.write(file, at, from); });
      std::ranges::fill(bytes, std::byte{});
    }
    writes.finish();
  }
  writer.finish();
  auto const stored = File::open(writer.path());
  for (auto const& entry : writer.header().entries) {
    CAPTURE(entry.tensor.name);
    std::vector<std::byte> bytes(entry.tensor.bytes());
    stored.read_at(writer.header().data_begin + entry.begin, bytes);
    CHECK(bytes == content(entry.tensor.name, bytes.size()));
  }
  auto const hash = [&] {
    return hash_read_back(writer.path(), writer.header(), file.sum, memory);
  };
  CHECK(hash() == content_hash(stored));

  // A disk that keeps something else.
  {
    auto text = content_of(writer.path());
    ++text[text.size() / 2];
    put_file(writer.path(), text);
  }
  auto const error = error_of(hash);
  CHECK(error.code() == std::errc::io_error);
  CHECK(error.message() == "cannot read back what was written to '" + writer.path().string() + "'");
}

TEST_CASE("the error of a write comes with a later one or at the end, and nobody waits for ever") {
  TemporaryFolder const folder;
  StagingMemory memory;
  auto const file = File::open(put_file(folder.path / "file", "x"));
  auto const bytes = content("x", staging_chunk_bytes);
  for (std::size_t const more : {0, 2}) {  // than the buffer holds
    StagedFile staged(file);
    StagedWrites writes(memory);
    auto const error = error_of([&] {
      for (std::size_t i = 0; i < 1 + more * memory.chunks().size(); ++i) {
        writes.write(staged, 0, bytes);
      }
      writes.finish();
    });
    CHECK(error.code() == std::errc::bad_file_descriptor);
    CHECK(contains(error.message(), file.path().string()));
  }
}

TEST_CASE("a buffer grows in whole chunks, and never becomes smaller") {
  StagingMemory memory;
  CHECK(memory.bytes() == StagingMemory::least_bytes);
  memory.grow(0);
  CHECK(memory.bytes() == StagingMemory::least_bytes);
  memory.grow(StagingMemory::least_bytes + 1);
  auto const grown = StagingMemory::least_bytes + staging_chunk_bytes;
  CHECK(memory.bytes() == grown);
  memory.grow(1_MiB);
  CHECK(memory.bytes() == grown);
  for (auto const& chunk : memory.chunks()) {
    CHECK(reinterpret_cast<std::uintptr_t>(chunk.data()) % DirectFile::page_bytes == 0);
  }
}

}  // namespace staged_writes_test
