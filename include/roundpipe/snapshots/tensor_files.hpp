// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The files of tensors of one snapshot, to which each rank writes its parts.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/agree.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors_header.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/snapshots/hash_list.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>
#include <roundpipe/snapshots/staged_writes.hpp>
#include <roundpipe/snapshots/stored_tensors.hpp>
#include <roundpipe/snapshots/tensor_file.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// The files as one rank writes them, block by block. What says so is a step of all ranks, for \ref
/// agree: each returns what the next one asks for, of all ranks.
class TensorFiles {
 public:
  /// Lays out the files in \p folder, which need not be there yet. \p state, a \ref written_share,
  /// must outlive this. \throws Error like \ref lay_out_safetensors.
  TensorFiles(std::filesystem::path const& folder,
              TrainingState const& state,
              SnapshotFormat const& format,
              AnyProcessGroup const& group)
      : state_(state), rank_(group.rank()), ranks_(group.size()) {
    using namespace snapshot_files;
    std::map<std::string_view, std::vector<TensorInfo>> infos{{weights, {}}, {optimizer, {}}};
    for (auto const& parameter : state.parameters) {
      parameters_.push_back(described(parameter, format));
    }
    for_each_tensor_of_all([&](auto file, auto const& name, HostTensor const& tensor, auto const&) {
      infos[file].push_back(tensor_info({name, tensor.shape, tensor.dtype}));
    });
    for (auto& [file, tensors] : infos) {
      files_.try_emplace(file, folder / file, std::move(tensors));
    }
    for_each_tensor_of_all(
        [&](auto file, auto const& name, HostTensor const& tensor, auto const& parameter) {
          for (std::size_t r = 0; r < ranks_; ++r) {
            if (auto const part = part_of(parameter, r); part.size() > 0) {
              files_.at(file).add_cut(name, part.begin * size_of(tensor.dtype));
              files_.at(file).add_cut(name, part.end * size_of(tensor.dtype));
            }
          }
        });
  }

  /// The first step, of rank 0 alone. \throws Error like \ref TensorFile::create.
  void create() {
    for (auto& [name, file] : files_) {
      file.create();
    }
  }
  /// The same of the others. \throws Error like \ref TensorFile::open.
  void open() {
    for (auto& [name, file] : files_) {
      file.open();
    }
  }

  /// What all ranks must have in common: the step, tensors, and who writes what.
  [[nodiscard]] std::string digest() const {
    ContentHash hash;
    auto const add = [&](auto const& values) { hash.add(std::as_bytes(std::span(values))); };
    add(std::vector{state_.position.step});
    for (auto const& [name, file] : files_) {
      add(safetensors_header_text(file.header()));
    }
    for (auto const& parameter : state_.parameters) {
      add(parameter.parts);
    }
    return hash.text();
  }

  /// A step: writes this rank's parts, through \p memory; they are on the disk. Releases each block
  /// of \p hold, if there is one, when the last byte of it was read: first those for which somebody
  /// waits, else in \ref reversed_write_order from the back.
  /// \throws Error like \ref StagedWrites and \ref TensorFile.
  [[nodiscard]] std::string write(BlockHold* hold, StagingMemory& memory) {
    StagedWrites writes(memory);
    auto const parameter = [&](std::size_t i) -> auto& { return state_.parameters[i]; };
    auto rest = reversed_write_order(state_);
    nlohmann::json said{{"sums", nlohmann::json::object()}, {"base", nlohmann::json::object()}};
    while (!rest.empty()) {
      auto const wanted = hold != nullptr ? hold->wanted() : BlockId::none();
      auto const block = wanted.valid() ? wanted : parameter(rest.back()).block;
      auto const written = std::ranges::stable_partition(
          rest, [&](std::size_t i) { return parameter(i).block != block; });
      for (auto const i : written) {
        write(parameter(i), parameters_[i], writes);
        if (parameters_[i].base && i % ranks_ == rank_) {  // ranks take turns
          said["base"][std::to_string(i)] = content_hash(parameter(i).weights.bytes);
        }
      }
      rest.erase(written.begin(), written.end());
      if (hold != nullptr) {
        hold->release(block);
      }
    }
    writes.finish();
    for (auto& [name, file] : files_) {
      said["sums"][std::string(name)] = file.finish();
    }
    return said.dump();
  }

