// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a snapshot says beside its tensors: snapshot.json.

#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/data/dataset.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/snapshots/manifest_fields.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a program adds to a training's state.
struct SnapshotExtras {
  std::optional<DataPosition> data{};  ///< Where the training stands in its data.
  /// Anything that the program wants to find again: its options, its losses.
  nlohmann::json program = nlohmann::json::object();
};

/// A frozen parameter whose weights a snapshot leaves to the checkpoint that they came from.
struct BaseParameter {
  TensorInfo tensor;  ///< Its name is the parameter's.
  std::string hash;   ///< See \ref ContentHash.

  friend bool operator==(BaseParameter const&, BaseParameter const&) = default;
};

/// A parameter of a snapshot.
struct SnapshotParameter {
  std::string name;
  std::string tensor;  ///< Its name in the file of weights.
  bool frozen = false;
  std::size_t states = 0;               ///< The number of its optimizer states.
  std::optional<BaseParameter> base{};  ///< Where the snapshot does not hold the weights.

  friend bool operator==(SnapshotParameter const&, SnapshotParameter const&) = default;
};

/// The content of snapshot.json.
struct SnapshotManifest {
  TrainingPosition position;
  std::vector<SnapshotParameter> parameters;
  std::map<std::string, Bytes> file_bytes;  ///< The size of each file of tensors, by name.
  SnapshotExtras extras;
};

/// Of the format that this version writes. It reads no other.
inline constexpr std::uint64_t snapshot_version = 1;

namespace detail {

[[nodiscard]] inline nlohmann::ordered_json json_of(TrainingPosition const& position) {
  nlohmann::ordered_json json{{"step", position.step},
                              {"skipped_steps", position.skipped_steps},
                              {"visible_step", position.visible_step},
                              {"calls", position.calls},
                              {"seed", position.seed},
                              {"first_device", position.first_device},
                              {"loss_scale", nullptr}};
  if (auto const& scale = position.loss_scale) {
    json["loss_scale"] = {{"value", scale->value},
                          {"clean_steps", scale->clean_steps},
                          {"recorded_steps", scale->recorded_steps},
                          {"overflowed", position.overflowed}};
  }
  return json;
}

[[nodiscard]] inline TrainingPosition position_of(ManifestFields const& fields) {
  TrainingPosition position{.step = fields.whole("step"),
                            .skipped_steps = fields.whole("skipped_steps"),
                            .visible_step = fields.whole("visible_step"),
                            .calls = fields.whole("calls"),
                            .seed = fields.whole("seed"),
                            .first_device = fields.whole("first_device")};
  if (auto const scale = fields.object_or_null("loss_scale")) {
    position.loss_scale = LossScaleState{.value = scale->number("value"),
                                         .clean_steps = scale->whole("clean_steps"),
                                         .recorded_steps = scale->whole("recorded_steps")};
    if (!(position.loss_scale->value > 0)) {
      throw scale->bad("value", "is no scale");
    }
    auto const& overflowed = scale->list("overflowed");
    if (overflowed.size() != position.overflowed.size()) {
      throw scale->bad("overflowed", "must be of two steps");
    }
    for (std::size_t i = 0; i < overflowed.size(); ++i) {
      position.overflowed[i] = scale->flag_in("overflowed", i);
    }
  }
  try {
    (void)continued_position(position, position.seed, 1);
  } catch (Error const& error) {
    throw fields.bad("", "is none: " + error.message());
  }
  return position;
}

[[nodiscard]] inline nlohmann::ordered_json json_of(SnapshotParameter const& parameter) {
  nlohmann::ordered_json json{{"name", parameter.name}, {"frozen", parameter.frozen}};
  if (auto const& base = parameter.base) {
    json["base"] = {
        {"dtype", base->tensor.dtype}, {"shape", base->tensor.extents}, {"hash", base->hash}};
  } else {
    json["tensor"] = parameter.tensor;
    json["states"] = parameter.states;
  }
  return json;
}

[[nodiscard]] inline SnapshotParameter parameter_of(ManifestFields const& fields) {
  SnapshotParameter parameter;
  parameter.name = fields.text("name");
  parameter.frozen = fields.flag("frozen");
  if (!fields.has("base")) {
    parameter.tensor = fields.text("tensor");
    parameter.states = fields.whole("states", max_update_states);
    if (parameter.frozen && parameter.states > 0) {
      throw fields.bad("states", "must be 0: the parameter is frozen");
    }
    return parameter;
  }
  if (!parameter.frozen) {
    throw fields.bad("base", "is of a frozen parameter alone");
  }
  auto const base = fields.object("base");
  TensorInfo tensor{parameter.name, base.text("dtype"), {}};
  for (std::size_t i = 0; i < base.list("shape").size(); ++i) {
    tensor.extents.push_back(base.extent_in("shape", i));
  }
  if (auto const checked = checked_bytes(tensor); checked.field != nullptr) {
    throw base.bad(checked.field, checked.fault);
  }
  auto const hash = base.text("hash");
  if (!is_content_hash(hash)) {
    throw base.bad("hash", "is no hash");
  }
  parameter.base = BaseParameter{std::move(tensor), hash};
  return parameter;
}

}  // namespace detail

