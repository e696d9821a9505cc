// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/element_conversion.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/stored_tensor.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/io/tensor_transfer.hpp>
#include <roundpipe/system/aligned_memory.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

namespace detail {

inline constexpr Bytes slice_bytes = 4_MiB;
inline constexpr Bytes scratch_bytes = 128_KiB;

/// The type of \p tensor, which is read or written as \p type.
/// \throws Error (unsupported) when that cannot be.
[[nodiscard]] ROUNDPIPE_INLINE DType convertible_type(TensorInfo const& tensor, DType type) {
  auto const own = tensor.type();
  if (!own || !can_convert(*own, type)) {
    throw Error(Errc::unsupported,
                "tensor " + in_quotes(tensor.name) + " is " + to_string(tensor) +
                    ", which does not convert to or from " + std::string(name_of(type)));
  }
  return *own;
}

ROUNDPIPE_INLINE void require_size(TensorInfo const& tensor, std::size_t elements) {
  if (tensor.size() != elements) {
    throw Error(Errc::invalid_argument,
                "tensor " + in_quotes(tensor.name) + " is " + to_string(tensor) +
                    ", but its memory has " + std::to_string(elements) + " elements");
  }
}

/// Reads elements of \p tensor, which is of type \p type, from \p first on, into each of \p to: in
/// pieces that stay in the cache, so that memory sees each array once. A piece is read to its place
/// in the first array of the file's type, or to \p scratch, and from there converted for the
/// others.
ROUNDPIPE_INLINE void read_slice(StoredTensor const& tensor,
                                 DType type,
                                 std::size_t first,
                                 std::span<HostArray const> to,
                                 HostBytes scratch,
                                 Stores stores) {
  auto const& file = tensor.file().file();
  auto const direct = std::ranges::find(to, type, &HostArray::dtype);
  auto const count = to.front().size;
  auto const step = direct != to.end() && to.size() == 1 ? count : scratch.size() / size_of(type);
  for (std::size_t done = 0; done < count; done += step) {
    auto const now = std::min(step, count - done);
    auto const bytes = direct != to.end() ? direct->part(done, done + now).bytes()
                                          : scratch.first(now * size_of(type));
    file.read_at(tensor.begin() + (first + done) * size_of(type), bytes);
    for (auto array = to.begin(); array != to.end(); ++array) {
      if (array != direct) {
        convert_elements(bytes, type, array->part(done, done + now), stores);
      }
    }
  }
}

ROUNDPIPE_INLINE void for_each_slice(std::vector<Sliced> const& items,
                                     WorkerPool& pool,
                                     SliceFunction const& f) {
  std::vector<std::size_t> ends;  // how many slices an item and those before it have
  std::size_t end = 0;
  for (auto const& item : items) {
    auto const most = slice_bytes / item.element_bytes;
    end += item.elements / most + (item.elements % most != 0 ? 1 : 0);
    ends.push_back(end);
  }
  std::atomic<std::size_t> next = 0;
  auto const work = [&](std::size_t, std::size_t) {
    AlignedMemory const scratch(scratch_bytes);
    for (std::size_t slice = next++; slice < end; slice = next++) {
      auto const item = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), slice) -
                                                 ends.begin());
      auto const most = slice_bytes / items[item].element_bytes;
      auto const first = (slice - (item == 0 ? 0 : ends[item - 1])) * most;
      try {
        f(item, first, std::min(most, items[item].elements - first), scratch.bytes());
      } catch (...) {
        next = end;
        throw;
      }
    }
  };
  pool.for_each_part(std::min(pool.size(), end), 1, work);
}

ROUNDPIPE_INLINE DType checked_type(TensorWrite const& write, TensorInfo const& tensor) {
  auto const type = convertible_type(tensor, write.type);
  require_size(tensor, write.from.size() / size_of(write.type));
  return type;
}

ROUNDPIPE_INLINE void send_elements(TensorWrite const& write,
                                    DType type,
                                    std::size_t first,
                                    std::size_t count,
                                    HostBytes scratch,
                                    ByteSink const& sink) {
  auto const from = write.from.subspan(first * size_of(write.type), count * size_of(write.type));
  if (type == write.type) {
    sink(first * size_of(type), from);
    return;
  }
  auto const step = scratch.size() / size_of(type);
  for (std::size_t done = 0; done < count; done += step) {
    auto const now = std::min(step, count - done);
    HostArray const to{scratch.data(), now, type};
    convert_elements(
        from.subspan(done * size_of(write.type), now * size_of(write.type)), write.type, to);
    sink((first + done) * size_of(type), to.bytes());
  }
}

ROUNDPIPE_INLINE void require_same(TensorInfo const& tensor, TensorInfo const& announced) {
  if (tensor != announced) {
    throw Error(Errc::invalid_argument,
                "tensor " + in_quotes(tensor.name) + " is " + to_string(tensor) +
                    ", but was announced as " + to_string(announced));
  }
}

ROUNDPIPE_INLINE void send_bytes(
    StoredTensor const& tensor, Bytes first, Bytes count, HostBytes scratch, ByteSink const& sink) {
  for (Bytes done = 0; done < count; done += scratch.size()) {
    auto const bytes = scratch.first(std::min(scratch.size(), count - done));
    tensor.file().file().read_at(tensor.begin() + first + done, bytes);
    sink(first + done, bytes);
  }
}

}  // namespace detail

ROUNDPIPE_INLINE void read_tensors(std::span<TensorRead const> reads, WorkerPool& pool) {
  std::vector<DType> types;
  std::vector<detail::Sliced> items;
  for (auto const& read : reads) {
    auto const& info = read.tensor.info();
    types.push_back(detail::convertible_type(info, read.to.dtype));
    detail::require_size(info, read.to.size);
    for (auto const& array : read.also) {
      (void)detail::convertible_type(info, array.dtype);
      detail::require_size(info, array.size);
    }
    items.push_back({read.to.size, size_of(types.back())});
  }
  detail::for_each_slice(
      items, pool, [&](std::size_t item, std::size_t first, std::size_t count, HostBytes scratch) {
        auto const& read = reads[item];
        std::vector<HostArray> parts{read.to.part(first, first + count)};
        for (auto const& array : read.also) {
          parts.push_back(array.part(first, first + count));
        }
        detail::read_slice(read.tensor, types[item], first, parts, scratch, Stores::streamed);
      });
}

ROUNDPIPE_INLINE void read_elements(StoredTensor const& tensor,
                                    std::size_t first,
                                    HostArray const& to) {
  auto const& info = tensor.info();
  auto const type = detail::convertible_type(info, to.dtype);
  if (first > info.size() || to.size > info.size() - first) {
    throw Error(Errc::invalid_argument,
                "tensor " + in_quotes(info.name) + " is " + to_string(info) + ", and " +
                    std::to_string(to.size) + " elements were wanted from element " +
                    std::to_string(first) + " on");
  }
  AlignedMemory const scratch(detail::scratch_bytes);
  detail::read_slice(tensor, type, first, std::span(&to, 1), scratch.bytes(), Stores::cached);
}

}  // namespace roundpipe
