// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/snapshot.hpp>

#include <roundpipe/snapshots/write_snapshot.hpp>
#include <support/error_of.hpp>
#include <support/snapshot_training.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

namespace snapshot_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a training goes on from a snapshot as if nothing had happened, bit for bit") {
  TemporaryFolder const folder;
  auto trainer = small_trainer();
  train_steps(trainer, 0, 3);
  write_snapshot(folder.path / "saved", trainer.state());
  auto const expected = train_steps(trainer, 3, 6);

  auto resumed = small_trainer();
  Snapshot const snapshot(folder.path / "saved");
  resumed.restore(snapshot.state());
  CHECK(train_steps(resumed, 3, 6) == expected);
}

}  // namespace snapshot_test
