// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/snapshot_manifest.hpp>

#include <roundpipe/snapshots/hash_list.hpp>
#include <support/fuzz_target.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

SnapshotManifest a_manifest() {
  SnapshotManifest manifest;
  manifest.position = {.step = 3,
                       .visible_step = 2,
                       .calls = 3,
                       .seed = ~std::uint64_t{0},
                       .loss_scale = LossScaleState{0.5, 1, 2}};
  manifest.parameters.resize(2);
  manifest.parameters[0] = {"0.w", "w", false, 2, {}};
  manifest.parameters[1] = {
      "1.b", "", true, 0, BaseParameter{{"1.b", "BF16", {2, 3}}, std::string(32, 'a')}};
  manifest.file_bytes = {{"model.safetensors", 100}};
  manifest.extras = {DataPosition{1, 2, 3}, {{"a", {1, "x"}}}};
  return manifest;
}

}  // namespace

std::vector<std::string> roundpipe::test::seeds() {
  std::string const hash(32, '0');
  return {
      snapshot_manifest_text({}),
      snapshot_manifest_text(a_manifest()),
      hash_list_text(
          {{"snapshot.json", hash}, {"model.safetensors", hash}, {"optimizer.safetensors", hash}}),
  };
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const input(reinterpret_cast<char const*>(data), size);
  expect_answer_or_refusal([&] {
    auto const manifest = parse_snapshot_manifest(bytes_of(input), "input");
    auto const text = snapshot_manifest_text(manifest);
    auto const again = parse_snapshot_manifest(bytes_of(text), "input");
    expect(again.parameters == manifest.parameters && again.file_bytes == manifest.file_bytes &&
               again.extras.data == manifest.extras.data && snapshot_manifest_text(again) == text,
           "a manifest survives writing");
  });
  expect_answer_or_refusal([&] {
    auto const list = parse_hash_list(bytes_of(input), "input");
    auto const text = hash_list_text(list);
    expect(parse_hash_list(bytes_of(text), "input") == list, "a list of hashes survives writing");
  });
  return 0;
}
