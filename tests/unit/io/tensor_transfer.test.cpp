// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/tensor_transfer.hpp>

#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/io/checkpoint_writer.hpp>
#include <roundpipe/io/element_conversion.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <roundpipe/io/safetensors_writer.hpp>
#include <roundpipe/system/aligned_memory.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/resident_bytes.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace tensor_transfer_test {

using namespace roundpipe;
using namespace roundpipe::test;

static_assert(TensorWriter<SafetensorsWriter>);
static_assert(TensorWriter<CheckpointWriter>);
static_assert(!TensorWriter<SafetensorsFile>);

namespace {

/// Numbers that bf16 and f16 hold exactly.
std::vector<float> numbers(std::size_t count, std::size_t first = 0) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((first + i) % 251) - 125;
  }
  return values;
}

HostArray array_of(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size(), DType::f32};
}

std::vector<std::byte> as_type(std::vector<float> const& values, DType type) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  convert_elements(
      std::as_bytes(std::span(values)), DType::f32, {bytes.data(), values.size(), type});
  return bytes;
}

/// Sizes of less than a slice, of some slices, and of slices and a bit; and nothing.
std::vector<std::size_t> const sizes{1, 0, 1'200'000, 1U << 20U, 33'000, (2U << 20U) + 1, 7};

}  // namespace

TEST_CASE("tensors of all floating types are written and read as any other, by any threads") {
  TemporaryFolder const folder;
  for (std::size_t const threads : {1, 3}) {
    WorkerPool pool(threads);
    std::vector<TensorInfo> tensors;
    std::vector<std::vector<std::byte>> memory;
    std::vector<TensorWrite> writes;
    std::vector<DType> const types{DType::f32, DType::bf16, DType::f16, DType::f64};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      auto const name = std::to_string(i);
      tensors.push_back(
          tensor_info({name, {static_cast<std::int64_t>(sizes[i])}, types[i % types.size()]}));
      auto const type = types[(i + i / 4) % types.size()];
      memory.push_back(as_type(numbers(sizes[i], i), type));
      writes.push_back({name, memory.back(), type});
    }
    auto const path = folder.path / std::to_string(threads);
    CheckpointWriter writer(path, tensors, {.most_file_bytes = 5'000'000});
    CHECK(writer.size() > 1);
    write_tensors(writer, writes, pool);
    writer.finish();
    CheckpointFolder const checkpoint(path);
    std::vector<std::vector<float>> values;
    for (auto const size : sizes) {
      values.emplace_back(size);
    }
    std::vector<TensorRead> reads;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      auto const tensor = checkpoint.at(std::to_string(i));
      CHECK(tensor.info().type() == types[i % types.size()]);
      reads.push_back({tensor, array_of(values[i])});
    }
    read_tensors(reads, pool);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CHECK(values[i] == numbers(sizes[i], i));
    }
  }
}

