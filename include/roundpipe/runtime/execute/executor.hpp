// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs graphs: one issuing thread a device, one worker for each of the host's lanes.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/runtime/execute/action_work.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/device_issuer.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_lane_worker.hpp>
#include <roundpipe/runtime/execute/host_progress.hpp>
#include <roundpipe/runtime/execute/run_history.hpp>
#include <roundpipe/runtime/execute/run_queue.hpp>
#include <roundpipe/runtime/execute/run_timeline.hpp>
#include <roundpipe/system/cpu_plan.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/first_error.hpp>
#include <roundpipe/system/on_own_thread.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

/// Runs graphs in the order in which they are posted. All members are for one thread, the
/// controller's.
///
/// Every thread follows the graphs' issue order, so host waits can not form a cycle: before a
/// stream waits for another device's event, the issuing thread waits until the event is recorded.
/// The first error stops everything and is thrown by the controller's next call.
template <Backend B, ActionWork<B> W>
class Executor {
 public:
  /// \p backend and \p work must outlive the executor. \p cpus says what threads are pinned to.
  Executor(B& backend, W& work, std::size_t devices, CpuPlan cpus = {})
      : backend_(backend), cpus_(std::move(cpus)), hosts_(backend), device_queues_(devices) {
    for (std::size_t d = 0; d < devices; ++d) {
      DeviceId const device(d);
      auto& issuer = issuers_.emplace_back(backend, work, hosts_, device);
      detail::on_own_thread([&] {
        timeline_.add_device(backend.make_event(device), issuer.stream(LaneKind::compute));
      });
    }
    timeline_.begin();
    for (std::size_t k = 0; k < host_lane_count; ++k) {
      workers_.emplace_back(backend, work, hosts_, host_lane(k));
    }
    try {
      for (std::size_t d = 0; d < devices; ++d) {
        threads_.emplace_back([this, d] { issue_all(DeviceId(d)); });
      }
      for (std::size_t k = 0; k < host_lane_count; ++k) {
        threads_.emplace_back([this, k] { work_all(k); });
      }
    } catch (...) {  // the machine has no more threads
      join();
      throw;
    }
  }

  Executor(Executor const&) = delete;
  Executor& operator=(Executor const&) = delete;

  /// Lets posted work finish, unless an error has stopped it.
  ~Executor() {
    settle();
    join();
  }

  /// Makes a slot for runs of \p program about \p call; both must outlive the executor. Change
  /// \p call only between \ref begin and \ref post.
  GraphRun<B>& make_run(GraphProgram const& program, CallData& call) {
    auto run = std::make_unique<GraphRun<B>>(backend_, program, call);
    std::lock_guard const lock(runs_mutex_);
    runs_.push_back(std::move(run));
    return *runs_.back();
  }

  /// Waits until the run before in this slot is over, and begins the next, in iteration
  /// \p iteration (the steps that were posted, plus 1).
  void begin(GraphRun<B>& run, std::size_t iteration) {
    rethrow();
    if (run.in_flight()) {
      wait_complete(run);
    }
    run.wait_unpinned();
    rethrow();
    run.begin(posted_++, {first_device_, device_queues_.size(), iteration});
  }

  /// Hands the run that has begun to the threads and returns.
  void post(GraphRun<B>& run) {
    auto const& program = run.program();
    auto const devices = device_queues_.size();
    first_device_ = (first_device_ + program.graph().advance) % devices;
    guard([&] { history_.resolve(run); });
    for (std::size_t k = 0; k < host_lane_count; ++k) {
      auto const kind = host_lane(k);
      run.set_host_base(kind, host_posted_[k]);
      host_posted_[k] += program.of_host(kind).size();
    }
    history_.remember(run);
    run.start();
    // Threads without an action of the run do not get it: nobody would wait for them.
    for (std::size_t d = 0; d < program.graph().devices; ++d) {
      if (!program.of_device(run.relative(DeviceId(d)).index()).empty()) {
        device_queues_[d].push(&run);
      }
    }
    for (std::size_t k = 0; k < host_lane_count; ++k) {
      if (!program.of_host(host_lane(k)).empty()) {
        host_queues_[k].push(&run);
      }
    }
  }

