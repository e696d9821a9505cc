// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/gradient_check.hpp>
#include <roundpipe/testing/layer_checks.hpp>
#include <roundpipe/testing/layer_layout.hpp>
#include <roundpipe/testing/layer_values.hpp>
#include <roundpipe/testing/table_check.hpp>
#include <roundpipe/testing/watched_passes.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::testing::detail {

/// Runs the passes of one layer at one pair of extents.
class PassChecks {
 public:
  PassChecks(LayerFacts const& facts,
             LayerFacts const& capacity,
             BatchShape shape,
             LayerCheckOptions const& options,
             RunPass const& run)
      : facts_(facts),
        capacity_(capacity),
        options_(options),
        passes_(run),
        layout_(facts, capacity, 0) {
    call_.shape = shape;
    call_.random = {1, 2, 0, 3, 0};
    call_.gradient_scale = 0.5;
  }

  /// Later checks build on earlier ones: the first that finds something is the last.
  [[nodiscard]] std::vector<std::string> findings() {
    try {
      for (auto const check : {&PassChecks::check_forward,
                               &PassChecks::check_evaluation,
                               &PassChecks::check_backward,
                               &PassChecks::check_sums,
                               &PassChecks::check_levels,
                               &PassChecks::check_gradients}) {
        (this->*check)();
        if (!passes_.sound()) {
          break;
        }
      }
    } catch (PassesEnd const&) {
    }
    return passes_.take_findings();
  }

 private:
  using Kind = LayerPass::Kind;
  static constexpr auto backward_results = {
      Role::input_gradient, Role::parameter_gradient, Role::loss};

  [[nodiscard]] LayerPass pass_of(Kind kind) const {
    LayerPass pass{kind, call_};
    pass.call.saving = kind == Kind::saving_forward;
    pass.call.evaluating = kind == Kind::evaluation;
    return pass;
  }

  [[nodiscard]] Outcome start(std::byte unwritten) const { return start(layout_, unwritten); }
  [[nodiscard]] Outcome start(LayerLayout const& layout, std::byte unwritten) const {
    return {&layout, first_image(layout, facts_, options_, unwritten)};
  }

  /// Runs \p pass three times: twice alike, and with other garbage.
  [[nodiscard]] Outcome run_alike(std::initializer_list<Role> roles, LayerPass const& pass) {
    auto first = passes_.run(start(garbage[0]), pass);
    passes_.expect_same(roles,
                        std::string("two runs of the ") + pass.name(),
                        passes_.run(start(garbage[0]), pass),
                        first,
                        "as before");
    passes_.expect_written(roles, pass, first, passes_.run(start(garbage[1]), pass));
    passes_.expect_in_place(start(garbage[0]), pass, first);
    return first;
  }

  void check_forward() {
    auto const pass = pass_of(Kind::forward);
    plain_ = run_alike({Role::output, Role::loss}, pass);
    auto const saving = pass_of(Kind::saving_forward);
    saved_ = passes_.run(start(garbage[0]), saving);
    passes_.expect_same({Role::output}, saving.name(), saved_, plain_, "as without saving");
    other_saved_ = passes_.run(start(garbage[1]), saving);
    if (facts_.is_loss) {
      auto doubled = pass;
      doubled.call.gradient_scale *= 2;
      auto const twice = loss_of(passes_.run(start(garbage[0]), doubled));
      if (!(std::abs(twice - 2 * loss_of(plain_)) <= 1e-6 * std::abs(twice))) {
        passes_.report("at twice the gradient scale the loss is " + number(twice) + ", want " +
                       number(2 * loss_of(plain_)));
      }
    }
  }

  void check_evaluation() {
    (void)run_alike({Role::output, Role::result, Role::loss}, pass_of(Kind::evaluation));
  }

  /// What a backward finds behind \p saving.
  [[nodiscard]] Outcome behind(Outcome const& saving, std::byte unwritten) const {
    auto result = start(*saving.layout, unwritten);
    for (auto const& buffer : saving.layout->buffers()) {
      if (buffer.role == Role::kept || buffer.role == Role::saved || buffer.role == Role::loss) {
        std::copy_n(saving.image.data() + buffer.offset,
                    buffer.bytes(),
                    result.image.data() + buffer.offset);
      } else if (buffer.role == Role::parameter_gradient && buffer.present) {
        fill(result.image, buffer, std::byte{0});
      }
    }
    return result;
  }

  void check_backward() {
    auto pass = pass_of(Kind::backward);
    auto const from = behind(saved_, garbage[0]);
    backward_ = passes_.run(from, pass);
    passes_.expect_same(backward_results,
                        "two runs of the backward",
                        passes_.run(from, pass),
                        backward_,
                        "as before");
    auto overwritten = from;
    for (auto const& buffer : layout_.buffers()) {
      if (buffer.role == Role::input_gradient && buffer.present) {
        fill(overwritten.image, buffer, garbage[1]);
      }
    }
    passes_.compare({Role::input_gradient},
                    backward_,
                    passes_.run(overwritten, pass),
                    [](Buffer const& buffer, std::size_t i) {
                      return "backward does not overwrite " + place(buffer, i) +
                             ": it depends on what was there before";
                    });
    if (!passes_.sound()) {
      return;
    }
    passes_.expect_written(
        backward_results, pass, backward_, passes_.run(behind(other_saved_, garbage[1]), pass));
    passes_.expect_in_place(from, pass, backward_);
    if (!facts_.backward_reads_parameters) {
      auto unread = from;
      for (auto const& buffer : layout_.buffers()) {
        if (buffer.role == Role::parameter) {
          fill(unread.image, buffer, garbage[0]);
        }
      }
      passes_.expect_same(backward_results,
                          "backward reads parameters, and backward_reads_parameters() denies it",
                          passes_.run(unread, pass),
                          backward_,
                          "as with parameters");
      if (passes_.sound()) {
        pass.gives_parameters = false;
        passes_.expect_same(backward_results,
                            "backward without parameters",
                            passes_.run(from, pass),
                            backward_,
                            "as with parameters");
      }
    }
    if (facts_.is_loss) {
      auto const loss = loss_of(backward_);
      auto const want = loss_of(plain_);
      if (!(std::abs(loss - want) <= (1e-6 + 16 * unit_of(facts_)) * std::abs(want))) {
        passes_.report("behind saving forward and backward the loss is " + number(loss) +
                       ", want " + number(want) + " as of the forward");
      }
    }
  }

