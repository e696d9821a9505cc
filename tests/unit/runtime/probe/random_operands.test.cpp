// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/probe/random_operands.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <support/toy_layers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace random_operands_test {

using namespace roundpipe;
using test::load;

namespace {

/// What \ref detail::RandomOperands makes on a device.
class Operands {
 public:
  [[nodiscard]] std::vector<double> filled(DType type, std::int64_t count, Initial like) {
    auto const slab =
        backend_.allocate_device(DeviceId(0), static_cast<Bytes>(count) * size_of(type));
    DeviceTensor const tensor(slab.bytes(), {count}, type);
    operands_.fill(stream_, tensor, like);
    stream_.record(done_);
    done_.wait();
    std::vector<double> values(tensor.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<double>(load(tensor, i));
    }
    return values;
  }

 private:
  HostBackend backend_;
  detail::RandomOperands<HostBackend> operands_{backend_};
  HostBackend::Stream stream_ = backend_.make_stream(DeviceId(0), LaneKind::compute);
  HostBackend::Event done_ = backend_.make_event(DeviceId(0));
};

}  // namespace

TEST_CASE("operands are numbers of their type like the initial ones, but not zeros") {
  Operands operands;
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (auto const like : {Initial::normal(0.5F), Initial::zeros()}) {
      constexpr std::int64_t count = (1 << 17) + 1000;  // more than are drawn
      double sum = 0;
      double squares = 0;
      for (auto const x : operands.filled(type, count, like)) {
        sum += x;
        squares += x * x;
      }
      auto const deviation = like.deviation > 0 ? 0.5 : 0.03;
      CHECK(std::abs(sum / count) < 5 * deviation / std::sqrt(count / 2));
      CHECK(std::sqrt(squares / count) == doctest::Approx(deviation).epsilon(0.02));
    }
    CHECK(operands.filled(type, 3, Initial::ones()) == std::vector<double>{1, 1, 1});
  }
}

TEST_CASE("operands of one distribution are different numbers") {
  Operands operands;
  auto const a = operands.filled(DType::f32, 1 << 17, Initial::normal(1));
  auto const b = operands.filled(DType::f32, 1 << 17, Initial::normal(1));
  std::size_t equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    equal += a[i] == b[i] ? 1 : 0;
    equal += i >= 65'536 && a[i] == a[i - 65'536] ? 1 : 0;  // rows of 2^n numbers differ
  }
  CHECK(equal < 10);
}

}  // namespace random_operands_test
