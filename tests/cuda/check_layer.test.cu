// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// check_layer finds planted bugs of kernels, and says the same of them as on the host.

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/testing/check_layer.hpp>
#include <support/cuda_resources.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace roundpipe;
using Stream = cu::CudaBackend::Stream;

enum class Bug {
  none,
  wrong_input_gradient,
  wrong_last_parameter_gradient,
  overwrites_parameter_gradient,
  adds_to_input_gradient,
  writes_behind_output,
  writes_behind_saved,
  writes_before_workspace,
  writes_input,
  writes_parameter,
  writes_output_gradient,
  writes_saved,
  last_output_unwritten,
  last_input_gradient_unwritten,
  reads_unwritten_workspace,
  differs_each_time,
  ignores_extents,
  saving_differs,
  wrong_replay,
  replay_changes_level,
};

constexpr std::size_t size_at_capacity = 24;

struct Forward {
  TensorView<float> t;
  TensorView<float> slope;  // empty: the forward does not save
  TensorView<float const> x;
  TensorView<float const> gain;
  TensorView<float const> shift;
  TensorView<float> y;
  std::size_t found_level;
};

struct Backward {
  TensorView<float> slope;
  TensorView<float> dz;
  TensorView<float const> x;
  TensorView<float const> gain;
  TensorView<float const> dy;
  TensorView<float> dx;
  TensorView<float> dgain;
};

__device__ int runs = 0;

__global__ void planted_forward(Forward f, Bug bug) {  // one thread
  auto const size = bug == Bug::ignores_extents ? size_at_capacity : f.y.size();
  for (std::size_t i = 0; i < size; ++i) {
    auto const from = i % f.x.size();
    if (f.found_level == 0) {
      f.t[from] = tanhf(f.gain[i % f.gain.size()] * f.x[from]);
    } else if (bug == Bug::replay_changes_level) {
      f.t[from] *= 2;
    }
    if (!f.slope.empty()) {
      auto const wrong = bug == Bug::wrong_replay && f.found_level == 1;
      f.slope[from] = wrong ? 1 - f.t[from] : 1 - f.t[from] * f.t[from];
    }
    if (i + 1 < size || bug != Bug::last_output_unwritten) {
      f.y.data()[i] = f.t[from] + f.shift[i % f.shift.size()];
    }
  }
  if (bug == Bug::writes_behind_output) {
    f.y.data()[f.y.size()] = 1;
  }
  if (bug == Bug::writes_behind_saved && !f.slope.empty()) {
    f.slope.data()[f.slope.size() + 40] = 1;
  }
  if (bug == Bug::differs_each_time) {
    f.y[0] += static_cast<float>(++runs);
  }
  if (bug == Bug::saving_differs && !f.slope.empty()) {
    f.y[2] += 1;
  }
  if (bug == Bug::writes_input) {
    const_cast<float&>(f.x[3]) = 0;
  }
}

__global__ void planted_backward(Backward b, Bug bug) {  // one thread
  auto const last = b.x.size() - 1;
  if (bug == Bug::overwrites_parameter_gradient) {
    for (std::size_t j = 0; j < b.dgain.size(); ++j) {
      b.dgain[j] = 0;
    }
  }
  for (std::size_t i = 0; i <= last; ++i) {
    if (bug != Bug::reads_unwritten_workspace) {
      b.dz[i] = b.dy[i] * b.slope[i];
    }
    auto const j = i % b.gain.size();
    auto const factor = bug == Bug::wrong_last_parameter_gradient && j == 3 ? 2.0F : 1.0F;
    b.dgain[j] += b.dz[i] * b.x[i] * factor;
    if (i < last || bug != Bug::last_input_gradient_unwritten) {
      auto const gradient = bug == Bug::wrong_input_gradient ? b.dz[i] : b.dz[i] * b.gain[j];
      b.dx[i] = bug == Bug::adds_to_input_gradient ? b.dx[i] + gradient : gradient;
    }
  }
  if (bug == Bug::writes_before_workspace) {
    *(b.dz.data() - 1) = 1;
  }
  if (bug == Bug::writes_parameter) {
    const_cast<float&>(b.gain[1]) = 0;
  }
  if (bug == Bug::writes_output_gradient) {
    const_cast<float&>(b.dy[1]) = 0;
  }
  if (bug == Bug::writes_saved) {
    b.slope[0] = 3;
  }
}

/// y = tanh(gain x) + shift, where shift is frozen. It saves the hyperbolic tangent, then its
/// slope, a level each.
struct Planted {
  Bug bug = Bug::none;

  static constexpr std::int64_t width = 4;