TEST_CASE("a tensor is read once into several arrays, of any types") {
  TemporaryFolder const folder;
  auto const path = folder.path / "file";
  constexpr std::size_t count = 5'000'001;  // three slices
  {
    SafetensorsWriter writer(path,
                             {tensor_info({"w", {static_cast<std::int64_t>(count)}, DType::bf16})});
    writer.write("w", 0, as_type(numbers(count), DType::bf16));
    writer.finish();
  }
  SafetensorsFile const file(path);
  WorkerPool pool(2);
  std::vector<TensorRead> reads;
  auto const wanted = numbers(count);
  // As optimizer and master copies: with arrays of the file's type behind another, and without.
  for (auto const& types :
       {std::vector{DType::f32, DType::bf16, DType::f16, DType::bf16}, {DType::f32, DType::f16}}) {
    for (std::size_t const shift : {0, 8}) {  // by which memory is aligned to streamed stores
      std::vector<AlignedMemory> memory;
      std::vector<HostArray> arrays;
      for (auto const type : types) {
        memory.emplace_back(count * size_of(type) + shift);
        arrays.push_back({memory.back().bytes().data() + shift, count, type});
      }
      reads = {{file.at("w"), arrays.front(), {arrays.begin() + 1, arrays.end()}}};
      read_tensors(reads, pool);
      for (auto const& array : arrays) {
        CAPTURE(name_of(array.dtype));
        CHECK(std::ranges::equal(array.bytes(), as_type(wanted, array.dtype)));
      }
    }
  }
  reads[0].also[0].size = count - 1;
  auto const error = error_of([&] { read_tensors(reads, pool); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(contains(error.message(), "its memory has 5000000 elements"));
  reads[0].also[0] = {reads[0].to.data, count, DType::i32};
  CHECK(error_of([&] { read_tensors(reads, pool); }).code() == Errc::unsupported);
}

TEST_CASE("elements in the middle of a tensor are read, at any offset of the file") {
  TemporaryFolder const folder;
  for (std::size_t const spaces : {0, 1, 3}) {  // which decide how the data is aligned
    auto const count = std::size_t{100'000};
    std::string const text = text_of(as_type(numbers(count), DType::bf16));
    SafetensorsFile const file(
        put_file(folder.path / "file",
                 safetensors_of(header_of(R"("dtype":"BF16","shape":[100000],)"
                                          R"("data_offsets":[0,200000])") +
                                    std::string(spaces, ' '),
                                text)));
    auto const tensor = file.at("w");
    std::vector<float> values(90'000);
    read_elements(tensor, 5'000, array_of(values));
    CHECK(values == numbers(90'000, 5'000));
    std::vector<float> more(values.size());
    convert_elements(tensor.bytes().subspan(10'000, 180'000), DType::bf16, array_of(more));
    CHECK(more == values);
    read_elements(tensor, count, {nullptr, 0, DType::f32});  // nothing, at the end
    auto const beyond = error_of([&] { read_elements(tensor, 10'001, array_of(values)); });
    CHECK(beyond.code() == Errc::invalid_argument);
    CHECK(contains(beyond.message(), "90000 elements were wanted from element 10001 on"));
    CHECK(error_of([&] { read_elements(tensor, ~std::size_t{0}, array_of(values)); }).code() ==
          Errc::invalid_argument);
  }
}

TEST_CASE("tensors of every type are carried over byte for byte, by any threads") {
  TemporaryFolder const folder;
  std::vector<TensorInfo> tensors;
  for (auto const& type : file_dtypes) {
    tensors.push_back({std::string(type.name), std::string(type.name), {40'000, 4, 2}});
  }
  {
    SafetensorsWriter writer(folder.path / "from", tensors);
    for (auto const& tensor : tensors) {
      std::string text(tensor.bytes(), '\0');
      for (std::size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<char>(i * 7 + i / 1000);
      }
      writer.write(tensor.name, 0, bytes_of(text));
    }
    writer.finish();
  }
  SafetensorsFile const from(folder.path / "from");
  std::vector<StoredTensor> stored;
  for (std::size_t i = 0; i < from.size(); ++i) {
    stored.push_back(from[i]);
  }
  for (std::size_t const threads : {1, 3}) {
    WorkerPool pool(threads);
    SafetensorsWriter writer(folder.path / "to", tensors);
    copy_tensors(writer, stored, pool);
    writer.finish();
    CHECK(content_of(folder.path / "to") == content_of(folder.path / "from"));
  }
}

TEST_CASE("a tensor is carried over as what it is, and as nothing else") {
  TemporaryFolder const folder;
  WorkerPool pool(2);
  SafetensorsFile const from(put_file(
      folder.path / "from",
      safetensors_of(header_of(R"("dtype":"I16","shape":[2],"data_offsets":[0,4])"), "abcd")));
  std::vector<StoredTensor> const stored{from[0]};
  SafetensorsWriter writer(folder.path / "to", {{"w", "U8", {4}}});
  auto const error = error_of([&] { copy_tensors(writer, stored, pool); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(contains(error.message(), "tensor 'w' is I16[2], but was announced as U8[4]"));
  SafetensorsWriter other(folder.path / "to", {{"v", "I16", {2}}});
  CHECK(error_of([&] { copy_tensors(other, stored, pool); }).code() == Errc::invalid_argument);
}

TEST_CASE("integers are read and written as they are, and as nothing else") {
  TemporaryFolder const folder;
  WorkerPool pool(2);
  std::vector<std::int32_t> const numbers{1, -2, 3};
  std::vector<TensorWrite> writes{{"i", std::as_bytes(std::span(numbers)), DType::i32}};
  SafetensorsWriter writer(folder.path / "file", {{"i", "I32", {3}}, {"s", "I8", {1}}});
  write_tensors(writer, writes, pool);
  writer.write("s", 0, bytes_of("x"));
  writer.finish();
  SafetensorsFile const file(folder.path / "file");
  std::vector<std::int32_t> read(3);
  read_elements(file.at("i"), 0, {reinterpret_cast<std::byte*>(read.data()), 3, DType::i32});
  CHECK(read == numbers);
  std::vector<float> values(3);
  std::vector<TensorRead> const reads{{file.at("i"), array_of(values)}};
  auto const error = error_of([&] { read_tensors(reads, pool); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(contains(error.message(), "tensor 'i' is I32[3], which does not convert to or from f32"));
  values.resize(1);
  auto const unknown = error_of([&] { read_elements(file.at("s"), 0, array_of(values)); });
  CHECK(unknown.code() == Errc::unsupported);
  CHECK(contains(unknown.message(), "I8[1]"));
}

TEST_CASE("memory of another size is refused before anything moves") {
  TemporaryFolder const folder;
  WorkerPool pool(2);
  std::vector<float> values(3);
  SafetensorsWriter writer(folder.path / "file", {{"w", "F32", {2, 2}}});
  std::vector<TensorWrite> writes{{"w", std::as_bytes(std::span(values)), DType::f32}};
  auto const error = error_of([&] { write_tensors(writer, writes, pool); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(contains(error.message(), "tensor 'w' is F32[2, 2], but its memory has 3 elements"));
  writes[0].type = DType::i32;
  CHECK(error_of([&] { write_tensors(writer, writes, pool); }).code() == Errc::unsupported);
  writes[0].name = "v";
  CHECK(error_of([&] { write_tensors(writer, writes, pool); }).code() == Errc::invalid_argument);
  writer.write("w", 0, bytes_of(std::string(16, 'x')));
  writer.finish();
  SafetensorsFile const file(folder.path / "file");
  std::vector<TensorRead> const reads{{file.at("w"), array_of(values)}};
  CHECK(error_of([&] { read_tensors(reads, pool); }).code() == Errc::invalid_argument);
}

TEST_CASE("a file that shrinks while it is open is one clear error, and ends the reading") {
  TemporaryFolder const folder;
  auto const path = folder.path / "file";
  auto const count = std::size_t{8} << 20U;
  {
    SafetensorsWriter writer(path,
                             {tensor_info({"w", {static_cast<std::int64_t>(count)}, DType::bf16})});
    writer.write("w", 0, std::vector<std::byte>(2 * count));
    writer.finish();
  }
  SafetensorsFile const file(path);
  std::filesystem::resize_file(path, 1000);
  for (std::size_t const threads : {1, 3}) {
    WorkerPool pool(threads);
    std::vector<float> values(count);
    std::vector<TensorRead> const reads{{file.at("w"), array_of(values)}};
    auto const error = error_of([&] { read_tensors(reads, pool); });
    CHECK(error.code() == std::errc::io_error);
    CHECK(contains(error.message(), "file'"));
  }
}

TEST_CASE("slices cover all elements once, and none begins after an error") {
  WorkerPool pool(3);
  std::vector<detail::Sliced> const items{
      {0, 4}, {3 * 4'194'304 + 5, 1}, {1, 8}, {0, 1}, {2 * 2'097'152, 2}};
  std::vector<std::atomic<std::size_t>> elements(items.size());
  std::atomic<std::size_t> slices = 0;
  detail::for_each_slice(
      items, pool, [&](std::size_t item, std::size_t first, std::size_t count, HostBytes scratch) {
        CHECK(first + count <= items[item].elements);
        CHECK(count > 0);
        CHECK(scratch.size() == 131'072);
        elements[item] += count;
        ++slices;
      });
  for (std::size_t i = 0; i < items.size(); ++i) {
    CHECK(elements[i] == items[i].elements);
  }
  CHECK(slices == 4 + 1 + 2);
  WorkerPool alone(1);
  slices = 0;
  CHECK_THROWS_AS(detail::for_each_slice(items,
                                         alone,
                                         [&](auto...) {
                                           ++slices;
                                           throw Error(Errc::aborted, "no more");
                                         }),
                  Error);
  CHECK(slices == 1);
  detail::for_each_slice({}, pool, [&](auto...) { ++slices; });
  CHECK(slices == 1);
}

TEST_CASE("one thread's error keeps the others from beginning more") {
  WorkerPool pool(2);
  constexpr std::size_t many = 100'000'000;
  std::atomic<std::size_t> slices = 0;
  CHECK_THROWS_AS(
      detail::for_each_slice({{many * 4'194'304, 1}},
                             pool,
                             [&](std::size_t, std::size_t first, std::size_t, HostBytes) {
                               ++slices;
                               if (first == 0) {
                                 throw Error(Errc::aborted, "no more");
                               }
                             }),
      Error);
  CHECK(slices < many);
}

TEST_CASE("reading takes no memory but the tensors' own" * doctest::skip(has_shadow_memory)) {
  TemporaryFolder const folder;
  constexpr std::size_t count = std::size_t{32} << 20U;
  auto const path = folder.path / "file";
  {
    SafetensorsWriter writer(path, {tensor_info({"w", {std::int64_t{count}}, DType::bf16})});
    std::vector<std::byte> const zeros(count / 8);
    for (Bytes at = 0; at < 2 * count; at += zeros.size()) {
      writer.write("w", at, zeros);
    }
    writer.finish();
  }
  std::vector<std::byte> memory(2 * count, std::byte{1});
  SafetensorsFile const file(path);
  WorkerPool pool(2);
  std::vector<TensorRead> const reads{{file.at("w"), {memory.data(), count, DType::bf16}}};
  auto const before = resident_bytes();
  read_tensors(reads, pool);
  CHECK(memory[2 * count - 1] == std::byte{0});
  CHECK(resident_bytes() < before + 2 * count / 32);
}

}  // namespace tensor_transfer_test
