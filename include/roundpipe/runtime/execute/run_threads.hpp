// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The threads that run graphs: two that issue for each device, one for each host lane.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/issuer.hpp>
#include <roundpipe/runtime/execute/device_issuer.hpp>
#include <roundpipe/runtime/execute/device_work.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/host_lane_worker.hpp>
#include <roundpipe/runtime/execute/host_progress.hpp>
#include <roundpipe/runtime/execute/run_queue.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/system/cpu_plan.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/first_error.hpp>
#include <roundpipe/system/start_thread.hpp>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

/// Runs what it is handed, run after run, until an error stops everything. All members are for one
/// thread, the controller's, except \ref fail, which is for any.
///
/// An action of a device that cannot be issued stops everything only when the host's lanes have
/// done all that was handed before its run, which needs nothing of it: a bad call leaves the step
/// before it whole.
///
/// Every thread follows the graphs' issue order, so host waits cannot form a cycle: before a
/// stream waits for another device's event, the issuing thread waits until the event is recorded.
template <Backend B>
class RunThreads {
 public:
  /// Makes streams, but starts no thread. \p backend, \p work and all of \p host_lanes must outlive
  /// this. \p cpus says what threads are pinned to.
  RunThreads(B& backend,
             DeviceWork<B>& work,
             std::vector<HostLaneWork*> const& host_lanes,
             std::size_t devices,
             CpuPlan cpus)
      : backend_(backend),
        work_(work),
        cpus_(std::move(cpus)),
        lanes_(traits_of(host_lanes)),
        hosts_(backend, lanes_),
        issue_queues_(issuers_of(devices)),
        host_queues_(lanes_.size()) {
    make_issuers();
    for (auto* const lane : host_lanes) {
      workers_.emplace_back(backend, *lane, hosts_);
    }
  }

  RunThreads(RunThreads const&) = delete;
  RunThreads& operator=(RunThreads const&) = delete;
  ~RunThreads() { join(); }

