// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/state_copy.hpp>

#include <support/snapshot_training.hpp>
#include <support/stored_files.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace state_copy_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::map<std::string, std::string> contents_of(TrainingState const& state) {
  std::map<std::string, std::string> contents;
  for_each_tensor(state, [&](std::string const& name, HostTensor const& tensor) {
    contents[name] = text_of(tensor.bytes);
  });
  return contents;
}

}  // namespace

TEST_CASE("a copy stays as it is while the training goes on, whatever the threads") {
  for (int const staleness : {0, 1}) {
    for (std::size_t const threads : {1, 3}) {
      CAPTURE(staleness);
      CAPTURE(threads);
      SmallTraining training;
      training.options.staleness = staleness;
      training.model.frozen_input = true;
      auto trainer = small_trainer(training);
      train_steps(trainer, 0, 3);
      auto const state = trainer.state();
      auto const before = contents_of(state);
      WorkerPool pool(threads);
      StateCopy copy;
      auto const copied = copy.take(state, pool);
      CHECK(copy.capacity() == StateCopy::bytes_of(state));
      train_steps(trainer, 3, 6);
      CHECK(contents_of(copied) == before);
      CHECK(contents_of(trainer.state()) != before);
      CHECK(copied.position.step == 3);
      Bytes bytes = 0;
      for (std::size_t i = 0; i < state.parameters.size(); ++i) {
        auto const& own = copied.parameters[i];
        CHECK(own.name == state.parameters[i].name);
        bool const stays = own.weights.bytes.data() == state.parameters[i].weights.bytes.data();
        CHECK(stays == own.frozen);
        if (!own.frozen) {
          bytes += own.weights.bytes.size() * 3 + (staleness == 1 ? own.visible.bytes.size() : 0);
        }
        CHECK(reinterpret_cast<std::uintptr_t>(own.weights.bytes.data()) % 16 == 0);
      }
      CHECK(StateCopy::bytes_of(state) >= bytes);
      auto const again = copy.take(trainer.state(), pool);  // in the same memory
      CHECK(contents_of(again) == contents_of(trainer.state()));
      CHECK(copy.capacity() == StateCopy::bytes_of(state));
    }
  }
}

}  // namespace state_copy_test
