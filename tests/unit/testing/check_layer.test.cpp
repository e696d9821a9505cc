// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/testing/check_layer.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/language_model_head.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_block.hpp>
#include <support/error_of.hpp>
#include <support/toy_layers.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace check_layer_test {

namespace {

using namespace roundpipe;
using testing::check_layer;
using testing::LayerCheckOptions;

enum class Bug {
  none,
  wrong_input_gradient,
  wrong_last_parameter_gradient,
  overwrites_parameter_gradient,
  adds_to_input_gradient,
  writes_behind_output,
  writes_behind_saved,
  writes_before_workspace,
  takes_too_much,
  differs_each_time,
  ignores_extents,
  grows_at_smaller_extents,
  type_depends_on_extents,
  levels_depend_on_extents,
  finds_frozen_gradient_behind_other,
  writes_input,
  writes_parameter,
  writes_output_gradient,
  writes_saved,
  wrong_replay,
  replay_changes_level,
  takes_saved_for_one_piece,
  last_output_unwritten,
  last_input_gradient_unwritten,
  reads_unwritten_workspace,
  saving_differs,
  denies_reading_parameters,
  asks_for_second_input,
  throws_later,
};

/// y = tanh(gain x) + shift, where shift is frozen. It saves the hyperbolic tangent, then its
/// slope, a level each.
struct Planted {
  Bug bug = Bug::none;
  std::int64_t width = 4;
  std::size_t size_at_capacity = 24;

  std::string name() const { return "planted"; }
  ParameterTable parameters() const {
    return {{{"gain", {width}}, Initial::ones(), DecayGroup::exempt},
            {{"shift", {width}}, Initial::zeros(), DecayGroup::exempt, {}, true}};
  }
  bool backward_reads_parameters() const { return bug != Bug::denies_reading_parameters; }
  TensorTable input(BatchShape s) const { return {{"x", extents(s)}}; }
  TensorTable boundary(BatchShape s) const {
    auto const other = bug == Bug::type_depends_on_extents && s.rows == 1;
    return {{"y", extents(s), other ? DType::i32 : DType::f32}};
  }
  Footprint footprint(BatchShape s) const {
    auto const bytes = align_up(4 * extents(s).size());
    auto const grows = bug == Bug::grows_at_smaller_extents && s.rows == 1;
    return {2 * bytes, bytes + (grows ? 256 : 0)};
  }
  std::vector<Bytes> save_levels(BatchShape s) const {
    auto const saved = footprint(s).saved_bytes;
    if (bug == Bug::levels_depend_on_extents && s.rows == 1) {
      return {saved};
    }
    return {saved / 2, saved};
  }

  void forward(ForwardContext<HostStream>& ctx) const {
    auto saved = ctx.saved();
    auto workspace = ctx.workspace();
    auto const t = (ctx.saving() ? saved : workspace).take<float>(extents(ctx.shape()));
    auto const slope = ctx.saving() ? saved.take<float>(extents(ctx.shape())) : TensorView<float>{};
    if (ctx.saving() && bug == Bug::takes_too_much) {
      (void)saved.take<float>({1});
    }
    ctx.stream().launch([t,
                         slope,
                         layer = *this,
                         found = ctx.found_level(),
                         x = ctx.input<float>("x"),
                         gain = ctx.parameter<float>("gain"),
                         shift = ctx.parameter<float>("shift"),
                         y = ctx.output<float>("y")] {
      auto const has = [&](Bug b) { return layer.bug == b; };
      auto const size = has(Bug::ignores_extents) ? layer.size_at_capacity : y.size();
      for (std::size_t i = 0; i < size; ++i) {
        auto const from = i % x.size();
        if (found == 0) {
          t[from] = std::tanh(gain[i % gain.size()] * x[from]);
        } else if (has(Bug::replay_changes_level)) {
          t[from] *= 2;
        }
        if (!slope.empty()) {
          auto const wrong = has(Bug::wrong_replay) && found == 1;
          auto* const to = has(Bug::takes_saved_for_one_piece) ? layer.behind(t) : slope.data();
          to[from] = wrong ? 1 - t[from] : 1 - t[from] * t[from];
        }
        if (i + 1 < size || !has(Bug::last_output_unwritten)) {
          y.data()[i] = t[from] + shift[i % shift.size()];
        }
      }
      if (has(Bug::writes_behind_output)) {
        y.data()[y.size()] = 1;
      }
      if (has(Bug::writes_behind_saved) && !slope.empty()) {
        slope.data()[slope.size() + 40] = 1;
      }
      if (has(Bug::differs_each_time)) {
        static std::atomic<int> runs = 0;
        y[0] += static_cast<float>(++runs);
      }
      if (has(Bug::saving_differs) && !slope.empty()) {
        y[2] += 1;
      }
      if (has(Bug::writes_input)) {
        const_cast<float&>(x[3]) = 0;
      }
    });
  }

