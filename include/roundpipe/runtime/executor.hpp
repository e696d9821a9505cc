// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs graphs: one issuing thread a device, one worker for each of the host's lanes.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/plan/timeline.hpp>
#include <roundpipe/runtime/cpu_plan.hpp>
#include <roundpipe/runtime/first_error.hpp>
#include <roundpipe/runtime/graph_run.hpp>
#include <roundpipe/runtime/issue_pace.hpp>
#include <roundpipe/runtime/run_history.hpp>
#include <roundpipe/runtime/run_queue.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

/// What the actions of a graph mean: `issue` enqueues a device's action on its stream, `run` does a
/// host's action. Both are called from the executor's threads, in the lanes' order. `abandon` is
/// called once on a host lane's thread that another thread's error stops, with the first action
/// that it leaves out.
template <class W, class B>
concept ActionWork =
    requires(W& work, GraphRun<B>& run, ActionId id, typename B::Stream& stream, DeviceId device) {
      work.issue(run, id, stream, device);
      work.run(run, id);
      work.abandon(run, id);
    };

/// Runs graphs in the order in which they are posted. All members are for one thread, the
/// controller's.
///
/// Every thread follows the graphs' issue order, so host waits can not form a cycle: before a
/// stream waits for another device's event, the issuing thread waits until the event is recorded.
/// The first error stops everything and is thrown by the controller's next call.
template <Backend B, ActionWork<B> W>
class Executor {
 public:
  using Stream = typename B::Stream;

  /// \p backend and \p work must outlive the executor. \p cpus says what threads are pinned to.
  Executor(B& backend, W& work, std::size_t devices, CpuPlan cpus = {})
      : backend_(backend), work_(work), cpus_(std::move(cpus)), device_queues_(devices) {
    for (std::size_t d = 0; d < devices; ++d) {
      auto& lanes = streams_.emplace_back();
      for (std::size_t k = 0; k < device_lane_count; ++k) {
        lanes.push_back(backend.make_stream(DeviceId(d), static_cast<LaneKind>(k)));
      }
      origins_.push_back(backend.make_event(DeviceId(d)));
      paces_.emplace_back(backend, DeviceId(d));
      lanes.front().record(origins_.back());
    }
    for (auto& origin : origins_) {
      origin.wait();
    }
    origin_ = RunClock::now();
    for (std::size_t k = 0; k < host_lane_count; ++k) {
      fences_.push_back(backend.make_fence());
    }
    for (std::size_t d = 0; d < devices; ++d) {
      threads_.emplace_back([this, d] { issue_all(DeviceId(d)); });
    }
    for (std::size_t k = 0; k < host_lane_count; ++k) {
      threads_.emplace_back([this, k] { work_all(k); });
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
      auto const kind = static_cast<LaneKind>(device_lane_count + k);
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
      if (!program.of_host(static_cast<LaneKind>(device_lane_count + k)).empty()) {
        host_queues_[k].push(&run);
      }
    }
  }

