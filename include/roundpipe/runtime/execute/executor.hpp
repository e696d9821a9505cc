// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs graphs in the order in which the controller posts them, and tells when they ran.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/device_work.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_history.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/execute/run_threads.hpp>
#include <roundpipe/runtime/execute/run_timeline.hpp>
#include <roundpipe/system/cpu_plan.hpp>
#include <roundpipe/system/on_own_thread.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

namespace roundpipe {

/// Runs graphs in the order in which they are posted. All members are for one thread, the
/// controller's. The first error stops everything until \ref recover; the controller's next call
/// throws it.
template <Backend B>
class Executor {
 public:
  /// \p backend, \p work and all of \p host_lanes must outlive the executor, which has one thread
  /// for each device and host lane. \p cpus says what these are pinned to.
  /// \throws Error as \ref start_thread does.
  Executor(B& backend,
           DeviceWork<B>& work,
           std::vector<HostLaneWork*> const& host_lanes,
           std::size_t devices,
           CpuPlan cpus = {})
      : threads_(backend, work, host_lanes, devices, std::move(cpus)),
        host_posted_(threads_.lanes().size()),
        history_([](RunState& run, ActionId id) {
          return run.is_issued(id) && static_cast<GraphRun<B>&>(run).end_event(id).ready();
        }) {
    for (std::size_t d = 0; d < devices; ++d) {
      DeviceId const device(d);
      detail::on_own_thread([&] {
        timeline_.add_device(backend.make_event(device),
                             threads_.stream(device, LaneKind::compute));
      });
    }
    timeline_.begin();
    threads_.start();
  }

  Executor(Executor const&) = delete;
  Executor& operator=(Executor const&) = delete;

  /// Lets posted work finish, unless an error has stopped it.
  ~Executor() { settle(); }

  /// Makes a slot for runs of \p program about \p call; both must outlive the executor. Change
  /// \p call only between \ref begin and \ref post.
  /// \throws Error (unsupported) when the program has actions on a host lane without work.
  GraphRun<B>& make_run(GraphProgram const& program, CallData& call) {
    return threads_.make_run(program, call);
  }

  /// Waits until the run before in this slot is over, and begins the next, in iteration
  /// \p iteration (the steps that were posted, plus 1).
  void begin(GraphRun<B>& run, std::size_t iteration) {
    rethrow();
    if (run.in_flight()) {
      wait_complete(run);
    }
    run.retire();
    rethrow();
    run.begin(posted_++, {first_device_, threads_.devices(), iteration});
  }

  /// Hands the run that has begun to the threads and returns.
  void post(GraphRun<B>& run) {
    auto const& program = run.program();
    first_device_ = (first_device_ + program.graph().advance) % threads_.devices();
    guard([&] { history_.resolve(run); });
    for (std::size_t k = 0; k < host_posted_.size(); ++k) {
      auto const kind = threads_.lanes()[k].kind;
      run.set_host_base(kind, host_posted_[k]);
      host_posted_[k] += program.of_host(kind).size();
    }
    history_.remember(run);
    run.start();
    threads_.hand(run);
  }

  /// Blocks until action \p id of \p run is complete.
  void wait(GraphRun<B>& run, ActionId id) {
    auto const& lane = run.program()[id].lane;
    if (!lane.device.valid()) {
      threads_.hosts().wait(lane.kind, run.host_sequence(id));
      rethrow();
      return;
    }
    guard([&] {
      run.wait_issued(id);
      run.end_event(id).wait();
    });
  }

  /// Blocks until all of \p run is complete, and adds it to the timeline.
  void wait_complete(GraphRun<B>& run) {
    for (auto const id : run.program().tails()) {
      wait(run, id);
    }
    rethrow();
    run.finish();
    if (on_complete) {
      guard([&] { on_complete(run, timeline_.entries(run)); });
    }
  }

  /// Adds the runs that are complete by now to the timeline; blocks for none.
  void collect_complete() {
    for (auto* run = earliest_in_flight(); run != nullptr && is_complete(*run);
         run = earliest_in_flight()) {
      wait_complete(*run);
    }
  }

  /// Blocks until all that was posted is complete; adds runs to the timeline in the order in which
  /// they were posted.
  void synchronize() {
    while (auto* const run = earliest_in_flight()) {
      wait_complete(*run);
    }
    rethrow();
  }

  /// Blocks until nothing is under way any more, be it for an error; throws none.
  void settle() noexcept {
    try {
      synchronize();
    } catch (...) {  // the controller's next call throws it
      threads_.join();
    }
  }

  /// Lets runs be posted again after an error; does nothing where there was none. All that was
  /// posted is over by then, whether it was finished or not.
  /// \throws Error as the backend's `resume` does, (unsupported) when it has none, and then the
  ///         error stays.
  void recover() {
    settle();
    if (!threads_.has_failed()) {
      return;
    }
    if constexpr (HasResume<B>) {
      threads_.restart();
      std::fill(host_posted_.begin(), host_posted_.end(), 0);
      history_.forget();
    } else {
      throw Error(Errc::unsupported,
                  "this backend cannot go on after an error: it has no member 'resume'");
    }
  }

  /// Stops everything with \p error, unless another one came first.
  void fail(std::exception_ptr const& error) noexcept { threads_.fail(error); }

  /// Throws the error that has stopped the executor, if one has.
  void rethrow() const { threads_.rethrow(); }

  /// The device on which the next run begins; each run moves it on as its schedule says.
  [[nodiscard]] std::size_t first_device() const noexcept { return first_device_; }
  /// Lets the next run begin on another, modulo their number. Call it while nothing is under way.
  void set_first_device(std::size_t device) noexcept {
    first_device_ = device % threads_.devices();
  }

  /// Called with the timeline of every complete run.
  std::function<void(RunState const&, std::vector<TimelineEntry> const&)> on_complete;

 private:
  /// Lets what \p f throws stop everything, and throws the first error.
  template <class F>
  void guard(F&& f) {
    threads_.succeeds(std::forward<F>(f));
    rethrow();
  }

  [[nodiscard]] GraphRun<B>* earliest_in_flight() const noexcept {
    GraphRun<B>* earliest = nullptr;
    for (auto const& run : threads_.runs()) {
      if (run->in_flight() && (earliest == nullptr || run->number() < earliest->number())) {
        earliest = run.get();
      }
    }
    return earliest;
  }

  [[nodiscard]] bool is_complete(GraphRun<B>& run) {
    bool complete = true;
    guard([&] {
      for (auto const id : run.program().tails()) {
        auto const lane = run.program()[id].lane;
        auto const done = lane.device.valid()
                              ? run.is_issued(id) && run.end_event(id).ready()
                              : threads_.hosts().is_done(lane.kind, run.host_sequence(id));
        complete = complete && done;
      }
    });
    return complete;
  }

  RunThreads<B> threads_;
  std::vector<std::uint64_t> host_posted_;  // actions, by host lane
  RunTimeline<B> timeline_;
  RunHistory history_;
  std::size_t posted_ = 0;
  std::size_t first_device_ = 0;
};

}  // namespace roundpipe
