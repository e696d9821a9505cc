// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// interop.parity FOLDER TOLERANCE: reads the checkpoint in FOLDER, and the adapters in
// FOLDER/adapter if there are any, computes what parity.py, or adapters.py, has computed with
// transformers and peft and written to FOLDER/expected.safetensors, and compares. Writes the
// trained weights to FOLDER/trained, with adapters merged, and these alone to
// FOLDER/trained_adapter. Exit status 1: something differs by more than TOLERANCE.

#include <roundpipe/architectures/adapter_config.hpp>
#include <roundpipe/architectures/adapter_weights.hpp>
#include <roundpipe/architectures/checkpoint_weights.hpp>
#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/io/checkpoint_folder.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <roundpipe/io/stored_tensor.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace roundpipe;
using Model = decltype(nn::transformer<nn::HostOps<float>>({}));
using Trainer = SerialTrainer<Model, AdamW>;

void demand(bool good, std::string const& otherwise) {
  if (!good) {
    throw Error(Errc::invalid_argument, otherwise);
  }
}

template <class T>
std::vector<T> values_of(StoredTensor const& tensor) {
  demand(tensor.info().type() == dtype_of<T>, tensor.info().name + " is of another type");
  std::vector<T> values(tensor.info().size());
  std::memcpy(values.data(), tensor.bytes().data(), values.size() * sizeof(T));
  return values;
}

/// The norm of the difference over that of \p expected; NaN where any value is NaN.
double relative_error(std::span<float const> values, std::span<float const> expected) {
  demand(values.size() == expected.size(), "sizes differ");
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const d = static_cast<double>(values[i]) - static_cast<double>(expected[i]);
    difference += d * d;
    norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(difference / norm);
}

std::vector<float> less(std::vector<float> values, std::vector<float> const& others) {
  std::transform(values.begin(), values.end(), others.begin(), values.begin(), std::minus<>());
  return values;
}

/// Keeps the largest error of each kind, and whether any was too large.
class Comparison {
 public:
  explicit Comparison(double tolerance) : tolerance_(tolerance) {}

  /// \param allowance A multiple of the tolerance.
  void add(std::string const& kind, std::string const& name, double error, double allowance = 1) {
    auto& largest = largest_[kind];
    largest = std::max(largest, error);
    if (!(error <= allowance * tolerance_)) {
      good_ = false;
      std::printf("  %s of %s differs by %.2e\n", kind.c_str(), name.c_str(), error);
    }
  }
  /// Prints the largest errors. \returns whether all were small.
  bool report() const {
    for (auto const& [kind, error] : largest_) {
      std::printf("  %s: %.1e", kind.c_str(), error);
    }
    std::printf("\n");
    return good_;
  }

 private:
  double tolerance_;
  bool good_ = true;
  std::map<std::string, double> largest_;
};

/// A batch of rows, and what transformers made of it.
class Expected {
 public:
  explicit Expected(std::filesystem::path const& path)
      : file_(path),
        tokens_(values_of<std::int32_t>(file_.at("tokens"))),
        labels_(values_of<std::int32_t>(file_.at("labels"))),
        shape_{file_.at("tokens").info().extents.at(0), file_.at("tokens").info().extents.at(1)} {
    // A label is the token that its own position must predict, in transformers the next one.
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      bool const last = (i + 1) % static_cast<std::size_t>(shape_.length) == 0;
      labels_[i] = last ? -100 : labels_[i + 1];
    }
  }

  [[nodiscard]] BatchShape shape() const { return shape_; }
  [[nodiscard]] Batch batch() const {
    return Batch(1, shape_).set("tokens", tokens_).set("labels", labels_);
  }
  [[nodiscard]] std::vector<float> values(std::string const& name) const {
    return values_of<float>(file_.at(name));
  }
  /// The first \p length tokens of each row.
  [[nodiscard]] std::vector<std::int32_t> prefixes(std::int64_t length) const {
    std::vector<std::int32_t> tokens;
    for (std::int64_t row = 0; row < shape_.rows; ++row) {
      auto const first = tokens_.begin() + row * shape_.length;
      tokens.insert(tokens.end(), first, first + length);
    }
    return tokens;
  }

 private:
  SafetensorsFile file_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> labels_;
  BatchShape shape_;
};

/// Every tensor of the checkpoint must be one of the model's, and the other way round.
void load(CheckpointFolder const& checkpoint,
          TensorNames const& names,
          Trainer& trainer,
          WorkerPool& pool) {
  for (auto const& tensor : checkpoint.tensors()) {
    auto const& name = tensor.info().name;
    demand(names.ours(name).has_value() || names.is_copy(name), "the model has no tensor " + name);
  }
  std::size_t parameters = 0;
  trainer.for_each_parameter([&](std::string const& name, auto const&, auto const&) {
    parameters += nn::is_lora_parameter(name) ? 0 : 1;
  });
  demand(parameters == names.pairs().size(), "a parameter has no name");
  load_weights(trainer, names, checkpoint, pool);
}

