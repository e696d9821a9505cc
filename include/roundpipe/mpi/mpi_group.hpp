// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The processes that mpirun starts, as a group.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/group_checks.hpp>
#include <roundpipe/hosts/group_end.hpp>
#include <roundpipe/mpi/mpi_error.hpp>
#include <roundpipe/mpi/mpi_requests.hpp>
#include <roundpipe/mpi/mpi_session.hpp>
#include <roundpipe/system/first_error.hpp>
#include <roundpipe/system/start_thread.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

/// How a \ref MpiGroup works.
struct MpiOptions {
  /// The most bytes of one call of MPI.
  std::size_t piece_bytes = mpi::piece_bytes;
};

/// \brief All ranks of MPI_COMM_WORLD.
///
/// A thread of the group makes all calls of MPI, non-blocking ones, and looks whether they are
/// complete; callers sleep until then. MPI moves bytes when somebody looks: while pieces arrive,
/// the thread does so all the time, and else every few microseconds. Where the program has not
/// initialized MPI, the thread does so, and finalizes it: a process then makes one such group.
/// Otherwise MPI must allow MPI_THREAD_SERIALIZED, and while the group lives nobody else calls MPI.
///
/// Construction and destruction are operations of all ranks. A group that is destroyed while an
/// exception unwinds the stack aborts. After an abort MPI is left as it is: the process can say why
/// and end, but not begin anew, and MPI_Finalize is not called, so mpirun ends the ranks that are
/// left and reports failure. A process that dies ends the others likewise.
class MpiGroup {
 public:
  /// \throws Error (device_fault) for what MPI says, (unsupported) where MPI was initialized with
  ///         too little thread support; as \ref start_thread does.
  explicit MpiGroup(MpiOptions options = {}) : options_(options) {
    thread_ = start_thread("MPI", [this] { serve(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return started_; });
    if (error_.is_set()) {
      lock.unlock();
      thread_.join();
      error_.rethrow();
    }
  }

  MpiGroup(MpiGroup const&) = delete;
  MpiGroup& operator=(MpiGroup const&) = delete;

  ~MpiGroup() {
    if (std::uncaught_exceptions() > exceptions_) {
      abort("an exception has left the scope of its group");
    }
    {
      std::lock_guard const lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void gather(GroupChannel channel, ConstHostBytes mine, HostBytes all) {
    detail::check_gather(size_, mine, all);
    run([&](mpi::Requests& requests) { requests.gather(session_->channel(channel), mine, all); });
  }
  void exchange(GroupChannel channel,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs) {
    detail::check_exchange(rank_, size_, mine, theirs);
    run([&](mpi::Requests& requests) {
      requests.exchange(session_->channel(channel), mine, theirs);
    });
  }
  void broadcast(GroupChannel channel, std::size_t root, HostBytes bytes) {
    detail::check_root(size_, root);
    run([&](mpi::Requests& requests) {
      requests.broadcast(session_->channel(channel), root, bytes);
    });
  }
  void barrier(GroupChannel channel) {
    run([&](mpi::Requests& requests) { requests.barrier(session_->channel(channel)); });
  }

  void abort(std::string const& reason) {
    {
      std::lock_guard const lock(mutex_);
      if (end_.set(rank_, reason)) {
        notice_ = reason;
      }
    }
    changed_.notify_all();
  }
  void rethrow() const { end_.rethrow(); }

 private:
  /// A call of a thread that waits for it.
  struct Operation {
    std::function<void(mpi::Requests&)> start;
    mpi::Requests requests;
    bool started = false;
    bool done = false;
    std::exception_ptr error{};
  };

  /// Lets the thread do what \p start starts, and waits until that is done.
  void run(std::function<void(mpi::Requests&)> start) {
    Operation operation{std::move(start), mpi::Requests(options_.piece_bytes)};
    std::unique_lock lock(mutex_);
    end_.rethrow();
    operations_.push_back(&operation);
    changed_.notify_all();
    changed_.wait(lock, [&] { return operation.done; });
    if (operation.error) {
      std::rethrow_exception(operation.error);
    }
  }

  /// The thread: from MPI's beginning to its end.
  void serve() noexcept {
    try {
      mpi::Session session;
      start(&session);
      while (is_open()) {
        step(session);
      }
      if (end_.is_set()) {
        send_notice(session);
        // Launchers kill all ranks when one ends like this: let the others say why they end.
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        session.leave();
      }
    } catch (...) {
      error_.set(std::current_exception());
      abort(current_error("").message());
      fail_operations();
      start(nullptr);
    }
  }

  /// Says that the group can be used or, without \p session, that it never can.
  void start(mpi::Session* session) {
    {
      std::lock_guard const lock(mutex_);
      if (session != nullptr) {
        session_ = session;
        rank_ = session->rank();
        size_ = session->size();
      }
      started_ = true;
    }
    changed_.notify_all();
  }

  [[nodiscard]] bool is_open() {
    std::lock_guard const lock(mutex_);
    return !closing_;
  }

  /// Looks once at everything, and rests unless something has just been completed.
  void step(mpi::Session& session) {
    bool busy = false;
    if (!end_.is_set()) {
      if (auto const notice = session.poll_notice()) {
        end_.set(notice->rank, notice->reason);
      }
    }
    if (end_.is_set()) {
      send_notice(session);
      fail_operations();
    } else {
      busy = advance();
    }
    std::unique_lock lock(mutex_);
    if (busy && std::chrono::steady_clock::now() < moved_ + keen) {
      lock.unlock();
      std::this_thread::yield();
    } else if (busy) {
      changed_.wait_for(lock, std::chrono::microseconds(20));
    } else {  // so that a notice is found soon
      changed_.wait_for(lock, std::chrono::milliseconds(5), [&] {
        return closing_ || notice_.has_value() || (!operations_.empty() && !end_.is_set());
      });
    }
  }

  /// Starts and completes operations. \returns whether some are under way.
  [[nodiscard]] bool advance() {
    for (auto* const operation : known_operations()) {
      bool done = false;
      try {
        if (!std::exchange(operation->started, true)) {
          operation->start(operation->requests);
          moved_ = std::chrono::steady_clock::now();
        }
        if (operation->requests.advance()) {
          moved_ = std::chrono::steady_clock::now();
        }
        done = operation->requests.are_done();
      } catch (...) {
        operation->error = std::current_exception();
        abort(current_error("").message());
        done = true;
      }
      if (done) {
        finish(*operation);
      }
    }
    return !known_operations().empty();
  }

  [[nodiscard]] std::vector<Operation*> known_operations() {
    std::lock_guard const lock(mutex_);
    return operations_;
  }

  void finish(Operation& operation) {
    std::lock_guard const lock(mutex_);
    operations_.erase(std::find(operations_.begin(), operations_.end(), &operation));
    operation.done = true;
    changed_.notify_all();
  }

  /// Ends all operations by the group's own end.
  void fail_operations() {
    std::exception_ptr error;
    try {
      end_.rethrow();
    } catch (...) {
      error = std::current_exception();
    }
    for (auto* const operation : known_operations()) {
      operation->error = error;
      finish(*operation);
    }
  }

  /// Tells the others, once, that this rank has ended the group.
  void send_notice(mpi::Session& session) {
    std::optional<std::string> notice;
    {
      std::lock_guard const lock(mutex_);
      notice = std::exchange(notice_, std::nullopt);
    }
    if (notice) {
      session.send_notice(*notice);
    }
  }

  /// For so long after a piece the thread looks without a rest: longer than one takes.
  static constexpr std::chrono::milliseconds keen{3};

  MpiOptions options_;
  int exceptions_ = std::uncaught_exceptions();
  std::size_t rank_ = 0;
  std::size_t size_ = 1;
  GroupEnd end_;
  FirstError error_;  // of the beginning
  std::mutex mutex_;  // for all below
  std::condition_variable changed_;
  std::chrono::steady_clock::time_point moved_;  // when something went on; the thread's alone
  mpi::Session* session_ = nullptr;              // the thread's
  std::vector<Operation*> operations_;
  std::optional<std::string> notice_;  // to be sent
  bool started_ = false;
  bool closing_ = false;
  std::thread thread_;
};

static_assert(ProcessGroup<MpiGroup>);

}  // namespace roundpipe