  std::string name() const { return "planted"; }
  ParameterTable parameters() const {
    return {{{"gain", {width}}, Initial::ones(), DecayGroup::exempt},
            {{"shift", {width}}, Initial::zeros(), DecayGroup::exempt, {}, true}};
  }
  TensorTable input(BatchShape s) const { return {{"x", extents(s)}}; }
  TensorTable boundary(BatchShape s) const { return {{"y", extents(s)}}; }
  Footprint footprint(BatchShape s) const {
    auto const bytes = align_up(4 * extents(s).size());
    return {2 * bytes, bytes};
  }
  std::vector<Bytes> save_levels(BatchShape s) const {
    auto const saved = footprint(s).saved_bytes;
    return {saved / 2, saved};
  }

  void forward(ForwardContext<Stream>& ctx) const {
    auto saved = ctx.saved();
    auto workspace = ctx.workspace();
    Forward f;
    f.t = (ctx.saving() ? saved : workspace).take<float>(extents(ctx.shape()));
    if (ctx.saving()) {
      f.slope = saved.take<float>(extents(ctx.shape()));
    }
    f.x = ctx.input<float>("x");
    f.gain = ctx.parameter<float>("gain");
    f.shift = ctx.parameter<float>("shift");
    f.y = ctx.output<float>("y");
    f.found_level = ctx.found_level();
    planted_forward<<<1, 1, 0, ctx.stream().get()>>>(f, bug);
    cu::check(cudaGetLastError(), "planted_forward");
  }

  void backward(BackwardContext<Stream>& ctx) const {
    auto saved = ctx.saved();
    (void)saved.take<float>(extents(ctx.shape()));
    Backward b;
    b.slope = saved.take<float>(extents(ctx.shape()));
    b.dz = ctx.workspace().take<float>(extents(ctx.shape()));
    b.x = ctx.input<float>("x");
    b.gain = ctx.parameter<float>("gain");
    b.dy = ctx.output_gradient<float>("y");
    b.dx = ctx.input_gradient<float>("x");
    b.dgain = ctx.parameter_gradient<float>("gain");
    planted_backward<<<1, 1, 0, ctx.stream().get()>>>(b, bug);
    cu::check(cudaGetLastError(), "planted_backward");
  }

 private:
  static Shape extents(BatchShape s) { return {s.rows, s.length, width}; }
};

std::vector<std::string> findings_of(Bug bug) {
  cu::CudaBackend backend(cu::CudaBackendOptions{.devices = {DeviceId(0)},
                                                 .device_memory_bytes = 16_MiB,
                                                 .resources = test::shared_resources()});
  return testing::check_layer(Planted{bug}, backend);
}

}  // namespace

TEST_CASE("a sound layer of kernels passes") {
  CHECK(findings_of(Bug::none) == std::vector<std::string>{});
}

TEST_CASE("planted bugs of kernels are found and named") {
  struct Case {
    Bug bug;
    char const* finding;
  };
  Case const cases[] = {
      {Bug::wrong_input_gradient, "input gradient 'x'[0] is "},
      {Bug::wrong_last_parameter_gradient, "parameter gradient 'gain'[3] is "},
      {Bug::overwrites_parameter_gradient,
       "backward does not add to parameter gradient 'gain'[0]: "},
      {Bug::adds_to_input_gradient,
       "backward does not overwrite input gradient 'x'[0]: it depends on what was there before"},
      {Bug::writes_behind_output,
       "forward writes outside its buffers, 0 bytes behind the end of output 'y'"},
      {Bug::writes_behind_saved,
       "saving forward writes outside its buffers, 0 bytes behind the end of saved memory"},
      {Bug::writes_before_workspace,
       "backward writes outside its buffers, 4 bytes before workspace"},
      {Bug::writes_input, "forward writes to input 'x'[3], which it may only read"},
      {Bug::writes_parameter, "backward writes to parameter 'gain'[1], which it may only read"},
      {Bug::writes_output_gradient,
       "backward writes to output gradient 'y'[1], which it may only read"},
      {Bug::writes_saved, "backward writes to saved memory[256], which it may only read"},
      {Bug::last_output_unwritten, "forward does not write output 'y'[23]"},
      {Bug::last_input_gradient_unwritten,
       "backward does not overwrite input gradient 'x'[23]: it depends on what was there before"},
      {Bug::reads_unwritten_workspace,
       "backward: input gradient 'x'[0] depends on memory that no pass has written"},
      {Bug::differs_each_time, "two runs of the forward: output 'y'[0] is "},
      {Bug::ignores_extents,
       "at the smaller extents, forward writes outside its buffers, 0 bytes behind the end of "
       "output 'y'"},
      {Bug::saving_differs, "saving forward: output 'y'[2] is "},
      {Bug::wrong_replay, "backward behind a replay from save level 1: input gradient 'x'[0] is "},
      {Bug::replay_changes_level, "replay from save level 1: output 'y'[0] is "},
  };
  for (auto const& c : cases) {
    CAPTURE(static_cast<int>(c.bug));
    auto const findings = findings_of(c.bug);
    REQUIRE(!findings.empty());
    std::string const text = c.finding;
    CHECK(findings.front().substr(0, text.size()) == text);
  }
}
