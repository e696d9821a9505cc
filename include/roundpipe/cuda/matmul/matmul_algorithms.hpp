// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which of cuBLASLt's algorithms computes which product: chosen once for all devices of a
/// kind, by measurement, and kept in a file where asked for.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/matmul/blas.hpp>
#include <roundpipe/cuda/matmul/matmul_plan.hpp>
#include <roundpipe/cuda/matmul/matmul_timing.hpp>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe::cu {

/// \brief The process's choice of algorithms. Any thread may call any member.
///
/// The first product of a shape asks cuBLASLt for candidates and times them on a stream and in
/// memory of its own; where there is no memory for that, cuBLASLt's first proposal is taken. The
/// choice holds for all devices of the same kind (name, compute capability, multiprocessors), so
/// that a recomputation on another one gives the same bits. Another process may measure otherwise
/// and choose another algorithm, whose sums round differently: \ref save and \ref load carry a
/// choice over, and without measurements (\ref measure) it depends on cuBLASLt's version alone.
///
/// Only algorithms whose sums have a fixed order are candidates; those that split a sum over
/// blocks do so through a workspace, in fp32.
///
/// The first meeting of a shape must not come while a stream of the device waits for the host, if
/// the host cannot go on without the meeting's end: the driver loads a kernel at its first launch,
/// any kernel, and waits for all that the device has begun. So run each layer once with each extent
/// before, or load all kernels at the start of the process (`CUDA_MODULE_LOADING=EAGER`).
class MatmulAlgorithms {
 public:
  static MatmulAlgorithms& instance() {
    static MatmulAlgorithms& algorithms = *new MatmulAlgorithms;  // outlives all threads
    return algorithms;
  }
  MatmulAlgorithms(MatmulAlgorithms const&) = delete;
  MatmulAlgorithms& operator=(MatmulAlgorithms const&) = delete;

  /// Whether shapes met from now on are measured. Default: yes.
  void measure(bool yes) noexcept { measures_ = yes; }
  [[nodiscard]] bool measures() const noexcept { return measures_; }

  /// Lets shapes met from now on have algorithms that need no address to be a multiple of more than
  /// \p bytes. With less than 16 kernels store element by element, not through bulk copies, whose
  /// stores compute-sanitizer's initcheck does not see. Default: 256.
  void limit_alignment(std::uint32_t bytes) noexcept { most_alignment_ = bytes; }

