// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes one snapshot: a folder that appears whole or not at all.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors_writer.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/snapshots/hash_list.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>
#include <roundpipe/snapshots/staged_writes.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
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

/// Calls `f(file, name, tensor)` with each tensor of \p parameter that the snapshot \p said of it
/// holds. \p is_stale: see \ref TrainingPosition::is_stale.
template <class F>
void for_each_stored_tensor(ParameterState const& parameter,
                            SnapshotParameter const& said,
                            bool is_stale,
                            F&& f) {
  if (said.base) {
    return;
  }
  f(snapshot_files::weights, said.tensor, parameter.weights);
  for (std::size_t s = 0; s < said.states; ++s) {
    f(snapshot_files::optimizer, state_tensor_name(parameter.name, s), parameter.optimizer[s]);
  }
  if (!parameter.frozen && is_stale) {
    f(snapshot_files::visible, parameter.name, parameter.visible);
  }
}

/// What a snapshot says of \p parameter; the hash of one that it does not hold is still missing.
[[nodiscard]] inline SnapshotParameter described(ParameterState const& parameter,
                                                 SnapshotFormat const& format) {
  auto const& name = parameter.name;
  SnapshotParameter said{.name = name, .tensor = {}, .frozen = parameter.frozen};
  if (parameter.frozen && !format.stores_frozen) {
    auto const& own = parameter.weights;
    said.base = BaseParameter{tensor_info({name, own.shape, own.dtype}), {}};
  } else {
    said.states = parameter.optimizer.size();
    said.tensor = format.tensor_name ? format.tensor_name(name) : name;
  }
  return said;
}

/// The parameters of \p state, those first that an update overwrites last: a backward begins with
/// the last layer, and nobody waits for frozen parameters.
[[nodiscard]] inline std::vector<std::size_t> reversed_write_order(TrainingState const& state) {
  std::vector<std::size_t> order(state.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_partition(order, [&](std::size_t i) { return state.parameters[i].frozen; });
  return order;
}

/// The files of tensors of one snapshot, which are written block by block.
class TensorFiles {
 public:
  /// Creates the files in \p folder. \p state must outlive this.
  TensorFiles(std::filesystem::path const& folder,
              TrainingState const& state,
              SnapshotFormat const& format)
      : state_(state) {
    using namespace snapshot_files;
    std::map<std::string_view, std::vector<TensorInfo>> infos{{weights, {}}, {optimizer, {}}};
    for (auto const& parameter : state.parameters) {
      parameters_.push_back(described(parameter, format));
      for_each_stored_tensor(
          parameter,
          parameters_.back(),
          state.position.is_stale(),
          [&](auto file, auto const& name, HostTensor const& tensor) {
            infos[file].push_back(tensor_info({name, tensor.shape, tensor.dtype}));
          });
    }
    for (auto& [file, tensors] : infos) {
      files_.try_emplace(file, folder / file, std::move(tensors));
    }
  }

  /// Writes all tensors, through \p memory. Releases each block of \p hold, if there is one, when
  /// the last byte of it was read: first those for which somebody waits, else in \ref
  /// reversed_write_order from the back.
  void write(BlockHold* hold, StagingMemory& memory) {
    StagedWrites writes(memory);
    auto const parameter = [&](std::size_t i) -> auto& { return state_.parameters[i]; };
    auto rest = reversed_write_order(state_);
    while (!rest.empty()) {
      auto const wanted = hold != nullptr ? hold->wanted() : BlockId::none();
      auto const block = wanted.valid() ? wanted : parameter(rest.back()).block;
      auto const written = std::ranges::stable_partition(
          rest, [&](std::size_t i) { return parameter(i).block != block; });
      for (auto const i : written) {
        write(parameter(i), parameters_[i], writes);
      }
      rest.erase(written.begin(), written.end());
      if (hold != nullptr) {
        hold->release(block);
      }
    }
    writes.finish();
  }

  /// Ends the files: they are on the disk. Adds what \p said and \p list tell of them. \returns
  /// their bytes.
  Bytes finish(SnapshotManifest& said, HashList& list, StagingMemory& memory) {
    Bytes bytes = 0;
    for (auto& [file, tensors] : files_) {
      auto& writer = tensors.writer;
      writer.finish();
      std::string const name(file);
      list[name] = hash_read_back(writer.path(), writer.header(), tensors.staged.sum, memory);
      said.file_bytes[name] = writer.header().file_bytes();
      bytes += writer.header().file_bytes();
    }
    said.parameters = std::move(parameters_);
    return bytes;
  }

 private:
  struct TensorFile {
    TensorFile(std::filesystem::path path, std::vector<TensorInfo> tensors)
        // transformers refuses weights that do not say their format.
        : writer(std::move(path), std::move(tensors), {{"format", "pt"}}), staged(writer.file()) {}

    SafetensorsWriter writer;
    StagedFile staged;
  };

  void write(ParameterState const& parameter, SnapshotParameter& said, StagedWrites& writes) {
    if (said.base) {
      said.base->hash = content_hash(parameter.weights.bytes);
    }
    auto const write_tensor = [&](auto file, auto const& name, HostTensor const& tensor) {
      auto& to = files_.at(file);
      to.writer.write_by(name, 0, tensor.bytes, [&](Bytes at, HostSpan<std::byte const> bytes) {
        writes.write(to.staged, at, bytes);
      });
    };
    for_each_stored_tensor(parameter, said, state_.position.is_stale(), write_tensor);
  }

  TrainingState const& state_;
  std::vector<SnapshotParameter> parameters_;
  std::map<std::string_view, TensorFile> files_;  // by the file's name
};

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
/// state where they lie, and releases each block of \p hold, if there is one, when it was copied
/// into \p memory (its own without one), from where it is written: the trainer may wait for it.
/// Returns when all is on the disk. \returns the bytes of all files.
/// \throws Error (invalid_argument) when two parameters get one name, and for text of \p extras
///         that is no UTF-8; (bad_file) for \p extras that nobody could read again, nested deeper
///         than 63 levels or larger than 64 MiB; with the system's code, and the file's name, when
///         writing fails. Then \p folder is what it was, and nothing else is left.
inline Bytes write_snapshot(std::filesystem::path const& folder,
                            TrainingState const& state,
                            SnapshotExtras const& extras = {},
                            SnapshotFormat const& format = {},
                            BlockHold* hold = nullptr,
                            StagingMemory* memory = nullptr) {
  using namespace snapshot_files;
  std::optional<StagingMemory> own;
  auto& staging = memory != nullptr ? *memory : own.emplace();
  auto const path = detail::partial_path(folder);
  detail::PartialFolder partial(path);
  detail::TensorFiles files(path, state, format);
  files.write(hold, staging);
  SnapshotManifest said{state.position, {}, {}, extras};
  HashList list;
  auto const bytes = files.finish(said, list, staging);
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