  /// Blocks until action \p id of \p run is complete.
  void wait(GraphRun<B>& run, ActionId id) {
    auto const& lane = run.program()[id].lane;
    if (!lane.device.valid()) {
      wait_host(GraphProgram::host_index(lane.kind), run.host_sequence(id));
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
    guard([&] { collect(run); });
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
    for (auto& done : host_done_) {
      done.store(all_done, std::memory_order_release);
      done.notify_all();
    }
  }

  /// Throws the error that has stopped the executor, if one has.
  void rethrow() const { error_.rethrow(); }

  /// Called with the timeline of every complete run.
  std::function<void(GraphRun<B> const&, std::vector<TimelineEntry> const&)> on_complete;

 private:
  static constexpr auto all_done = std::numeric_limits<std::uint64_t>::max();

  /// Turns the backend's errors into this executor's first one.
  template <class F>
  void guard(F&& f) {
    try {
      f();
    } catch (...) {
      fail(std::current_exception());
    }
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
        auto const done = lane.device.valid()
                              ? run.is_issued(id) && run.end_event(id).ready()
                              : host_done_[GraphProgram::host_index(lane.kind)].load(
                                    std::memory_order_acquire) >= run.host_sequence(id);
        complete = complete && done;
      }
    });
    return complete;
  }

  void wait_host(std::size_t lane, std::uint64_t sequence) const {
    auto const& done = host_done_[lane];
    for (auto seen = done.load(std::memory_order_acquire); seen < sequence;
         seen = done.load(std::memory_order_acquire)) {
      done.wait(seen, std::memory_order_acquire);
    }
  }

  /// Calls \p f and adds the action's place to what it throws.
  template <class F>
  static void locate(GraphRun<B> const& run, ActionId id, std::string const& device, F&& f) {
    auto const placed = [&](char const* reason) {
      return run.program().label(id) + device + ": " + reason;
    };
    try {
      f();
    } catch (Error const& error) {
      throw Error(error.code(), placed(error.message().c_str()), error.where());
    } catch (std::exception const& error) {
      throw Error(Errc::device_fault, placed(error.what()));
    }
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
        if (error_.is_set()) {
          return;
        }
        try {
          issue(run, actions[i], device);
        } catch (...) {
          fail(std::current_exception());
          return;
        }
        run.set_issued(relative, i);
      }
    }
  }

  void issue(GraphRun<B>& run, ActionId id, DeviceId device) {
    auto const& action = run.program()[id];
    auto& stream = streams_[device.index()][static_cast<std::size_t>(action.lane.kind)];
    for (auto const wait : action.waits) {
      auto const& lane = run.program()[wait].lane;
      if (lane.device.valid()) {
        run.wait_issued(wait);
        stream.wait(run.end_event(wait));
      } else {
        stream.wait(fences_[GraphProgram::host_index(lane.kind)], run.host_sequence(wait));
      }
    }
    for (auto const& ticket : run.external(id)) {
      if (ticket.run != nullptr) {
        ticket.run->wait_issued(ticket.action);
        stream.wait(ticket.run->end_event(ticket.action));
        ticket.run->unpin();
      } else {
        stream.wait(fences_[GraphProgram::host_index(ticket.lane)], ticket.sequence);
      }
    }
    auto& pace = paces_[device.index()];
    bool const computes = action.lane.kind == LaneKind::compute;
    if (computes) {
      pace.before();
    }
    annotate(stream, run.program().label(id).c_str());
    stream.record(run.start_event(id));
    locate(run, id, ", device " + std::to_string(device.value()), [&] {
      work_.issue(run, id, stream, device);
    });
    stream.record(run.end_event(id));
    annotate(stream, nullptr);
    if (computes) {
      pace.after(stream);
    }
  }

  static void annotate(Stream& stream, char const* label) {
    if constexpr (requires { stream.annotate(label); }) {
      stream.annotate(label);
    }
  }

  void work_all(std::size_t lane) {
    auto const kind = static_cast<LaneKind>(device_lane_count + lane);
    if (auto const& cpus = cpus_.optimizer.cpus; !cpus.empty()) {
      // The optimizer's lane is the first of the threads that share its work.
      pin_this_thread(kind == LaneKind::optimizer ? std::span(cpus).first(1) : std::span(cpus));
    }
    while (auto const next = host_queues_[lane].pop()) {
      auto& run = **next;
      for (auto const id : run.program().of_host(kind)) {
        if (!may_run(run, id)) {
          abandon(run, id);
          return;
        }
        try {
          if constexpr (requires { backend_.before_host_action(kind); }) {
            backend_.before_host_action(kind);
          }
          auto& times = run.host_times(id);
          times.start = RunClock::now();
          locate(run, id, "", [&] { work_.run(run, id); });
          times.end = RunClock::now();
          auto const sequence = run.host_sequence(id);
          auto expected = sequence - 1;
          host_done_[lane].compare_exchange_strong(expected, sequence, std::memory_order_release);
          host_done_[lane].notify_all();
          fences_[lane].signal(sequence);
        } catch (...) {
          fail(std::current_exception());
          return;
        }
      }
    }
  }

  /// Waits for what a host's action waits for. \returns whether nothing has failed.
  bool may_run(GraphRun<B>& run, ActionId id) {
    try {
      wait_for_all(run, id);
    } catch (...) {
      fail(std::current_exception());
    }
    return !error_.is_set();
  }

  /// What it throws comes after an error that is known.
  void abandon(GraphRun<B>& run, ActionId id) noexcept {
    try {
      work_.abandon(run, id);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }

  /// The waits of a host's action, on the host.
  void wait_for_all(GraphRun<B>& run, ActionId id) {
    for (auto const wait : run.program()[id].waits) {
      auto const& lane = run.program()[wait].lane;
      if (lane.device.valid()) {
        run.wait_issued(wait);
        run.end_event(wait).wait();
      } else {
        wait_host(GraphProgram::host_index(lane.kind), run.host_sequence(wait));
      }
    }
    for (auto const& ticket : run.external(id)) {
      if (ticket.run != nullptr) {
        ticket.run->wait_issued(ticket.action);
        ticket.run->end_event(ticket.action).wait();
        ticket.run->unpin();
      } else {
        wait_host(GraphProgram::host_index(ticket.lane), ticket.sequence);
      }
    }
  }

  void collect(GraphRun<B>& run) {
    if (!on_complete) {
      return;
    }
    entries_.clear();
    auto const& actions = run.program().graph().actions;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      auto const& action = actions[i];
      TimelineEntry entry{run.number(),
                          ActionId(i),
                          action.kind,
                          action.lane,
                          action.slot,
                          action.stage,
                          action.round,
                          action.micro_batch,
                          action.layer,
                          action.block,
                          action.bytes,
                          0,
                          0};
      if (action.lane.device.valid()) {
        entry.lane.device = run.physical(action.lane.device);
        auto const& origin = origins_[entry.lane.device.index()];
        entry.start_s = run.start_event(ActionId(i)).seconds_since(origin);
        entry.end_s = run.end_event(ActionId(i)).seconds_since(origin);
      } else {
        auto const& times = run.host_times(ActionId(i));
        entry.start_s = std::chrono::duration<double>(times.start - origin_).count();
        entry.end_s = std::chrono::duration<double>(times.end - origin_).count();
      }
      entries_.push_back(entry);
    }
    on_complete(run, entries_);
  }

  B& backend_;
  W& work_;
  CpuPlan cpus_;
  FirstError error_;
  std::vector<std::vector<Stream>> streams_;  // by device, by kind
  std::vector<IssuePace<B>> paces_;           // by device
  std::vector<typename B::Event> origins_;    // by device: time zero
  RunClock::time_point origin_;
  std::vector<typename B::Fence> fences_;  // by host lane
  std::array<std::atomic<std::uint64_t>, host_lane_count> host_done_{};
  std::array<std::uint64_t, host_lane_count> host_posted_{};
  std::mutex runs_mutex_;  // fail() may come from any thread
  std::vector<std::unique_ptr<GraphRun<B>>> runs_;
  RunHistory<B> history_;
  std::vector<TimelineEntry> entries_;
  std::size_t posted_ = 0;
  std::size_t first_device_ = 0;
  std::vector<RunQueue<GraphRun<B>*>> device_queues_;
  std::array<RunQueue<GraphRun<B>*>, host_lane_count> host_queues_;
  std::vector<std::thread> threads_;
};

}  // namespace roundpipe
