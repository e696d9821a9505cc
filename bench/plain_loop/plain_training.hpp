// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Training in a plain loop on one device that holds everything.

#include <plain_loop/resident_passes.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/actions/parameter_updater.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>
#include <roundpipe/runtime/state/first_values.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/system/cpu_plan.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <future>
#include <numeric>
#include <vector>

namespace plain_loop {

/// What happens to gradients, beside the next iteration.
struct Beside {
  bool copies = true;      ///< They go to the host, rounded to bf16, and weights come up.
  bool optimizer = false;  ///< In between the host updates the weights; takes the copies.
};

/// \brief Trains \p Model, whose parameters are all bf16 and trained, on device 0 of \p B.
///
/// A micro-batch runs forward through all layers, which save what their backward needs, and then
/// backward. Gradients add up in fp32 on the device over the micro-batches of an iteration and the
/// uses of a parameter. Iteration T+2 computes with the weights of step T (staleness 1). Nothing
/// that a pipeline would wait for is in the way: there are two copies of the weights on the device,
/// one to compute with, one to fill; and two gradients on the host.
template <class Model, rp::Backend B>
class PlainTraining {
 public:
  /// Takes all memory and sets first values. \p model and \p backend must outlive this.
  /// \throws roundpipe::Error (unsupported) for parameters of another type, or frozen ones.
  PlainTraining(Model const& model,
                B& backend,
                rp::BatchShape shape,
                std::size_t micro_batches,
                Beside beside)
      : model_(model),
        backend_(backend),
        facts_(rp::describe(model, shape)),
        layout_(rp::lay_out_batch(facts_)),
        blocks_(blocks_of(facts_)),
        micro_batches_(micro_batches),
        beside_(beside),
        cpus_(rp::plan_cpus(rp::usable_cpus(), 1, 0)),
        pool_(cpus_.optimizer_threads, cpus_.optimizer),
        arena_(backend),
        memory_(blocks_, copies_of(beside), rp::LandingRings(blocks_), arena_.taker()),
        progress_(blocks_),
        updater_(memory_, progress_, rp::AdamW{}, arena_.taker(), rp::UpdaterOptions{}, pool_),
        device_memory_(backend, device),
        passes_(model, facts_, layout_, blocks_, device_memory_),
        compute_(backend.make_stream(device, rp::LaneKind::compute)),
        up_(backend.make_stream(device, rp::LaneKind::parameter_up)),
        down_(backend.make_stream(device, rp::LaneKind::gradient_down)),
        uploaded_(backend.make_event(device)),
        rounded_(backend.make_event(device)),
        downloaded_{backend.make_event(device), backend.make_event(device)} {
    take_memory();
    rp::set_first_values(memory_, 0, pool_);
    for (std::size_t copy = 0; copy < weights_.size(); ++copy) {
      upload(copy);
    }
    up_.record(uploaded_);
  }
  PlainTraining(PlainTraining const&) = delete;
  PlainTraining& operator=(PlainTraining const&) = delete;

  [[nodiscard]] std::size_t parameter_count() const { return blocks_.parameter_count(); }

  /// Enqueues one iteration. Copies \p batch; returns while the device works, but not before the
  /// last iteration but one has ended.
  void iterate(rp::Batch const& batch) {
    auto const iteration = ends_.size() + 1;
    if (iteration > 2) {
      ends_[iteration - 3].wait();  // its slot is used again
    }
    if (settling_.valid()) {
      settling_.get();
    }
    compute_.wait(uploaded_);
    if (beside_.copies && iteration > 1) {
      settling_ = std::async(std::launch::async, [this, step = iteration - 1] { settle(step); });
    }
    compute(batch, iteration);
    if (beside_.copies) {
      download(iteration);
    }
    ends_.push_back(backend_.make_event(device));
    compute_.record(ends_.back());
  }

  /// Waits for all iterations. \returns the loss of the last one.
  [[nodiscard]] double finish() {
    if (settling_.valid()) {
      settling_.get();
    }
    ends_.back().wait();
    down_.synchronize();
    up_.synchronize();
    auto const* const first = reinterpret_cast<double const*>(losses_[ends_.size() % 2].data());
    return std::accumulate(first, first + micro_batches_, 0.0);
  }

  /// After \ref finish: the seconds from the end of the iteration before to that of iteration
  /// \p iteration, from 2.
  [[nodiscard]] double seconds(std::size_t iteration) const {
    return ends_[iteration - 1].seconds_since(ends_[iteration - 2]);
  }

  /// After \ref finish: calls `f(name, shape, weights)` with every tensor, shared ones once, as the
  /// last step left it. The step of the last iteration never comes.
  template <class F>
  void for_each_parameter(F&& f) const {
    blocks_.for_each([&](rp::BlockTensor parameter) {
      memory_.with_weights(parameter.block,
                           parameter.tensor,
                           progress_.finished_steps(),
                           [&](rp::HostSpan<float const> values) {
                             f(blocks_.name_of(parameter), blocks_.tensor(parameter).shape, values);
                           });
    });
  }

 private:
  using Stream = typename B::Stream;
  using Event = typename B::Event;

  inline static rp::DeviceId const device{0};

  [[nodiscard]] static rp::ParameterBlocks blocks_of(rp::ModelDescription const& facts) {
    auto blocks = rp::form_blocks(facts);
    for (auto& block : blocks.blocks) {
      block.sums_gradient = false;  // the device has summed it over uses
      rp::require(!block.frozen && std::ranges::all_of(block.master,
                                                       [](auto const& spec) {
                                                         return spec.dtype == rp::DType::bf16;
                                                       }),
                  rp::Errc::unsupported,
                  "the plain loop trains all parameters, in bf16");
    }
    return blocks;
  }