  void backward(BackwardContext<HostStream>& ctx) const {
    auto saved = ctx.saved();
    auto const t = saved.take<float>(extents(ctx.shape()));
    auto const slope = saved.take<float>(extents(ctx.shape()));
    if (bug == Bug::asks_for_second_input) {
      (void)ctx.input_gradient<float>(1);
    }
    ctx.stream().launch([t,
                         slope,
                         layer = *this,
                         dz = ctx.workspace().take<float>(extents(ctx.shape())),
                         x = ctx.input<float>("x"),
                         gain = ctx.parameter<float>("gain"),
                         dy = ctx.output_gradient<float>("y"),
                         dx = ctx.input_gradient<float>("x"),
                         dgain = ctx.parameter_gradient<float>("gain")] {
      auto const has = [&](Bug b) { return layer.bug == b; };
      auto const last = x.size() - 1;
      if (has(Bug::overwrites_parameter_gradient)) {
        std::ranges::fill(dgain, 0.0F);
      }
      for (std::size_t i = 0; i <= last; ++i) {
        auto const* const from =
            has(Bug::takes_saved_for_one_piece) ? layer.behind(t) : slope.data();
        if (!has(Bug::reads_unwritten_workspace)) {
          dz[i] = dy[i] * from[i];
        }
        auto const j = i % gain.size();
        dgain[j] += dz[i] * x[i] * (has(Bug::wrong_last_parameter_gradient) && j == 3 ? 2 : 1);
        if (i == last && has(Bug::last_input_gradient_unwritten)) {
          continue;
        }
        auto const gradient = has(Bug::wrong_input_gradient) ? dz[i] : dz[i] * gain[j];
        dx[i] = has(Bug::adds_to_input_gradient) ? dx[i] + gradient : gradient;
      }
      if (has(Bug::finds_frozen_gradient_behind_other)) {
        dgain.data()[tensor_alignment_bytes / sizeof(float)] += dy[0];
      }
      if (has(Bug::writes_before_workspace)) {
        *(dz.data() - 1) = 1;
      }
      if (has(Bug::writes_parameter)) {
        const_cast<float&>(gain[1]) = 0;
      }
      if (has(Bug::writes_output_gradient)) {
        const_cast<float&>(dy[1]) = 0;
      }
      if (has(Bug::writes_saved)) {
        slope[0] = 3;
      }
      if (has(Bug::throws_later)) {
        throw std::runtime_error("no luck");
      }
    });
  }

