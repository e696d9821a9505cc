// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/staged_writes.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/snapshots/tensor_file.hpp>
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
  // Two processes write the file: of each tensor the first its first third, the other the rest.
  auto const path = folder.path / "file";
  detail::TensorFile first(path, tensors);
  detail::TensorFile other(path, tensors);
  first.create();
  other.open();
  {
    StagedWrites writes(memory);
    for (auto const& tensor : tensors) {
      auto bytes = content(tensor.name, tensor.bytes());
      auto const cut = bytes.size() / 3;
      auto const from = HostSpan<std::byte const>(bytes);
      first.write(tensor.name, 0, from.first(cut), writes);
      other.write(tensor.name, cut, from.subspan(cut), writes);
      for (auto* const file : {&first, &other}) {
        file->add_cut(tensor.name, 0);
        file->add_cut(tensor.name, cut);
        file->add_cut(tensor.name, bytes.size());
      }
      std::ranges::fill(bytes, std::byte{});
    }
    writes.finish();
  }
  auto const sum = first.finish() + other.finish();
  CHECK(first.written() + other.written() == first.size());
  auto const stored = File::open(path);
  for (auto const& entry : first.header().entries) {
    CAPTURE(entry.tensor.name);
    std::vector<std::byte> bytes(entry.tensor.bytes());
    stored.read_at(first.header().data_begin + entry.begin, bytes);
    CHECK(bytes == content(entry.tensor.name, bytes.size()));
  }
  // Each process reads back what the other may have written.
  std::string hashes;
  auto const read_back = [&] {
    auto const half = staging_chunks(first.size()) / 2;
    auto const add = [&](auto const& chunk) { hashes += content_hash(chunk); };
    auto const read = first.read_back(0, half, memory, add);
    return read + other.read_back(half, staging_chunks(first.size()), memory, add);
  };
  CHECK(read_back() == sum);
  std::vector<std::byte> whole(stored.size());
  stored.read_at(0, whole);
  CHECK(content_hash(bytes_of(hashes)) == hash_in_parts(whole));

  // A disk that keeps something else.
  {
    auto text = content_of(path);
    ++text[text.size() / 2];
    put_file(path, text);
  }
  CHECK(read_back() != sum);
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
