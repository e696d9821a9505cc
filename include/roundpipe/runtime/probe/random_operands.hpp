// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Numbers for layers to work on that take as long as those of training.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace roundpipe {

namespace detail {

/// Of what is 0 when training starts, or follows from a loss.
inline constexpr Initial small_numbers = Initial::normal(0.03F);

/// Random numbers in pinned memory, one list for each floating type and distribution. Numbers that
/// are alike measure too fast: matrix units draw less power on them and clock higher than in
/// training. Zeros are so, and so is what follows from them, such as the even attention of small
/// queries.
template <Backend B>
class RandomOperands {
 public:
  using Stream = typename B::Stream;

  /// \p backend must outlive this.
  explicit RandomOperands(B& backend) : backend_(backend) {}

  /// Enqueues copies to all of \p tensor: numbers like \p like, but none are only zeros. Each
  /// tensor begins elsewhere in the list: with equal weights, queries would be keys.
  void fill(Stream& stream, DeviceTensor const& tensor, Initial like = small_numbers) {
    HostSpan<std::byte const> const list = numbers(tensor.dtype(), like);
    DeviceBytes const to{tensor.device_pointer(), tensor.size_bytes()};
    auto const start = ++fills_ * stride % count * size_of(tensor.dtype());
    for (Bytes at = 0; at < to.size();) {
      auto const from = (start + at) % list.size();
      auto bytes = std::min(list.size() - from, to.size() - at);
      if (AddsTensors<Stream> && at >= list.size()) {  // the device has a whole list
        auto const same = at % list.size();
        bytes = std::min(at - same, to.size() - at);
        copy_within(stream, to.subspan(at, bytes), to.subspan(same, bytes));
      } else {
        stream.copy(to.subspan(at, bytes), list.subspan(from, bytes));
      }
      at += bytes;
    }
  }

 private:
  static constexpr std::size_t count = 65'537;  // prime, so that no tensor's rows are equal
  static constexpr std::size_t stride = 7'919;  // prime, too

  static void copy_within(Stream& stream, DeviceBytes to, DeviceBytes from) {
    if constexpr (AddsTensors<Stream>) {
      auto const tensor = [](DeviceBytes bytes) {
        return DeviceTensor(bytes, {static_cast<std::int64_t>(bytes.size())}, DType::u8);
      };
      stream.copy(tensor(to), tensor(from));
    }
  }

  [[nodiscard]] HostBytes numbers(DType type, Initial like) {
    auto const deviation =
        like.kind == Initial::Kind::zeros ? small_numbers.deviation : like.deviation;
    std::pair const key(type, like.kind == Initial::Kind::ones ? 0 : deviation);
    if (auto const found = slabs_.find(key); found != slabs_.end()) {
      return found->second.bytes();
    }
    auto const made = slabs_.emplace(key, backend_.allocate_host(count * size_of(type))).first;
    visit_floating(type, [&]<class T>(T) {
      auto* const values = reinterpret_cast<T*>(made->second.bytes().data());
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = T(like.kind == Initial::Kind::ones ? 1 : deviation * normal({}, i));
      }
    });
    return made->second.bytes();
  }

  B& backend_;
  std::size_t fills_ = 0;
  // By type and deviation, which is 0 of ones.
  std::map<std::pair<DType, float>, decltype(std::declval<B&>().allocate_host(Bytes{}))> slabs_;
};

}  // namespace detail

}  // namespace roundpipe
