// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/snapshot_manifest.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace snapshot_manifest_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

using Json = nlohmann::json;

SnapshotManifest a_manifest() {
  SnapshotManifest manifest;
  manifest.position = {.step = 7,
                       .skipped_steps = 2,
                       .visible_step = 6,
                       .calls = 14,
                       .seed = ~std::uint64_t{0},
                       .first_device = 3,
                       .loss_scale = LossScaleState{0.1, 4, 5},
                       .overflowed = {true, false}};
  manifest.parameters.resize(2);
  manifest.parameters[0] = {"0.weight", "model.weight", false, 2, {}};
  manifest.parameters[1] = {
      "1.bias", "", true, 0, BaseParameter{{"1.bias", "BF16", {2, 3}}, std::string(32, 'a')}};
  manifest.file_bytes = {{"model.safetensors", 100}, {"optimizer.safetensors", 200}};
  manifest.extras = {DataPosition{1, 2, 3}, Json{{"steps", 20}}};
  return manifest;
}

SnapshotManifest parsed(std::string const& text) {
  return parse_snapshot_manifest(bytes_of(text), "snapshot.json");
}

/// How \ref a_manifest is refused with \p value at \p place, or, where it is discarded, without
/// \p place.
std::string message_with(std::string const& place, Json const& value) {
  auto json = Json::parse(snapshot_manifest_text(a_manifest()));
  Json::json_pointer const at(place);
  REQUIRE((json.contains(at) || json.contains(at.parent_pointer())));
  if (value.is_discarded()) {
    json[at.parent_pointer()].erase(at.back());
  } else {
    json[at] = value;
  }
  auto const error = error_of([&] { (void)parsed(json.dump()); });
  CHECK(error.code() == Errc::bad_file);
  CHECK(error.message().starts_with("'snapshot.json': "));
  return error.message().substr(17);
}

Json const gone(Json::value_t::discarded);

}  // namespace

TEST_CASE("a manifest comes back as it was written") {
  auto const manifest = a_manifest();
  auto const again = parsed(snapshot_manifest_text(manifest));
  CHECK(again.parameters == manifest.parameters);
  CHECK(again.file_bytes == manifest.file_bytes);
  CHECK(again.extras.data == manifest.extras.data);
  CHECK(again.extras.program == manifest.extras.program);
  auto const& a = again.position;
  auto const& m = manifest.position;
  CHECK(a.step == m.step);
  CHECK(a.skipped_steps == m.skipped_steps);
  CHECK(a.visible_step == m.visible_step);
  CHECK(a.calls == m.calls);
  CHECK(a.seed == m.seed);
  CHECK(a.first_device == m.first_device);
  REQUIRE(a.loss_scale);
  CHECK(a.loss_scale->value == m.loss_scale->value);
  CHECK(a.loss_scale->clean_steps == m.loss_scale->clean_steps);
  CHECK(a.loss_scale->recorded_steps == m.loss_scale->recorded_steps);
  CHECK(a.overflowed == m.overflowed);

  SnapshotManifest plain;
  plain.extras.program = nullptr;
  auto const text = snapshot_manifest_text(plain);
  CHECK(contains(text, "\"version\": 1,"));
  auto const empty = parsed(text);
  CHECK(!empty.position.loss_scale);
  CHECK(!empty.extras.data);
  CHECK(empty.extras.program.is_null());
  CHECK(empty.parameters.empty());
}

TEST_CASE("fields of later versions are left aside, and a later format is refused") {
  auto json = Json::parse(snapshot_manifest_text(a_manifest()));
  json["news"] = {1, 2};
  json["position"]["news"] = "x";
  CHECK(parsed(json.dump()).parameters.size() == 2);
  CHECK(message_with("/version", 2) == "version is 2; this version of the library reads 1");
  CHECK(message_with("/format", "pt") == "format is not that of a snapshot");
}