  /// Blocks until action \p id of \p run is complete.
  void wait(GraphRun<B>& run, ActionId id) {
    auto const& lane = run.program()[id].lane;
    if (!lane.device.valid()) {
      hosts_.wait(lane.kind, run.host_sequence(id));
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
    for (auto const& [lane, id] : run.program().tails()) {
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
      join();
    }
  }

  /// Stops everything with \p error, unless another one came first.
  void fail(std::exception_ptr error) noexcept {
    if (!error_.set(std::move(error))) {
      return;
    }
    backend_.abort();
    for (auto& queue : device_queues_) {
      queue.cut_off();
    }
    for (auto& queue : host_queues_) {
      queue.cut_off();
    }
    {
      std::lock_guard const lock(runs_mutex_);
      for (auto const& run : runs_) {
        run->release_waiters();
      }
    }
    hosts_.release();
  }

  /// Throws the error that has stopped the executor, if one has.
  void rethrow() const { error_.rethrow(); }

  /// Called with the timeline of every complete run.
  std::function<void(GraphRun<B> const&, std::vector<TimelineEntry> const&)> on_complete;

 private:
  [[nodiscard]] static constexpr LaneKind host_lane(std::size_t index) noexcept {
    return static_cast<LaneKind>(device_lane_count + index);
  }

  /// Turns the backend's errors into this executor's first one.
  template <class F>
  void guard(F&& f) {
    succeeds(std::forward<F>(f));
    rethrow();
  }

  [[nodiscard]] GraphRun<B>* earliest_in_flight() const noexcept {
    GraphRun<B>* earliest = nullptr;
    for (auto const& run : runs_) {
      if (run->in_flight() && (earliest == nullptr || run->number() < earliest->number())) {
        earliest = run.get();
      }
    }
    return earliest;
  }

  void join() {
    for (auto& queue : device_queues_) {
      queue.close();
    }
    for (auto& queue : host_queues_) {
      queue.close();
    }
    for (auto& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

  [[nodiscard]] bool is_complete(GraphRun<B>& run) {
    bool complete = true;
    guard([&] {
      for (auto const& [lane, id] : run.program().tails()) {
        auto const done = lane.device.valid() ? run.is_issued(id) && run.end_event(id).ready()
                                              : hosts_.is_done(lane.kind, run.host_sequence(id));
        complete = complete && done;
      }
    });
    return complete;
  }

  void issue_all(DeviceId device) {
    if (device.index() < cpus_.issuing.size()) {
      pin_this_thread(std::span(&cpus_.issuing[device.index()], 1));
    }
    while (auto const next = device_queues_[device.index()].pop()) {
      auto& run = **next;
      auto const relative = run.relative(device);
      auto const& actions = run.program().of_device(relative.index());
      for (std::size_t i = 0; i < actions.size(); ++i) {
        if (error_.is_set() ||
            !succeeds([&] { issuers_[device.index()].issue(run, actions[i]); })) {
          return;
        }
        run.set_issued(relative, i);
      }
    }
  }

  void work_all(std::size_t lane) {
    auto& worker = workers_[lane];
    if (auto const& cpus = cpus_.optimizer.cpus; !cpus.empty()) {
      // The optimizer's lane is the first of the threads that share its work.
      auto const shares = worker.kind() == LaneKind::optimizer;
      pin_this_thread(shares ? std::span(cpus).first(1) : std::span(cpus));
    }
    work(worker, host_queues_[lane]);
    hosts_.end(worker.kind());
  }

  void work(HostLaneWorker<B, W>& worker, RunQueue<GraphRun<B>*>& queue) {
    while (auto const next = queue.pop()) {
      auto& run = **next;
      for (auto const id : run.program().of_host(worker.kind())) {
        if (!succeeds([&] { worker.wait_for_all(run, id); }) || error_.is_set()) {
          worker.abandon(run, id);
          return;
        }
        if (!succeeds([&] { worker.run(run, id); })) {
          return;
        }
      }
    }
  }

  /// Whether \p f throws nothing; what it throws stops everything.
  template <class F>
  bool succeeds(F&& f) noexcept {
    try {
      f();
      return true;
    } catch (...) {
      fail(std::current_exception());
      return false;
    }
  }

  B& backend_;
  CpuPlan cpus_;
  FirstError error_;
  HostProgress<B> hosts_;
  std::vector<DeviceIssuer<B, W>> issuers_;  // by device
  RunTimeline<B> timeline_;
  std::vector<HostLaneWorker<B, W>> workers_;  // by host lane
  std::array<std::uint64_t, host_lane_count> host_posted_{};
  std::mutex runs_mutex_;  // fail() may come from any thread
  std::vector<std::unique_ptr<GraphRun<B>>> runs_;
  RunHistory<B> history_;
  std::size_t posted_ = 0;
  std::size_t first_device_ = 0;
  std::vector<RunQueue<GraphRun<B>*>> device_queues_;
  std::array<RunQueue<GraphRun<B>*>, host_lane_count> host_queues_;
  std::vector<std::thread> threads_;
};

}  // namespace roundpipe
