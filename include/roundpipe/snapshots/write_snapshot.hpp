// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes one snapshot: a folder that appears whole or not at all.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors_header.hpp>
#include <roundpipe/io/safetensors_writer.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/snapshots/hash_list.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a snapshot holds of the parameters.
struct SnapshotFormat {
  /// What the weights of a parameter are called in "model.safetensors"; without a function, as the
  /// parameter. With a checkpoint's names (`TensorNames::theirs`) other programs find them.
  std::function<std::string(std::string const& parameter)> tensor_name{};
  /// Whether it holds the weights of frozen parameters. Without them a snapshot of adapters is
  /// small: it holds their type, shape and hash, and is loaded into a trainer that has the same
  /// ones already (see \ref Snapshot::state).
  bool stores_frozen = true;
};

namespace detail {

/// What a file of tensors holds, by the tensors' names.
using SnapshotTensors = std::map<std::string, HostTensor>;

/// The content of the files of tensors, by the files' names.
struct SnapshotContent {
  std::map<std::string, SnapshotTensors> files;
  std::vector<SnapshotParameter> parameters;
};

inline void add_tensor(SnapshotTensors& tensors, std::string name, HostTensor const& tensor) {
  if (auto const added = tensors.emplace(std::move(name), tensor); !added.second) {
    throw Error(Errc::invalid_argument,
                "a snapshot cannot hold two tensors " + in_quotes(added.first->first));
  }
}

[[nodiscard]] inline SnapshotContent content_of(TrainingState const& state,
                                                SnapshotFormat const& format) {
  SnapshotContent content;
  auto& weights = content.files[std::string(snapshot_files::weights)];
  auto& optimizer = content.files[std::string(snapshot_files::optimizer)];
  for (auto const& parameter : state.parameters) {
    auto const& name = parameter.name;
    auto& said = content.parameters.emplace_back();
    said.name = name;
    said.frozen = parameter.frozen;
    if (parameter.frozen && !format.stores_frozen) {
      auto const& own = parameter.weights;
      said.base = BaseParameter{tensor_info({name, own.shape, own.dtype}), content_hash(own.bytes)};
      continue;
    }
    said.states = parameter.optimizer.size();
    said.tensor = format.tensor_name ? format.tensor_name(name) : name;
    add_tensor(weights, said.tensor, parameter.weights);
    for (std::size_t s = 0; s < said.states; ++s) {
      add_tensor(optimizer, state_tensor_name(name, s), parameter.optimizer[s]);
    }
    if (!parameter.frozen && state.position.is_stale()) {
      add_tensor(content.files[std::string(snapshot_files::visible)], name, parameter.visible);
    }
  }
  return content;
}

/// A file that was written.
struct WrittenFile {
  Bytes bytes = 0;
  std::string hash;
};

/// Writes the file \p path of \p tensors.
inline WrittenFile write_tensor_file(std::filesystem::path const& path,
                                     SnapshotTensors const& tensors) {
  std::vector<TensorInfo> infos;
  for (auto const& [name, tensor] : tensors) {
    infos.push_back(tensor_info({name, tensor.shape, tensor.dtype}));
  }
  // transformers refuses weights that do not say their format.
  SafetensorsWriter writer(path, std::move(infos), {{"format", "pt"}});
  ContentHash hash;
  auto const header = safetensors_header_text(writer.header());
  hash.add(std::as_bytes(std::span(header)));
  constexpr Bytes slice = 1_MiB;  // stays in the cache between hash and file
  for (auto const& entry : writer.header().entries) {
    auto const bytes = tensors.at(entry.tensor.name).bytes;
    for (Bytes begin = 0; begin < bytes.size(); begin += slice) {
      auto const part = bytes.subspan(begin, std::min(slice, bytes.size() - begin));
      hash.add(part);
      writer.write(entry.tensor.name, begin, part);
    }
  }
  writer.finish();
  return {writer.header().file_bytes(), hash.text()};
}

/// Removes a folder unless it was given away.
class PartialFolder {
 public:
  explicit PartialFolder(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code code;
    if (!std::filesystem::create_directory(path_, code)) {
      throw file_error("create the folder", path_, code ? code.value() : EEXIST);
    }
  }
  PartialFolder(PartialFolder const&) = delete;
  PartialFolder& operator=(PartialFolder const&) = delete;
  ~PartialFolder() {
    std::error_code ignored;
    if (!published_) {
      std::filesystem::remove_all(path_, ignored);
    }
  }
  void publish(std::filesystem::path const& path) {
    publish_folder(path_, path);
    published_ = true;
  }

 private:
  std::filesystem::path path_;
  bool published_ = false;
};

}  // namespace detail

/// Writes a snapshot of \p state to \p folder, whose parent must be there, in place of a snapshot
/// that has this name: into "FOLDER.partial", each file synced, which then takes the name. After a
/// crash at any moment \p folder is what it was or the whole new snapshot. Reads the tensors of \p
/// state where they lie, and returns when all is on the disk. \returns the bytes of all files.
/// \throws Error (invalid_argument) when two parameters get one name, and for text of \p extras
///         that is no UTF-8; (bad_file) for \p extras that nobody could read again, nested deeper
///         than 63 levels or larger than 64 MiB; with the system's code, and the file's name, when
///         writing fails. Then
///         \p folder is what it was, and nothing else is left.
inline Bytes write_snapshot(std::filesystem::path const& folder,
                            TrainingState const& state,
                            SnapshotExtras const& extras = {},
                            SnapshotFormat const& format = {}) {
  using namespace snapshot_files;
  auto content = detail::content_of(state, format);
  auto const path = detail::partial_path(folder);
  detail::PartialFolder partial(path);
  SnapshotManifest said{state.position, std::move(content.parameters), {}, extras};
  HashList list;
  Bytes bytes = 0;
  for (auto const& [name, tensors] : content.files) {
    auto const file = detail::write_tensor_file(path / name, tensors);
    list[name] = file.hash;
    said.file_bytes[name] = file.bytes;
    bytes += file.bytes;
  }
  auto const text = snapshot_manifest_text(said);
  // What could not be read again, such as a program's too deep JSON, must show now.
  (void)parse_snapshot_manifest(std::as_bytes(std::span(text)), (path / manifest).string());
  write_file(path / manifest, text);
  list[std::string(manifest)] = content_hash(std::as_bytes(std::span(text)));
  auto const sums = hash_list_text(list);
  write_file(path / hashes, sums);
  partial.publish(folder);
  return bytes + text.size() + sums.size();
}

}  // namespace roundpipe
