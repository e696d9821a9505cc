// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/step_progress.hpp>

#include <roundpipe/model/parameter_blocks.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace step_progress_test {

using namespace roundpipe;

TEST_CASE("a step is finished when every trained block is updated, and torn before") {
  ParameterBlocks blocks;
  blocks.blocks.resize(3);
  blocks.blocks[1].frozen = true;
  StepProgress progress(blocks);
  CHECK(progress.trains());
  for (std::uint64_t step = 1; step < 4; ++step) {
    for (int block = 0; block < 2; ++block) {
      CHECK(progress.finished_steps() == step - 1);
      CHECK(progress.is_torn() == (block > 0));
      progress.begin_block();
      CHECK(progress.is_torn());
      progress.end_block(step, step == 2);
    }
    CHECK(progress.finished_steps() == step);
    CHECK_FALSE(progress.is_torn());
  }
  CHECK(progress.skipped_steps() == 1);
}

TEST_CASE("a step begins, or is called off before, and never both") {
  ParameterBlocks blocks;
  blocks.blocks.resize(1);
  StepProgress progress(blocks);
  CHECK(progress.begin(1));
  CHECK(progress.begin(1));
  CHECK(progress.has_begun());
  CHECK(progress.has_begun_or_call_off(1));
  progress.end_block(1, false);
  CHECK_FALSE(progress.has_begun());
  CHECK_FALSE(progress.has_begun_or_call_off(2));
  CHECK_FALSE(progress.begin(2));
  CHECK_FALSE(progress.has_begun());
  progress.resume();
  CHECK(progress.begin(2));
}

TEST_CASE("a model of frozen blocks alone does not train") {
  ParameterBlocks blocks;
  blocks.blocks.resize(1);
  blocks.blocks[0].frozen = true;
  CHECK_FALSE(StepProgress(blocks).trains());
}

TEST_CASE("restored progress counts on") {
  ParameterBlocks blocks;
  blocks.blocks.resize(1);
  StepProgress progress(blocks);
  progress.restore(7, 2);
  CHECK(progress.finished_steps() == 7);
  progress.begin_block();
  progress.end_block(8, true);
  CHECK(progress.finished_steps() == 8);
  CHECK(progress.skipped_steps() == 3);
}

}  // namespace step_progress_test
