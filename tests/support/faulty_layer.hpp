// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A layer that throws, in each way in which a layer can.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <support/toy_layers.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// A \ref ToyScale that throws.
struct FaultyLayer : ToyScale {
  struct Fault {
    std::function<void(HostStream&)> forward;
    std::function<void(HostStream&)> backward;
    Errc code = Errc::device_fault;
    std::string message{};  ///< What an error says behind what it names.
  };
  Fault fault;

  explicit FaultyLayer(Fault given) : fault(std::move(given)) {}

  void forward(ForwardContext<HostStream>& ctx) const {
    if (fault.forward) {
      fault.forward(ctx.stream());
    }
    ToyScale::forward(ctx);
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    if (fault.backward) {
      fault.backward(ctx.stream());
    }
    ToyScale::backward(ctx);
  }

  [[nodiscard]] static std::vector<Fault> all() {
    auto const full = [](HostStream&) { throw Error(Errc::over_budget, "full"); };
    auto const odd = [](HostStream&) { throw std::runtime_error("odd"); };
    auto const number = [](HostStream&) { throw 5; };
    auto const later = [](HostStream& stream) {
      stream.launch([] { throw std::runtime_error("late"); });
    };
    std::string const no_exception = "an exception that is not a std::exception";
    std::string const enqueued = "work on the compute lane, device 0: late";
    return {{full, {}, Errc::over_budget, "full"},
            {{}, full, Errc::over_budget, "full"},
            {odd, {}, Errc::device_fault, "odd"},
            {{}, odd, Errc::device_fault, "odd"},
            {number, {}, Errc::device_fault, no_exception},
            {{}, number, Errc::device_fault, no_exception},
            {later, {}, Errc::device_fault, enqueued},
            {{}, later, Errc::device_fault, enqueued}};
  }
};

}  // namespace roundpipe::test