 private:
  Shape extents(BatchShape s) const { return {s.rows, s.length, width}; }
  /// Where the next tensor of the same memory would be.
  static float* behind(TensorView<float> t) {
    return t.data() + align_up(t.size_bytes()) / sizeof(float);
  }
};

enum class LossBug {
  none,
  no_scale,
  no_scale_in_gradient,
  backward_without_loss,
  wrong_training_loss,
  no_result
};

/// Half the sum of squares of x - y. The backward computes the loss of training.
struct PlantedLoss {
  LossBug bug = LossBug::none;

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", {s.rows, s.length}}}; }
  TensorTable side_inputs(BatchShape s) const { return {{"y", {s.rows, s.length}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  TensorTable results(BatchShape s) const { return {{"far", {s.rows, s.length}, DType::u8}}; }
  Footprint footprint(BatchShape) const { return {}; }
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape s) const { return s.positions(); }

  void forward(ForwardContext<HostStream>& ctx) const {
    if (!ctx.saving()) {
      auto const far = ctx.wants_results() && bug != LossBug::no_result
                           ? ctx.result<std::uint8_t>("far")
                           : TensorView<std::uint8_t>{};
      launch(ctx, {}, far, true);
    }
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    launch(ctx, ctx.input_gradient<float>("x"), {}, bug != LossBug::backward_without_loss);
  }

 private:
  void launch(LayerContext<HostStream>& ctx,
              TensorView<float> dx,
              TensorView<std::uint8_t> far,
              bool writes_loss) const {
    ctx.stream().launch([dx,
                         far,
                         writes_loss,
                         b = bug,
                         x = ctx.input<float>("x"),
                         y = ctx.side_input<float>("y"),
                         loss = ctx.loss(),
                         scale = ctx.gradient_scale()] {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        auto const difference = static_cast<double>(x[i] - y[i]);
        sum += (b == LossBug::no_scale ? 1 : scale) * difference * difference / 2;
        if (!dx.empty()) {
          dx[i] = static_cast<float>((b == LossBug::no_scale_in_gradient ? 1 : scale) * difference);
        }
        if (!far.empty()) {
          far[i] = std::abs(difference) > 1 ? 1 : 0;
        }
      }
      if (writes_loss) {
        loss[0] = b == LossBug::wrong_training_loss && !dx.empty() ? 2 * sum : sum;
      }
    });
  }
};

template <class L>
std::vector<std::string> findings_of(L const& layer, LayerCheckOptions const& options = {}) {
  HostBackend backend;
  return check_layer(layer, backend, options);
}

/// Checks that \p layer is sound, and names it if not.
template <class L>
void expect_sound(L const& layer, LayerCheckOptions const& options = {}) {
  HostBackend backend;
  CHECK_NOTHROW(testing::require_sound(layer, backend, options));
}

/// Checks that the first finding begins with \p text.
template <class L>
void expect_finding(L const& layer, std::string const& text) {
  auto const findings = findings_of(layer);
  REQUIRE(!findings.empty());
  CHECK(findings.front().substr(0, text.size()) == text);
}

}  // namespace

TEST_CASE("a sound layer passes") {
  expect_sound(Planted{});
  expect_sound(PlantedLoss{});
}

TEST_CASE("planted bugs are found and named") {
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
      {Bug::takes_too_much,
       "saving forward throws: a layer takes more memory than its footprint says"},
      {Bug::differs_each_time, "two runs of the forward: output 'y'[0] is "},
      {Bug::ignores_extents,
       "at the smaller extents, forward writes outside its buffers, 0 bytes behind the end of "
       "output 'y'"},
      {Bug::grows_at_smaller_extents,
       "workspace takes 512 bytes at the smaller extents, and 256 at the capacity"},
      {Bug::type_depends_on_extents, "boundary is {y i32[1, 2, 4]"},
      {Bug::levels_depend_on_extents, "the number of save levels depends on the extents"},
      {Bug::finds_frozen_gradient_behind_other,
       "backward writes outside its buffers, 240 bytes behind the end of parameter gradient "
       "'gain'"},
      {Bug::writes_input, "forward writes to input 'x'[3], which it may only read"},
      {Bug::writes_parameter, "backward writes to parameter 'gain'[1], which it may only read"},
      {Bug::writes_output_gradient,
       "backward writes to output gradient 'y'[1], which it may only read"},
      {Bug::writes_saved, "backward writes to saved memory[256], which it may only read"},
      {Bug::wrong_replay, "backward behind a replay from save level 1: input gradient 'x'[0] is "},
      {Bug::replay_changes_level, "replay from save level 1: output 'y'[0] is "},
      {Bug::takes_saved_for_one_piece,
       "saving forward writes outside its buffers, 0 bytes behind the end of saved memory"},
      {Bug::last_output_unwritten, "forward does not write output 'y'[23]"},
      {Bug::last_input_gradient_unwritten,
       "backward does not overwrite input gradient 'x'[23]: it depends on what was there before"},
      {Bug::reads_unwritten_workspace,
       "backward: input gradient 'x'[0] depends on memory that no pass has written"},
      {Bug::saving_differs, "saving forward: output 'y'[2] is "},
      {Bug::denies_reading_parameters,
       "backward reads parameters, and backward_reads_parameters() denies it: input gradient "
       "'x'[0] is "},
      {Bug::asks_for_second_input,
       "backward throws: layer 0 (planted) asks for input_gradient(1), but this call has 1 input "
       "gradient"},
      {Bug::throws_later, "backward throws: "},
  };
  for (auto const& c : cases) {
    CAPTURE(static_cast<int>(c.bug));
    expect_finding(Planted{c.bug}, c.finding);
  }
}

