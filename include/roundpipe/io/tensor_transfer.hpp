// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Moves tensors between files and host memory with several threads, and converts them.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/stored_tensor.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// Takes the bytes of announced tensors, from several threads: \ref SafetensorsWriter and \ref
/// CheckpointWriter.
template <class T>
concept TensorWriter =
    requires(T& writer, std::string_view name, Bytes offset, HostSpan<std::byte const> bytes) {
      { writer.info(name) } -> std::convertible_to<TensorInfo const&>;
      writer.write(name, offset, bytes);
    };

/// A tensor of a file, and the memory for all of its elements, which sets their type.
struct TensorRead {
  StoredTensor tensor;
  HostArray to;
  std::vector<HostArray> also = {};  ///< More memory for the same elements, of any types.
};

/// Elements in memory, for all of the announced tensor \ref name.
struct TensorWrite {
  std::string name;
  HostSpan<std::byte const> from;
  DType type = DType::f32;  ///< In memory; the file has its own.
};

/// Fills the memory of \p reads: all threads of \p pool take parts of a few MiB, of all tensors
/// without a pause between them. The file is read once for all arrays, straight to its place in one
/// of the file's own type, if there is one; else to 128 KiB a thread. From there, while the cache
/// has them, elements are converted for the other arrays as by \ref convert_elements, and \ref
/// Stores::streamed. Reads through the file's descriptor, so the process's resident memory grows by
/// nothing else, and a failing disk throws.
/// \throws Error before anything is read: (invalid_argument) when a tensor and its memory differ in
///         size, (unsupported) when the types cannot be converted; and with the system's code when
///         reading fails. The message names the tensor, and the file.
void read_tensors(std::span<TensorRead const> reads, WorkerPool& pool);

/// Fills \p to with elements of \p tensor from element \p first on, on the caller's thread.
/// \throws Error like \ref read_tensors.
void read_elements(StoredTensor const& tensor, std::size_t first, HostArray const& to);

namespace detail {

/// A thread's share of \p count elements at \p first of item \p item, with memory of 128 KiB.
using SliceFunction =
    std::function<void(std::size_t item, std::size_t first, std::size_t count, HostBytes scratch)>;

/// Elements of \p element_bytes each.
struct Sliced {
  std::size_t elements = 0;
  Bytes element_bytes = 1;
};

/// Calls \p f for slices of a few MiB that cover all \p items, each once, on all threads of \p
/// pool. After an exception no further slice begins, and the exception is rethrown.
void for_each_slice(std::vector<Sliced> const& items, WorkerPool& pool, SliceFunction const& f);

/// Sends converted bytes of a tensor to their offset.
using ByteSink = std::function<void(Bytes offset, HostSpan<std::byte const> bytes)>;

/// Checks that \p write holds all of \p tensor. \returns the tensor's type.
DType checked_type(TensorWrite const& write, TensorInfo const& tensor);

/// Hands elements [first, first + count) of \p write to \p sink as \p type.
void send_elements(TensorWrite const& write,
                   DType type,
                   std::size_t first,
                   std::size_t count,
                   HostBytes scratch,
                   ByteSink const& sink);

/// Checks that the tensor \p announced to a writer is \p tensor.
void require_same(TensorInfo const& tensor, TensorInfo const& announced);

/// Hands the bytes [first, first + count) of \p tensor to \p sink, unchanged.
void send_bytes(
    StoredTensor const& tensor, Bytes first, Bytes count, HostBytes scratch, ByteSink const& sink);

}  // namespace detail

/// Writes \p writes to \p writer with all threads of \p pool, converted to the types that were
/// announced. \throws Error like \ref read_tensors and the writer's own.
template <TensorWriter Writer>
void write_tensors(Writer& writer, std::span<TensorWrite const> writes, WorkerPool& pool) {
  std::vector<DType> types;
  std::vector<detail::Sliced> items;
  for (auto const& write : writes) {
    types.push_back(detail::checked_type(write, writer.info(write.name)));
    items.push_back({write.from.size() / size_of(write.type), size_of(types.back())});
  }
  detail::for_each_slice(
      items, pool, [&](std::size_t item, std::size_t first, std::size_t count, HostBytes scratch) {
        auto const& write = writes[item];
        detail::send_elements(
            write, types[item], first, count, scratch, [&](Bytes offset, auto bytes) {
              writer.write(write.name, offset, bytes);
            });
      });
}

/// Writes each of \p tensors to \p writer, byte for byte, with all threads of \p pool: also those
/// whose types no layer knows. The writer must have been told of them by their \ref
/// StoredTensor::info.
/// \throws Error (invalid_argument), before anything is written, when it was told something else;
///         with the system's code when reading fails; and the writer's own.
template <TensorWriter Writer>
void copy_tensors(Writer& writer, std::span<StoredTensor const> tensors, WorkerPool& pool) {
  std::vector<detail::Sliced> items;
  for (auto const& tensor : tensors) {
    detail::require_same(tensor.info(), writer.info(tensor.info().name));
    items.push_back({tensor.size_bytes(), 1});
  }
  detail::for_each_slice(
      items, pool, [&](std::size_t item, std::size_t first, std::size_t count, HostBytes scratch) {
        auto const& tensor = tensors[item];
        detail::send_bytes(tensor, first, count, scratch, [&](Bytes offset, auto bytes) {
          writer.write(tensor.info().name, offset, bytes);
        });
      });
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/tensor_transfer.ipp>
#endif