  /// The next step: reads this rank's share of all chunks back, which others may have written.
  /// \throws Error like \ref TensorFile::read_back.
  [[nodiscard]] std::string read_back(StagingMemory& memory) {
    std::size_t chunks = 0;
    for (auto const& [name, file] : files_) {
      chunks += staging_chunks(file.size());
    }
    auto const first = chunks * rank_ / ranks_;
    auto const last = chunks * (rank_ + 1) / ranks_;
    nlohmann::json said{{"sums", nlohmann::json::object()}, {"hashes", nlohmann::json::object()}};
    std::size_t begin = 0;  // the number of a file's first chunk among all
    for (auto& [name, file] : files_) {
      auto const end = begin + staging_chunks(file.size());
      ContentHash whole;
      std::string parts;
      auto const from = std::clamp(first, begin, end) - begin;
      auto const to = std::clamp(last, begin, end) - begin;
      auto const sum = file.read_back(from, to, memory, [&](HostSpan<std::byte const> chunk) {
        if (ranks_ == 1) {
          whole.add(chunk);
        } else {
          parts += content_hash(chunk);
        }
      });
      said["sums"][std::string(name)] = sum;
      said["hashes"][std::string(name)] = ranks_ == 1 ? whole.text() : parts;
      begin = end;
    }
    return said.dump();
  }

  /// Adds what \p said and \p list tell of the files. \p written and \p read: by rank, what \ref
  /// write and \ref read_back said. With several ranks hashes are in parts.
  /// \throws Error (std::errc::io_error) when what was read is not what was written.
  void describe(std::vector<std::string> const& written,
                std::vector<std::string> const& read,
                SnapshotManifest& said,
                HashList& list) {
    std::map<std::string, std::uint64_t> rest;  // of the sums of what was written
    std::map<std::string, std::string> hashes;
    for (auto const& text : written) {
      auto const of_rank = nlohmann::json::parse(text);
      for (auto const& [name, sum] : of_rank["sums"].items()) {
        rest[name] += sum.get<std::uint64_t>();
      }
      for (auto const& [parameter, hash] : of_rank["base"].items()) {
        parameters_.at(std::stoul(parameter)).base->hash = hash.get<std::string>();
      }
    }
    for (auto const& text : read) {
      auto const of_rank = nlohmann::json::parse(text);
      for (auto const& [name, sum] : of_rank["sums"].items()) {
        rest[name] -= sum.get<std::uint64_t>();
        hashes[name] += of_rank["hashes"][name].get<std::string>();
      }
    }
    for (auto const& [key, file] : files_) {
      std::string const name(key);
      if (rest[name] != 0) {
        throw file_error("read back what was written to", file.path(), EIO);
      }
      list[name] =
          ranks_ == 1 ? hashes[name] : content_hash(std::as_bytes(std::span(hashes[name])));
      said.file_bytes[name] = file.size();
    }
    said.parameters = std::move(parameters_);
  }

  /// The bytes that this rank has written.
  [[nodiscard]] Bytes written() const {
    Bytes bytes = 0;
    for (auto const& [name, file] : files_) {
      bytes += file.written();
    }
    return bytes;
  }

 private:
  /// What rank \p rank writes of \p parameter.
  [[nodiscard]] static ElementRange part_of(ParameterState const& parameter, std::size_t rank) {
    return parameter.parts.empty() ? ElementRange{0, parameter.weights.shape.size()}
                                   : parameter.parts[rank];
  }

  /// Calls `f(file, name, tensor, parameter)` with each tensor of the files.
  template <class F>
  void for_each_tensor_of_all(F&& f) const {
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      auto const& parameter = state_.parameters[i];
      for_each_stored_tensor(parameter,
                             parameters_[i],
                             state_.position.is_stale(),
                             [&](auto file, auto const& name, HostTensor const& tensor) {
                               f(file, name, tensor, parameter);
                             });
    }
  }

  void write(ParameterState const& parameter, SnapshotParameter const& said, StagedWrites& writes) {
    auto const first = part_of(parameter, rank_).begin;
    for_each_stored_tensor(parameter,
                           said,
                           state_.position.is_stale(),
                           [&](auto file, auto const& name, HostTensor const& tensor) {
                             files_.at(file).write(
                                 name, first * size_of(tensor.dtype), tensor.bytes, writes);
                           });
  }

  TrainingState const& state_;
  std::size_t rank_;
  std::size_t ranks_;
  std::vector<SnapshotParameter> parameters_;
  std::map<std::string_view, TensorFile> files_;  // by the file's name
};

}  // namespace roundpipe::detail