TEST_CASE("planted bugs of a loss layer are found and named") {
  expect_finding(PlantedLoss{LossBug::no_scale}, "at twice the gradient scale the loss is ");
  expect_finding(PlantedLoss{LossBug::no_scale_in_gradient}, "input gradient 'x'[0] is ");
  expect_finding(PlantedLoss{LossBug::backward_without_loss}, "backward does not write loss[0]");
  expect_finding(PlantedLoss{LossBug::wrong_training_loss},
                 "behind saving forward and backward the loss is ");
  expect_finding(PlantedLoss{LossBug::no_result},
                 "forward of evaluate does not write result 'far'[0]");
}

TEST_CASE("an error names the layer and lists all findings") {
  HostBackend backend;
  auto const error = test::error_of(
      [&] { testing::require_sound(Planted{Bug::grows_at_smaller_extents}, backend); });
  CHECK(error.message() ==
        "layer 'planted' is not sound:\n"
        "- workspace takes 512 bytes at the smaller extents, and 256 at the capacity");
  CHECK(test::error_of([&] {
          (void)check_layer(Planted{}, backend, {.capacity = {2, 2}, .smaller = {2, 3}});
        }).message() == "LayerCheckOptions::smaller does not fit the capacity");
}

TEST_CASE("the toy layers are sound in every type") {
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(std::string(name_of(type)));
    test::ToyTypes types;
    types.boundary = types.parameter = type;
    expect_sound(test::ToyInput{types});
    expect_sound(test::ToyDense{types});
    expect_sound(test::ToyScale{types});
    expect_sound(test::ToyDropout{types});
    expect_sound(test::ToyTwoOut{types});
    expect_sound(test::ToyCross{types});
    types.frozen = 1;  // of two parameters
    expect_sound(test::ToyDense{types});
  }
}

TEST_CASE_TEMPLATE("the layers of a transformer are sound", T, float, double) {
  using Ops = nn::HostOps<T>;
  nn::TransformerConfig config;
  config.vocabulary = 7;
  config.hidden = 8;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 4;
  config.intermediate = 6;
  config.loss_chunk = 4;  // does not divide the positions
  LayerCheckOptions options;
  options.integer = [](TensorSpec const&, std::size_t i) {
    return static_cast<std::int64_t>(i * 3 % 7);
  };
  options.elements = 12;
  auto const types = std::is_same_v<T, double> ? std::vector{DType::f64}
                                               : std::vector{DType::f32, DType::bf16, DType::f16};
  for (auto const type : types) {
    for (bool const all : {false, true}) {
      CAPTURE(std::string(name_of(type)));
      CAPTURE(all);
      config.storage = config.parameter = type;
      config.dropout = all ? 0.25 : 0;
      config.query_key_norm = all;
      // Of 16 bits, the sum with a bias hides what a small step of a weight changes.
      bool const biased = all && size_of(type) > 2;
      config.attention_bias = config.output_bias = config.mlp_bias = biased;
      config.sliding_window = all ? 2 : 0;
      expect_sound(nn::TokenEmbedding<Ops>(config), options);
      expect_sound(nn::TransformerBlock<Ops>(config), options);
      expect_sound(nn::TransformerBlock<Ops>(config, true), options);
      expect_sound(nn::LanguageModelHead<Ops>(config), options);
      auto adapted = config;
      adapted.lora = {.rank = 3, .alpha = 2, .dropout = all ? 0.2 : 0, .targets = {"*"}};
      expect_sound(nn::TransformerBlock<Ops>(adapted), options);
      expect_sound(nn::LanguageModelHead<Ops>(adapted), options);
    }
  }
}

}  // namespace check_layer_test