/// A parameter that is trained.
struct Trained {
  std::string theirs;
  std::vector<float> before;
};

/// All of them, by our names.
std::map<std::string, Trained> trained_parameters(TensorNames const& names, Trainer& trainer) {
  std::map<std::string, Trained> result;
  trainer.for_each_parameter([&](std::string const& name, auto const&, auto const& values) {
    bool const adapts = nn::is_lora_parameter(name);
    if (adapts || names.lora().rank == 0) {
      result[name] = {adapts ? names.peft_name(name) : names.theirs(name),
                      {values.begin(), values.end()}};
    }
  });
  return result;
}

/// The library's head tells the logits of each row's last position: so position by position, the
/// rows end there.
void compare_logits(Expected const& expected, Trainer& trainer, Comparison& comparison) {
  auto const logits = expected.values("logits");
  auto const shape = expected.shape();
  auto const vocabulary = logits.size() / static_cast<std::size_t>(shape.positions());
  for (std::int64_t length = 1; length <= shape.length; ++length) {
    auto const tokens = expected.prefixes(length);
    auto const evaluation = trainer.evaluate(
        Batch(1, {shape.rows, length}).set("tokens", tokens).set("labels", tokens));
    auto const last = evaluation.result<float>(0, 0);
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      auto const at = static_cast<std::size_t>(row * shape.length + length - 1) * vocabulary;
      comparison.add(
          "logits",
          "position " + std::to_string(length - 1),
          relative_error(std::span<float const>(last.data(), last.size())
                             .subspan(static_cast<std::size_t>(row) * vocabulary, vocabulary),
                         std::span(logits).subspan(at, vocabulary)));
    }
  }
}

bool run(std::filesystem::path const& folder, double tolerance) {
  auto config = read_model_config(folder);
  bool const adapts = std::filesystem::exists(folder / "adapter");
  if (adapts) {
    config.transformer.lora = read_adapter_config(folder / "adapter", TensorNames(config)).lora;
  }
  TensorNames const names(config);
  CheckpointFolder const checkpoint(folder);
  Expected const expected(folder / "expected.safetensors");
  WorkerPool pool(2);
  AdamWOptions const optimizer{.rate = LearningRate::constant(1e-3),
                               .beta1 = 0.9,
                               .beta2 = 0.95,
                               .epsilon = 1e-6,
                               .weight_decay = 0.1};
  Trainer trainer(nn::transformer<nn::HostOps<float>>(config.transformer),
                  AdamW(optimizer),
                  SerialOptions{.capacity = expected.shape()});
  load(checkpoint, names, trainer, pool);
  if (adapts) {
    load_adapter(trainer, names, folder / "adapter", pool);
  }
  auto const trained = trained_parameters(names, trainer);

  Comparison comparison(tolerance);
  compare_logits(expected, trainer, comparison);
  auto const batch = expected.batch();
  auto const losses = expected.values("losses");
  for (std::size_t step = 0; step < losses.size(); ++step) {
    auto const loss = trainer.forward_backward(batch);
    comparison.add("loss",
                   "step " + std::to_string(step),
                   std::abs(loss - static_cast<double>(losses[step])) /
                       std::abs(static_cast<double>(losses[step])));
    for (auto const& [ours, parameter] : trained) {
      if (step == 0) {
        auto const gradient = expected.values("gradient." + parameter.theirs);
        std::vector<float> values(gradient.size());
        trainer.read_gradient(ours, values);
        comparison.add("gradient", parameter.theirs, relative_error(values, gradient));
      }
    }
    trainer.step();
  }
  for (auto const& [ours, parameter] : trained) {
    auto const& [theirs, before] = parameter;
    auto const weights = expected.values("trained." + theirs);
    std::vector<float> values(weights.size());
    trainer.read_parameter(ours, values);
    comparison.add("weights", theirs, relative_error(values, weights));
    // What the steps have changed. Elements whose gradient is nearly 0 move by an uncertain part of
    // the rate, so this is far less exact, and still tells a wrong gradient from a right one.
    comparison.add(
        "changes", theirs, relative_error(less(values, before), less(weights, before)), 100);
  }

  save_weights(
      trainer, names, folder / "trained", {.type = DType::f32, .source = &checkpoint}, pool);
  if (adapts) {
    save_adapter(trainer, names, folder / "trained_adapter", {.base_model = folder.string()}, pool);
  }
  std::ofstream(folder / "trained" / "loss.txt")
      << std::setprecision(9) << trainer.evaluate(batch).loss << "\n";
  return comparison.report();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s FOLDER TOLERANCE\n", arguments[0]);
    return 2;
  }
  try {
    return run(arguments[1], std::strtod(arguments[2], nullptr)) ? 0 : 1;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