  /// The backward must add to what parameter gradients hold.
  void check_sums() {
    auto from = behind(saved_, garbage[0]);
    double largest = 1;
    for_each_parameter_gradient([&](Buffer const& buffer, std::size_t i) {
      largest = std::max(largest, std::abs(element(backward_.image, buffer, i)));
    });
    for_each_parameter_gradient([&](Buffer const& buffer, std::size_t i) {
      set_element(from.image, buffer, i, 4 * largest * drawn(0, i));
    });
    auto const added = passes_.run(from, pass_of(Kind::backward));
    for_each_parameter_gradient([&](Buffer const& buffer, std::size_t i) {
      auto const before = element(from.image, buffer, i);
      auto const gradient = element(backward_.image, buffer, i);
      auto const after = element(added.image, buffer, i);
      if (passes_.sound() && !(std::abs(after - before - gradient) <= 1e-3 * largest)) {
        passes_.report("backward does not add to " + place(buffer, i) + ": from " + number(before) +
                       " and a gradient of " + number(gradient) + " it makes " + number(after) +
                       ", want " + number(before + gradient));
      }
    });
  }
  template <class F>
  void for_each_parameter_gradient(F&& f) const {
    for (auto const& buffer : layout_.buffers()) {
      for (std::size_t i = 0; i < buffer.shape.size(); ++i) {
        if (buffer.role == Role::parameter_gradient && buffer.present) {
          f(buffer, i);
        }
      }
    }
  }

  /// A replay from each level must write the same bits, and leave the backward the same gradients.
  void check_levels() {
    auto const top = facts_.save_levels.size() - 1;
    for (std::size_t level = 0; level <= top; ++level) {
      auto const name = "save level " + std::to_string(level);
      LayerLayout const layout(facts_, capacity_, level);
      auto found = start(layout, garbage[0]);
      std::copy_n(saved_.image.data() + layout_.only(Role::saved).offset,
                  facts_.save_levels[level],
                  found.image.data() + layout.only(Role::kept).offset);
      auto replayed = found;
      if (level < top || top == 0) {
        auto pass = pass_of(Kind::saving_forward);
        pass.call.found_level = level;
        auto const whole = passes_.run(found, pass);
        passes_.expect_same(
            {Role::output}, "replay from " + name, whole, plain_, "as of the forward");
        pass.call.wants_output = false;
        replayed = passes_.run(found, pass);
        passes_.expect_same({Role::kept}, "replay from " + name, replayed, found, "as it found");
      }
      passes_.expect_same(backward_results,
                          "backward behind a replay from " + name,
                          passes_.run(behind(replayed, garbage[0]), pass_of(Kind::backward)),
                          backward_,
                          "as behind the saving forward");
    }
  }

  void check_gradients() {
    auto const forward = [&](Image image) {
      return passes_.run({&layout_, std::move(image)}, pass_of(Kind::forward)).image;
    };
    for (auto& finding : differences_of_gradients(
             facts_, options_, layout_, start(garbage[0]).image, backward_.image, forward)) {
      passes_.report(std::move(finding));
    }
  }

  [[nodiscard]] double loss_of(Outcome const& outcome) const {
    return element(outcome.image, layout_.only(Role::loss), 0);
  }

  LayerFacts const& facts_;
  LayerFacts const& capacity_;
  LayerCheckOptions const& options_;
  WatchedPasses passes_;
  LayerLayout layout_;
  LayerCall call_;
  Outcome plain_;        // of the forward
  Outcome saved_;        // of the saving forward
  Outcome other_saved_;  // the same, begun with other garbage
  Outcome backward_;     // with parameter gradients that began as zeros
};

ROUNDPIPE_INLINE std::vector<std::string> check_passes(LayerFacts const& capacity,
                                                       LayerFacts const& smaller,
                                                       LayerCheckOptions const& options,
                                                       RunPass const& run) {
  try {
    roundpipe::detail::check_layer({options.capacity, {capacity}}, 0);
    roundpipe::detail::check_layer({options.smaller, {smaller}}, 0);
  } catch (Error const& error) {
    return {error.message()};
  }
  if (auto findings = compare_tables(capacity, smaller); !findings.empty()) {
    return findings;
  }
  auto findings = PassChecks(capacity, capacity, options.capacity, options, run).findings();
  if (findings.empty()) {
    findings = PassChecks(smaller, capacity, options.smaller, options, run).findings();
    for (auto& finding : findings) {
      finding = "at the smaller extents, " + finding;
    }
  }
  return findings;
}

}  // namespace roundpipe::testing::detail
