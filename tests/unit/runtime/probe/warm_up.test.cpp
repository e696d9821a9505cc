// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/probe/warm_up.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <support/error_of.hpp>
#include <support/faulty_layer.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace warm_up_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// How often a layer ran, and at how many positions in total.
struct Count {
  std::atomic<int> forward{0};
  std::atomic<int> saving{0};
  std::atomic<int> evaluating{0};
  std::atomic<int> backward{0};
  std::atomic<std::int64_t> positions{0};
  std::atomic<std::thread::id> thread;  ///< The thread of the last call.
};

/// A dense layer that counts its calls.
struct CountedDense : ToyDense {
  std::shared_ptr<Count> count = std::make_shared<Count>();

  void forward(ForwardContext<HostStream>& ctx) const {
    ++count->forward;
    count->saving += ctx.saving() ? 1 : 0;
    count->evaluating += ctx.evaluating() ? 1 : 0;
    count->positions += ctx.shape().positions();
    ToyDense::forward(ctx);
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ++count->backward;
    count->thread = std::this_thread::get_id();
    ToyDense::backward(ctx);
  }
};

HostBackendOptions two_devices(Bytes memory) {
  HostBackendOptions options;
  options.devices = 2;
  options.device_memory_bytes = memory;
  return options;
}

}  // namespace

TEST_CASE("every different layer runs on every device in every way, at the given extents") {
  CountedDense const layer;
  Sequential const model{ToyInput{}, repeat(3, layer), ToyLoss{}};
  HostBackend backend{two_devices(1_MiB)};
  warm_up(model, backend, describe(model, BatchShape{2, 5}), 2);
  CHECK(layer.count->forward == 2 * 3);
  CHECK(layer.count->saving == 2);
  CHECK(layer.count->evaluating == 2);
  CHECK(layer.count->backward == 2);
  CHECK(layer.count->positions == 2 * 3 * 10);
  CHECK(layer.count->thread.load() != std::thread::id{});
  CHECK(layer.count->thread.load() != std::this_thread::get_id());
}

TEST_CASE("lent memory is used, and new memory is taken only when it does not suffice") {
  auto const model = toy_model({.dense = 2});
  auto const description = describe(model, BatchShape{2, 5});
  HostBackend backend{two_devices(16_KiB)};
  {
    auto const first = backend.allocate_device(DeviceId(0), 16_KiB);
    auto const second = backend.allocate_device(DeviceId(1), 16_KiB);
    std::vector const all{first.bytes(), second.bytes()};
    CHECK_NOTHROW(warm_up(model, backend, description, 2, all));
    std::vector const small{first.bytes(), second.bytes().subspan(0, 256)};
    auto const error = error_of([&] { warm_up(model, backend, description, 2, small); });
    CHECK(error.code() == std::errc::not_enough_memory);
  }
  CHECK_NOTHROW(warm_up(model, backend, description, 2));
}

TEST_CASE("a layer that throws in its warm-up is named, with its device") {
  for (auto const& fault : FaultyLayer::all()) {
    Sequential const model{ToyInput{}, repeat(2, FaultyLayer{fault}), ToyLoss{}};
    HostBackend backend{{.devices = 2}};
    auto const error =
        error_of([&] { (void)warm_up(model, backend, describe(model, BatchShape{2, 5}), 2); });
    CHECK(error.code() == fault.code);
    CHECK(error.message() == "warm-up of layer 1 (toy scale), device 0: " + fault.message);
  }
}

}  // namespace warm_up_test