  /// How \p device computes \p problem. A shape that was met costs one look-up; a new one allocates
  /// and waits for its own measurements, but not for streams of the caller's, unless the driver
  /// does, to load kernels.
  /// \throws Error (unsupported) when cuBLASLt has no algorithm for it.
  [[nodiscard]] std::shared_ptr<MatmulPlan const> find(DeviceId device,
                                                       MatmulProblem const& problem) {
    Key const key{kind_of(device), problem};
    if (auto plan = look_up(key)) [[likely]] {
      return plan;
    }
    std::lock_guard const lock(choosing_);
    if (auto plan = look_up(key)) {  // by another thread, meanwhile
      return plan;
    }
    auto plan = std::make_shared<MatmulPlan const>(choose(device, problem));
    std::unique_lock const change(mutex_);
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  /// The number of choices made.
  [[nodiscard]] std::size_t size() const {
    std::shared_lock const lock(mutex_);
    return plans_.size();
  }

  /// Forgets all choices. Results before and after may differ in their last bits.
  void clear() {
    std::unique_lock const lock(mutex_);
    plans_.clear();
  }

  /// Writes all choices to a text file. \throws Error when it cannot be written.
  void save(std::filesystem::path const& path) const {
    std::ofstream file(path);
    file << first_line << "cublaslt " << ::cublasLtGetVersion() << '\n';
    std::scoped_lock const lock(choosing_, mutex_);
    for (auto const& kind : kinds_) {
      file << "device " << kind << '\n';
    }
    for (auto const& [key, plan] : plans_) {
      file << "algorithm " << key.kind << ' ';
      write(file, key.problem);
      file << ' ' << to_hex(plan->algorithm) << '\n';
    }
    file.flush();
    if (!file) {
      throw Error(std::make_error_code(std::errc::io_error),
                  "the choice of matmul algorithms cannot be written to " + path.string());
    }
  }

  /// Takes the choices of a file by \ref save. Call it before the first product: choices that were
  /// made already stay.
  /// \throws Error (unsupported) when the file is of another version of cuBLASLt or of a device
  ///         that is not there, (invalid_argument) when it is none of \ref save, and another when
  ///         it cannot be read; nothing is taken then.
  void load(std::filesystem::path const& path) {
    std::ifstream file(path);
    if (!file) {
      throw Error(std::make_error_code(std::errc::no_such_file_or_directory),
                  "the choice of matmul algorithms cannot be read from " + path.string());
    }
    Reader reader{file, path.string()};
    std::string line;
    if (!std::getline(file, line) || line + '\n' != first_line) {
      reader.fail("is no file of matmul algorithms of this version of roundpipe");
    }
    std::size_t version = 0;
    reader.expect("cublaslt", version);
    if (version != ::cublasLtGetVersion()) {
      throw Error(Errc::unsupported,
                  path.string() + " was made with cuBLASLt " + std::to_string(version) +
                      ", and this is " + std::to_string(::cublasLtGetVersion()) +
                      ": measure again");
    }
    std::vector<DeviceId> devices;  // by the file's number of a kind
    std::vector<std::pair<Key, std::shared_ptr<MatmulPlan const>>> found;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string word;
      words >> word >> std::ws;
      if (word == "device") {
        std::string kind;
        std::getline(words, kind);
        devices.push_back(device_of(kind, path));
      } else if (word == "algorithm") {
        found.push_back(read_choice(words, devices, reader));
      } else if (!line.empty()) {
        reader.fail("has the line '" + line + "'");
      }
    }
    std::unique_lock const change(mutex_);
    for (auto& [key, plan] : found) {
      plans_.emplace(key, std::move(plan));
    }
  }

 private:
  struct Key {
    int kind = 0;
    MatmulProblem problem;
    friend bool operator==(Key const&, Key const&) = default;
  };
  struct Hash {
    std::size_t operator()(Key const& key) const noexcept {
      return hash_of(key.problem) * 31 + static_cast<std::size_t>(key.kind);
    }
  };
  struct Reader {
    std::istream& file;
    std::string name;

    [[noreturn]] void fail(std::string const& what) const {
      throw Error(Errc::invalid_argument, name + ' ' + what);
    }
    void expect(std::string_view word, std::size_t& value) const {
      std::string line;
      std::getline(file, line);
      std::istringstream words(line);
      std::string first;
      if (!(words >> first >> value) || first != word) {
        fail("has no line '" + std::string(word) + "'");
      }
    }
  };

  static constexpr char const* first_line = "roundpipe matmul algorithms 1\n";
  static constexpr std::string_view digits = "0123456789abcdef";

  MatmulAlgorithms() = default;

  [[nodiscard]] std::shared_ptr<MatmulPlan const> look_up(Key const& key) const {
    std::shared_lock const lock(mutex_);
    auto const place = plans_.find(key);
    return place == plans_.end() ? nullptr : place->second;
  }

  /// What tells devices apart that do not compute alike, in words.
  [[nodiscard]] static std::string describe(DeviceId device) {
    ::cudaDeviceProp properties{};
    check(::cudaGetDeviceProperties(&properties, device.value()), "cudaGetDeviceProperties");
    return std::to_string(compute_capability(device)) + ' ' +
           std::to_string(properties.multiProcessorCount) + ' ' + properties.name;
  }