/// \p manifest as the text of its file.
/// \throws Error (invalid_argument) when a string is no UTF-8.
[[nodiscard]] inline std::string snapshot_manifest_text(SnapshotManifest const& manifest) {
  nlohmann::ordered_json json{{"format", "roundpipe snapshot"},
                              {"version", snapshot_version},
                              {"position", detail::json_of(manifest.position)},
                              {"data", nullptr},
                              {"program", manifest.extras.program},
                              {"files", manifest.file_bytes},
                              {"parameters", nlohmann::ordered_json::array()}};
  if (auto const& data = manifest.extras.data) {
    json["data"] = {{"rows", data->rows}, {"seed", data->seed}, {"fingerprint", data->fingerprint}};
  }
  for (auto const& parameter : manifest.parameters) {
    json["parameters"].push_back(detail::json_of(parameter));
  }
  return json_text(json, 1) + '\n';
}

/// Parses \p text, the content of the snapshot.json \p file. Fields that this version does not know
/// may be there.
/// \throws Error (bad_file), whose message names the file and the field: when \p text is no such
///         JSON, is of another version, names a parameter or a tensor twice, or its numbers
///         contradict each other.
[[nodiscard]] inline SnapshotManifest parse_snapshot_manifest(HostSpan<std::byte const> text,
                                                              std::string const& file) {
  auto const json = parse_json(text, file, detail::manifest_limits);
  detail::ManifestFields const fields(json, file);
  if (fields.text("format") != "roundpipe snapshot") {
    throw fields.bad("format", "is not that of a snapshot");
  }
  if (auto const version = fields.whole("version"); version != snapshot_version) {
    throw fields.bad("version",
                     "is " + std::to_string(version) + "; this version of the library reads " +
                         std::to_string(snapshot_version));
  }
  SnapshotManifest manifest;
  manifest.position = detail::position_of(fields.object("position"));
  if (auto const data = fields.object_or_null("data")) {
    manifest.extras.data = DataPosition{.rows = data->whole("rows"),
                                        .seed = data->whole("seed"),
                                        .fingerprint = data->whole("fingerprint")};
  }
  auto const files = fields.object("files");
  for (auto const& entry : files.json().items()) {
    manifest.file_bytes.emplace(entry.key(), files.whole(entry.key()));
  }
  std::set<std::string> names;
  std::set<std::string> tensors;
  for (std::size_t i = 0; i < fields.list("parameters").size(); ++i) {
    auto const entry = fields.object_in("parameters", i);
    auto parameter = detail::parameter_of(entry);
    if (!names.insert(parameter.name).second) {
      throw entry.bad("name", "is " + in_quotes(parameter.name) + ", as of another parameter");
    }
    if (!parameter.base && !tensors.insert(parameter.tensor).second) {
      throw entry.bad("tensor", "is " + in_quotes(parameter.tensor) + ", as of another parameter");
    }
    manifest.parameters.push_back(std::move(parameter));
  }
  manifest.extras.program = fields.need("program");
  return manifest;
}

}  // namespace roundpipe
