// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/device_copies.hpp>

#include <support/error_of.hpp>
#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace device_copies_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("an action copies the bytes that the graph counts, to or from its device's arena") {
  PlannedCall test;
  DeviceCopies const copies(test.places, test.parameters, test.boundaries);
  CopyList list;
  std::size_t uploads = 0;
  std::size_t downloads = 0;
  test.for_each_device_action([&](DeviceAction const& here) {
    if (here.action.lane.kind == LaneKind::compute) {
      return;
    }
    copies.list(here, list);
    Bytes bytes = 0;
    for (auto const& upload : list.uploads) {
      CHECK(upload.to.size() == upload.from.size());
      CHECK(test.in_arena(here.device, upload.to));
      bytes += upload.to.size();
    }
    for (auto const& download : list.downloads) {
      CHECK(download.to.size() == download.from.size());
      if (here.action.kind == ActionKind::download_activation) {
        CHECK(download.to.size() % tensor_alignment_bytes != 0);  // these tensors are small
      }
      bytes += download.to.size();
    }
    CAPTURE(to_string(here.action));
    // The graph counts tables of tensors with the gaps between them.
    CHECK(bytes <= here.action.bytes);
    CHECK((here.action.pieces.empty() || bytes == here.action.bytes));
    CHECK(bytes > 0);
    CHECK((list.uploads.empty() || list.downloads.empty()));
    uploads += list.uploads.size();
    downloads += list.downloads.size();
  });
  CHECK(uploads > 0);
  CHECK(downloads > 0);
}

TEST_CASE("a boundary goes from the arena of its device to that of another, without gaps") {
  PlannedCall test({}, true);
  DeviceCopies const copies(test.places, test.parameters, test.boundaries);
  CopyList list;
  std::size_t sends = 0;
  test.for_each_device_action([&](DeviceAction const& here) {
    if (here.action.kind != ActionKind::send_boundary) {
      return;
    }
    copies.list(here, list);
    REQUIRE(list.sends.size() == 1);
    auto const& [to, from] = list.sends.front();
    CHECK(test.in_arena(here.device, {const_cast<std::byte*>(from.device_pointer()), from.size()}));
    CHECK(test.in_arena(DeviceId(1 - here.device.index()), to));
    CHECK(to.size() == from.size());
    CHECK(align_up(to.size()) == here.action.bytes);
    CHECK((list.uploads.empty() && list.downloads.empty()));
    ++sends;
  });
  CHECK(sends > 0);
}

TEST_CASE("uploads read the weights of the step that the call names") {
  PlannedCall test;
  DeviceCopies const copies(test.places, test.parameters, test.boundaries);
  CopyList list;
  test.for_each_device_action([&](DeviceAction const& here) {
    if (here.action.kind != ActionKind::upload_parameters) {
      return;
    }
    for (std::uint64_t version = 0; version < 2; ++version) {
      test.call.version = version;
      copies.list(here, list);
      REQUIRE(list.uploads.size() == here.action.pieces.size());
      auto const& piece = here.action.pieces.front();
      auto const master = test.parameters.master(test.plan.blocks.use(piece.use).block, version);
      CHECK(list.uploads.front().from.data() >= master.data());
      CHECK(list.uploads.front().from.data() < master.data() + master.size());
    }
  });
}

TEST_CASE("an action that copies nothing is refused") {
  PlannedCall test;
  DeviceCopies const copies(test.places, test.parameters, test.boundaries);
  CopyList list;
  Action action;
  action.kind = ActionKind::optimizer_step;
  CHECK(error_of([&] { copies.list({test.run, action, DeviceId(0)}, list); }).code() ==
        Errc::unsupported);
}

}  // namespace device_copies_test