  /// The number of \p device's kind.
  [[nodiscard]] int kind_of(DeviceId device) {
    require(device.valid() && device.index() < max_devices,
            Errc::invalid_argument,
            "a device's number is negative or above 63");
    auto& known = kind_of_device_[device.index()];
    if (int const kind = known.load(std::memory_order_acquire); kind != 0) [[likely]] {
      return kind - 1;
    }
    auto const words = describe(device);
    std::lock_guard const lock(choosing_);
    std::size_t kind = 0;
    while (kind < kinds_.size() && kinds_[kind] != words) {
      ++kind;
    }
    if (kind == kinds_.size()) {
      kinds_.push_back(words);
    }
    known.store(static_cast<int>(kind) + 1, std::memory_order_release);
    return static_cast<int>(kind);
  }

  [[nodiscard]] static DeviceId device_of(std::string const& kind,
                                          std::filesystem::path const& path) {
    auto const count = device_count();
    std::string here;
    for (std::size_t i = 0; i < count; ++i) {
      auto const words = describe(DeviceId(i));
      if (words == kind) {
        return DeviceId(i);
      }
      here += (i == 0 ? "'" : ", '") + words + '\'';
    }
    throw Error(Errc::unsupported,
                path.string() + " was made for the device '" + kind + "', and here are " + here +
                    ": measure again");
  }

  [[nodiscard]] MatmulPlan choose(DeviceId device, MatmulProblem const& problem) const {
    CurrentDevice const current(device);
    auto plan = unchosen_plan(problem);
    auto const found = detail::propose(blas_handle(device), plan, problem, most_alignment_);
    plan.algorithm = found.front();
    if (measures_ && found.size() > 1) {
      plan.algorithm = detail::fastest(blas_handle(device), plan, problem, found);
    }
    return plan;
  }

  [[nodiscard]] std::pair<Key, std::shared_ptr<MatmulPlan const>> read_choice(
      std::istream& words, std::vector<DeviceId> const& devices, Reader const& reader) {
    std::size_t kind = 0;
    MatmulProblem problem;
    std::string hex;
    if (!(words >> kind) || kind >= devices.size() || !read(words, problem) || !(words >> hex)) {
      reader.fail("has a broken line of an algorithm");
    }
    auto plan = unchosen_plan(problem);
    if (!from_hex(hex, plan.algorithm)) {
      reader.fail("has a broken algorithm");
    }
    CurrentDevice const current(devices[kind]);
    if (!detail::runs(blas_handle(devices[kind]), plan)) {
      reader.fail("has an algorithm that cuBLASLt does not take for " + to_string(problem));
    }
    return {Key{kind_of(devices[kind]), problem}, std::make_shared<MatmulPlan const>(plan)};
  }

  [[nodiscard]] static std::string to_hex(::cublasLtMatmulAlgo_t const& algorithm) {
    std::string text;
    for (std::uint64_t const word : algorithm.data) {
      for (int shift = 60; shift >= 0; shift -= 4) {
        text += digits[(word >> shift) & 15U];
      }
    }
    return text;
  }
  [[nodiscard]] static bool from_hex(std::string_view text, ::cublasLtMatmulAlgo_t& algorithm) {
    bool good = text.size() == 16 * std::size(algorithm.data);
    for (std::size_t i = 0; good && i < std::size(algorithm.data); ++i) {
      auto const* const first = text.data() + 16 * i;
      auto const [end, status] = std::from_chars(first, first + 16, algorithm.data[i], 16);
      good = status == std::errc{} && end == first + 16;
    }
    return good;
  }

  std::atomic<bool> measures_ = true;
  std::atomic<std::uint32_t> most_alignment_ = 256;
  std::array<std::atomic<int>, max_devices> kind_of_device_{};  ///< Plus 1; 0: not known yet.
  mutable std::mutex choosing_;                                 ///< One measurement at a time.
  std::vector<std::string> kinds_;                              ///< Guarded by choosing_.
  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<MatmulPlan const>, Hash> plans_;  ///< By mutex_.
};

}  // namespace roundpipe::cu