TEST_CASE("a hostile manifest is refused by the name of its field") {
  for (auto const* const text : {"", "{", "nonsense", "{\"a\":1,\"a\":2}"}) {
    CHECK(contains(error_of([&] { (void)parsed(text); }).message(), "'snapshot.json': "));
  }
  CHECK(error_of([&] { (void)parsed("[]"); }).message() ==
        "'snapshot.json': the text must be an object, not array");
  std::string const whole = " must be a whole number from 0 to 18446744073709551615";
  for (auto const* const name :
       {"step", "skipped_steps", "visible_step", "calls", "first_device"}) {
    std::string const place = std::string("/position/") + name;
    CHECK(message_with(place, gone) == std::string("position.") + name + " is missing");
    for (auto const& value : {Json(-1), Json(1.5), Json("1"), Json(), Json(true), Json(1e30)}) {
      CHECK(message_with(place, value) == std::string("position.") + name + whole);
    }
  }
  struct Case {
    std::string place;
    Json value;
    std::string message;
  };
  auto const position = std::string("position is none: the numbers of steps in a state contradict");
  std::vector<Case> const cases{
      {"/version", "1", "version" + whole},
      {"/version", gone, "version is missing"},
      {"/format", 1, "format must be a string"},
      {"/position", 7, "position must be an object, not number"},
      {"/position/step", 5, position},
      {"/position/step", 8, position},
      {"/position/visible_step", ~std::uint64_t{0}, position},
      {"/position/skipped_steps", 8, position},
      {"/position/loss_scale", 1, "position.loss_scale must be an object, not number"},
      {"/position/loss_scale", gone, "position.loss_scale is missing"},
      {"/position/loss_scale/value", 0, "position.loss_scale.value is no scale"},
      {"/position/loss_scale/value", -2.5, "position.loss_scale.value is no scale"},
      {"/position/loss_scale/value", "1", "position.loss_scale.value must be a number"},
      {"/position/loss_scale/recorded_steps", 4, "position is none: the loss scale of a state"},
      {"/position/loss_scale/recorded_steps",
       ~std::uint64_t{0},
       "position is none: the loss scale of a state"},
      {"/position/loss_scale/overflowed", 1, "position.loss_scale.overflowed must be a list"},
      {"/position/loss_scale/overflowed",
       Json{true, false, true},
       "position.loss_scale.overflowed must be of two steps"},
      {"/position/loss_scale/overflowed/1",
       1,
       "position.loss_scale.overflowed[1] must be true or false"},
      {"/data", "x", "data must be an object, not string"},
      {"/data", gone, "data is missing"},
      {"/data/rows", -1, "data.rows" + whole},
      {"/data/fingerprint", gone, "data.fingerprint is missing"},
      {"/files", Json::array(), "files must be an object, not array"},
      {"/files/model.safetensors", "1", "files.model.safetensors" + whole},
      {"/program", gone, "program is missing"},
      {"/parameters", Json::object(), "parameters must be a list"},
      {"/parameters/0", 1, "parameters[0] must be an object, not number"},
      {"/parameters/0/name", 1, "parameters[0].name must be a string"},
      {"/parameters/0/name", "1.bias", "parameters[1].name is '1.bias', as of another parameter"},
      {"/parameters/1",
       Json{{"name", "2"}, {"frozen", false}, {"tensor", "model.weight"}, {"states", 0}},
       "parameters[1].tensor is 'model.weight', as of another parameter"},
      {"/parameters/0/frozen", gone, "parameters[0].frozen is missing"},
      {"/parameters/0/frozen", 0, "parameters[0].frozen must be true or false"},
      {"/parameters/0/frozen", true, "parameters[0].states must be 0: the parameter is frozen"},
      {"/parameters/0/tensor", gone, "parameters[0].tensor is missing"},
      {"/parameters/0/states", 9, "parameters[0].states must be a whole number from 0 to 8"},
      {"/parameters/0/states",
       ~std::uint64_t{0},
       "parameters[0].states must be a whole number from 0 to 8"},
      {"/parameters/1/frozen", false, "parameters[1].base is of a frozen parameter alone"},
      {"/parameters/1/base", 1, "parameters[1].base must be an object, not number"},
      {"/parameters/1/base/dtype", "F7", "parameters[1].base.dtype is 'F7', which the format"},
      {"/parameters/1/base/shape", 6, "parameters[1].base.shape must be a list"},
      {"/parameters/1/base/shape/1", -1, "parameters[1].base.shape[1] must be an extent"},
      {"/parameters/1/base/shape",
       Json(std::vector<std::int64_t>(3, std::int64_t{1} << 40)),
       "parameters[1].base.shape "},
      {"/parameters/1/base/shape", Json(std::vector<int>(65, 1)), "parameters[1].base.shape "},
      {"/parameters/1/base/hash", "aa", "parameters[1].base.hash is no hash"},
  };
  for (auto const& hostile : cases) {
    CAPTURE(hostile.place);
    auto const message = message_with(hostile.place, hostile.value);
    CHECK_MESSAGE(message.starts_with(hostile.message), message);
  }
}

}  // namespace snapshot_manifest_test
