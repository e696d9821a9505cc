// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/weight_access.hpp>

#include <support/error_of.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace weight_access_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("each parameter is visited once by its name, shared ones too") {
  HostParameters host({.tied = true});
  WeightAccess const weights(host.memory, host.progress);
  std::set<std::string> names;
  std::size_t elements = 0;
  std::size_t visits = 0;
  weights.for_each([&](std::string const& name, Shape const& shape, HostSpan<float const> values) {
    names.insert(name);
    ++visits;
    CHECK(shape.size() == values.size());
    elements += values.size();
  });
  CHECK(names.size() == visits);
  CHECK(elements == host.blocks.parameter_count());
}

TEST_CASE("what is written to a parameter is read there") {
  HostParameters host({.copies = {.master_copies = 2}, .type = DType::bf16});
  WeightAccess const weights(host.memory, host.progress);
  auto const size = host.blocks.blocks[0].specs[0].tensor.shape.size();
  auto const parameter = weights.find("0.weight", size);
  std::vector<float> const written(size, 0.375F);
  weights.write(parameter, written);
  std::vector<float> read(size);
  weights.read(parameter, read);
  CHECK(read == written);
  CHECK(host.master(0) == 0.375F);
  CHECK(host.master(1) == 0.375F);
}

TEST_CASE("parameters that are not there, and other sizes, are refused") {
  HostParameters host({});
  WeightAccess const weights(host.memory, host.progress);
  auto const size = host.blocks.blocks[0].specs[0].tensor.shape.size();
  auto const refusal = [&](std::string const& name, std::size_t elements) {
    return error_of([&] { (void)weights.find(name, elements); });
  };
  CHECK(refusal("0.weight", size + 1).code() == Errc::invalid_argument);
  CHECK(refusal("0.weight", size - 1).code() == Errc::invalid_argument);
  CHECK(refusal("0.w", size).message() == "there is no parameter 0.w");
  CHECK(refusal("99.weight", size).code() == Errc::invalid_argument);
}

TEST_CASE("gradients are read in fp32, without their loss scale") {
  HostParameters host({.type = DType::bf16});
  WeightAccess const weights(host.memory, host.progress);
  host.land_all(6, 3);
  auto const size = host.blocks.blocks[0].specs[0].tensor.shape.size();
  std::vector<float> read(size);
  weights.read_gradient(weights.find("0.weight", size), {.iteration = 3, .loss_scale = 4}, read);
  CHECK(read == std::vector<float>(size, 1.5F));
}

/// The bytes of all tensors at \p position.
std::vector<std::vector<std::byte>> bytes_of(WeightAccess const& weights,
                                             TrainingPosition const& position) {
  std::vector<std::vector<std::byte>> bytes;
  TrainingState const state{position, weights.state(position.visible_step)};
  for_each_tensor(state, [&](std::string const&, HostTensor const& tensor) {
    bytes.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
  });
  return bytes;
}

TEST_CASE("a state restores itself, and other parameters to the same bytes") {
  for (std::size_t const masters : {1, 2}) {
    for (auto const type : {StateType::fp32, StateType::declared}) {
      CAPTURE(masters);
      CAPTURE(static_cast<int>(type));
      HostParameters::Setup setup{
          .copies = {.master_copies = masters, .state_arrays = 2, .state_type = type},
          .type = DType::bf16,
          .tied = true};
      HostParameters host(setup);
      setup.updater.seed = 2;
      HostParameters other(setup);
      WeightAccess const weights(host.memory, host.progress);
      WeightAccess const others(other.memory, other.progress);
      // A declared state has no copy of its own beside a single master copy.
      bool const stale = type == StateType::fp32 || masters == 2;
      TrainingPosition const position{.step = 3, .visible_step = stale ? 2U : 3U};
      host.progress.restore(3, 0);
      other.progress.restore(3, 0);
      if (stale) {  // the copy that the next call reads has weights of its own
        auto const size = host.blocks.blocks[0].specs[0].tensor.shape.size();
        narrow(std::vector<float>(size, 7),
               DType::bf16,
               host.memory.master(BlockId(0), 0, position.visible_step).bytes());
      }
      auto const before = bytes_of(weights, position);
      CHECK(bytes_of(others, position) != before);
      for (auto const* const to : {&weights, &others}) {
        TrainingState const state{position, weights.state(position.visible_step)};
        to->restore(match_parameters(to->state(0), state, position), position);
        CHECK(bytes_of(*to, position) == before);
      }
      CHECK(host.master(position.visible_step) == other.master(position.visible_step));
    }
  }
}

TEST_CASE("weights of no step are refused") {
  HostParameters host({});
  WeightAccess const weights(host.memory, host.progress);
  weights.require_whole();
  host.progress.begin_block();
  CHECK(error_of([&] { weights.require_whole(); }).code() == Errc::aborted);
}

}  // namespace weight_access_test