  /// \throws Error as \ref start_thread does.
  void start() {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      for (auto const part : Issuer::parts) {
        threads_.push_back(start_thread("device " + std::to_string(d),
                                        [this, d, part] { issue_all({DeviceId(d), part}); }));
      }
    }
    for (std::size_t k = 0; k < workers_.size(); ++k) {
      threads_.push_back(start_thread(std::string("the host's lane ") + name_of(lanes_[k].kind),
                                      [this, k] { work_all(k); }));
    }
  }

  /// Makes a slot for runs of \p program about \p call; both must outlive this.
  /// \throws Error (unsupported) when the program has actions on a host lane without work.
  GraphRun<B>& make_run(GraphProgram const& program, CallData& call) {
    for (std::size_t k = 0; k < program.host_lanes(); ++k) {
      if (!program.of_host(host_lane(k)).empty()) {
        (void)position_of(host_lane(k), lanes_);
      }
    }
    auto run = std::make_unique<GraphRun<B>>(backend_, program, call);
    std::lock_guard const lock(runs_mutex_);
    runs_.push_back(std::move(run));
    return *runs_.back();
  }

  /// Hands \p run to the threads that have an action of it; the others would never be waited for.
  void hand(GraphRun<B>& run) {
    auto const& program = run.program();
    for (std::size_t d = 0; d < program.graph().devices; ++d) {
      for (auto const part : Issuer::parts) {
        if (!program.of_issuer({run.relative(DeviceId(d)), part}).empty()) {
          issue_queues_[Issuer{DeviceId(d), part}.index()].push(&run);
        }
      }
    }
    // The lane that updates is the last one. What another lane begins of a step, it knows of.
    for (auto k = lanes_.size(); k-- > 0;) {
      if (!program.of_host(lanes_[k].kind).empty()) {
        host_queues_[k].push(&run);
      }
    }
  }

  /// Lets the threads finish what they were handed, unless an error has stopped them, and ends
  /// them.
  void join() {
    for_each_queue([](auto& queue) { queue.close(); });
    for (auto& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

  /// After an error and \ref join: forgets the error and all runs, and starts anew. Waits for what
  /// the devices still do.
  /// \throws Error as the backend's `resume` does, and then nothing can be run.
  void restart()
    requires HasResume<B>
  {
    devices_.clear();  // streams go first: what is enqueued uses all the rest
    backend_.resume();
    hosts_.restart(backend_);
    make_issuers();
    for (auto const& run : runs_) {
      run->reset();
    }
    for_each_queue([](auto& queue) { queue.reopen(); });
    start();
    error_.clear();
  }

  [[nodiscard]] bool has_failed() const noexcept { return error_.is_set(); }

  /// Stops everything with \p error, unless another one came first.
  void fail(std::exception_ptr const& error) noexcept {
    if (!error_.set(error)) {
      return;
    }
    backend_.abort();
    for (auto& worker : workers_) {
      worker.interrupt(error);
    }
    for_each_queue([](auto& queue) { queue.close(); });
    {
      std::lock_guard const lock(runs_mutex_);
      for (auto const& run : runs_) {
        run->release_waiters();
      }
    }
    hosts_.release();
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

  /// Throws the error that has stopped everything, if one has.
  void rethrow() const { error_.rethrow(); }

  [[nodiscard]] std::span<HostLaneTraits const> lanes() const noexcept { return lanes_; }
  [[nodiscard]] HostProgress<B> const& hosts() const noexcept { return hosts_; }
  [[nodiscard]] std::size_t devices() const noexcept { return devices_.size(); }
  [[nodiscard]] typename B::Stream& stream(DeviceId device, LaneKind kind) {
    return devices_[device.index()].stream(kind);
  }
  /// All slots.
  [[nodiscard]] std::vector<std::unique_ptr<GraphRun<B>>> const& runs() const noexcept {
    return runs_;
  }

 private:
  [[nodiscard]] static std::vector<HostLaneTraits> traits_of(
      std::vector<HostLaneWork*> const& lanes) {
    std::vector<HostLaneTraits> traits;
    for (auto const* const lane : lanes) {
      traits.push_back(lane->lane());
    }
    return traits;
  }

  void make_issuers() {
    for (std::size_t d = 0; d < issue_queues_.size() / issuers_of(1); ++d) {
      devices_.emplace_back(backend_, work_, hosts_, DeviceId(d));
    }
  }

  template <class F>
  void for_each_queue(F&& f) {
    std::for_each(issue_queues_.begin(), issue_queues_.end(), f);
    std::for_each(host_queues_.begin(), host_queues_.end(), f);
  }

  void issue_all(Issuer issuer) {
    auto const device = issuer.device.index();
    // The thread of the parameters nearly always sleeps.
    if (issuer.part == Issuer::Part::rest && device < cpus_.issuing.size()) {
      pin_this_thread(std::span(&cpus_.issuing[device], 1));
    }
    while (auto const next = issue_queues_[issuer.index()].pop()) {
      auto& run = static_cast<GraphRun<B>&>(**next);
      for (auto const id : run.program().of_issuer({run.relative(issuer.device), issuer.part})) {
        if (error_.is_set()) {
          return;
        }
        try {
          devices_[device].issue(run, id);
        } catch (...) {
          wait_for_lanes_before(run);
          fail(std::current_exception());
          return;
        }
        run.set_issued(id);
      }
    }
  }

  /// Blocks until the host's lanes have done what was handed before \p run, or are released.
  void wait_for_lanes_before(RunState const& run) const {
    for (auto const& lane : lanes_) {
      hosts_.wait(lane.kind, run.host_base(lane.kind));
    }
  }

  void work_all(std::size_t lane) {
    auto& worker = workers_[lane];
    if (auto const& cpus = cpus_.optimizer.cpus; !cpus.empty()) {
      pin_this_thread(worker.lane().leads_threads ? std::span(cpus).first(1) : std::span(cpus));
    }
    work(worker, host_queues_[lane]);
    hosts_.end(worker.lane().kind);
  }

  void work(HostLaneWorker<B>& worker, RunQueue<RunState*>& queue) {
    while (auto const next = queue.pop()) {
      auto& run = static_cast<GraphRun<B>&>(**next);
      for (auto const id : run.program().of_host(worker.lane().kind)) {
        if (error_.is_set() || !succeeds([&] { worker.wait_for_all(run, id); }) ||
            error_.is_set() || !succeeds([&] { worker.run(run, id); })) {
          worker.abandon(run, id);
          return;
        }
      }
    }
  }

  B& backend_;
  DeviceWork<B>& work_;
  CpuPlan cpus_;
  std::vector<HostLaneTraits> lanes_;
  FirstError error_;
  HostProgress<B> hosts_;
  std::vector<DeviceIssuer<B>> devices_;
  std::vector<HostLaneWorker<B>> workers_;  // by host lane
  std::mutex runs_mutex_;                   // fail() may come from any thread
  std::vector<std::unique_ptr<GraphRun<B>>> runs_;
  std::vector<RunQueue<RunState*>> issue_queues_;  // by issuer
  std::vector<RunQueue<RunState*>> host_queues_;   // by host lane
  std::vector<std::thread> threads_;
};

}  // namespace roundpipe