  [[nodiscard]] static rp::ParameterCopies copies_of(Beside const& beside) {
    rp::ParameterCopies copies{.master_copies = 2, .gradient_buffers = 2};
    if (beside.optimizer) {
      copies.state_arrays = rp::AdamW{}.state_arrays();
    } else {
      copies.state_type = rp::StateType::declared;  // no fp32 weights either
    }
    return copies;
  }

  void take_memory() {
    for (auto const& block : blocks_.blocks) {
      for (auto& copy : weights_) {
        copy.push_back(device_memory_.take(block.master.bytes()));
      }
      gradients_.push_back(device_memory_.take(block.gradient.bytes()));
      rounded_gradients_.push_back(device_memory_.take(beside_.copies ? block.master.bytes() : 0));
    }
    auto const loss_bytes = micro_batches_ * sizeof(double);
    device_losses_ = device_memory_.take(loss_bytes);
    for (std::size_t slot = 0; slot < staged_.size(); ++slot) {
      staged_[slot] = arena_.take(micro_batches_ * layout_.tensors.bytes());
      losses_[slot] = arena_.take(loss_bytes);
    }
  }

  /// Enqueues all passes of an iteration.
  void compute(rp::Batch const& batch, std::size_t iteration) {
    auto const slot = iteration % 2;
    auto const slices =
        rp::slice_batch(batch, [&](rp::BatchShape) -> rp::BatchLayout const& { return layout_; });
    rp::LayerCall call;
    call.shape = facts_.capacity;
    call.random.step = static_cast<std::uint32_t>(iteration - 1);
    call.gradient_scale =
        rp::gradient_scale_of(rp::count_loss_terms(model_, batch, layout_, slices));
    auto* const losses = reinterpret_cast<double*>(device_losses_.device_pointer());
    for (auto const& gradient : gradients_) {
      compute_.fill(gradient, std::byte{0});
    }
    for (std::size_t m = 0; m < micro_batches_; ++m) {
      auto const bytes = layout_.tensors.bytes();
      auto const staged = staged_[slot].subspan(m * bytes, bytes);
      rp::stage_tensors(slices[m], layout_.tensors, staged);
      call.random.micro_batch = static_cast<std::uint32_t>(m);
      passes_.enqueue(
          compute_,
          MicroBatch{
              call, staged, weights_[slot], gradients_, rp::DeviceSpan<double>(losses + m, 1)});
    }
    compute_.copy(losses_[slot], device_losses_);
  }

  /// Rounds the gradients of an iteration, and enqueues their way to the host beside the next one.
  void download(std::size_t iteration) {
    compute_.wait(downloaded_[(iteration - 1) % 2]);  // the rounded ones of before are gone
    for (std::size_t b = 0; b < gradients_.size(); ++b) {
      auto const& block = blocks_.blocks[b];
      for (std::size_t t = 0; t < block.master.size(); ++t) {
        compute_.round(view(block.master, t, rounded_gradients_[b]).template as<rp::BFloat16>(),
                       view(block.gradient, t, gradients_[b]).template as<float>());
      }
    }
    compute_.record(rounded_);
    down_.wait(rounded_);
    for (std::size_t b = 0; b < gradients_.size(); ++b) {
      down_.copy(memory_.landing(blocks_.blocks[b].uses.front(), rp::RoundId(0), iteration),
                 rounded_gradients_[b]);
    }
    down_.record(downloaded_[iteration % 2]);
  }

  /// Beside iteration \p step + 1, once the gradients of iteration \p step are down: step \p step,
  /// and the way of its weights to the device, in place of those that iteration \p step has used.
  void settle(std::uint64_t step) {
    downloaded_[step % 2].wait();
    for (std::size_t b = 0; beside_.optimizer && b < blocks_.blocks.size(); ++b) {
      updater_.update(rp::BlockId(b), step, 1);
    }
    upload(step);
    up_.record(uploaded_);
  }

  /// Enqueues the copies of the weights of \p version, for iteration \p version + 2.
  void upload(std::uint64_t version) {
    for (std::size_t b = 0; b < blocks_.blocks.size(); ++b) {
      rp::HostSpan<std::byte const> const master = memory_.master(rp::BlockId(b), version);
      up_.copy(weights_[version % 2][b], master);
    }
  }

  Model const& model_;
  B& backend_;
  rp::ModelDescription facts_;
  rp::BatchLayout layout_;
  rp::ParameterBlocks blocks_;
  std::size_t micro_batches_;
  Beside beside_;

  rp::CpuPlan cpus_;
  rp::WorkerPool pool_;
  rp::HostArena<B> arena_;
  rp::ParameterMemory memory_;
  rp::StepProgress progress_;
  rp::ParameterUpdater<rp::AdamW> updater_;

  DeviceMemory<B> device_memory_;
  ResidentPasses<Model, Stream> passes_;
  std::array<std::vector<rp::DeviceBytes>, 2> weights_;  // by iteration modulo 2, by block
  std::vector<rp::DeviceBytes> gradients_;               // fp32; by block
  std::vector<rp::DeviceBytes> rounded_gradients_;       // by block
  rp::DeviceBytes device_losses_;                        // by micro-batch
  std::array<rp::HostBytes, 2> staged_;                  // batches, by iteration modulo 2
  std::array<rp::HostBytes, 2> losses_;                  // by iteration modulo 2

  Stream compute_;
  Stream up_;
  Stream down_;
  Event uploaded_;                   // the weights of the next iteration
  Event rounded_;                    // the gradients of the last iteration
  std::array<Event, 2> downloaded_;  // by iteration modulo 2
  std::vector<Event> ends_;          // by iteration, from 1
  std::future<void> settling_;       // last: it uses all of the above
};

}  // namespace plain_loop
