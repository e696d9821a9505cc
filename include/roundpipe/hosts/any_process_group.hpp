// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A group of any type behind one type.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/concepts/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace roundpipe {

/// Refers to any \ref ProcessGroup, which must outlive it and its copies, and does what that does.
/// Without one it is the group of a single process.
class AnyProcessGroup {
 public:
  AnyProcessGroup();
  template <class G>
    requires(!std::same_as<G, AnyProcessGroup>)
  AnyProcessGroup(G& group) : calls_(std::make_shared<CallsOf<G>>(group)) {
    static_assert(detail::check_group<G>());
  }

  [[nodiscard]] std::size_t rank() const { return calls_->rank(); }
  [[nodiscard]] std::size_t size() const { return calls_->size(); }
  void gather(GroupChannel channel, ConstHostBytes mine, HostBytes all) {
    calls_->gather(channel, mine, all);
  }
  void exchange(GroupChannel channel,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs) {
    calls_->exchange(channel, mine, theirs);
  }
  void broadcast(GroupChannel channel, std::size_t root, HostBytes bytes) {
    calls_->broadcast(channel, root, bytes);
  }
  void barrier(GroupChannel channel) { calls_->barrier(channel); }
  void abort(std::string const& reason) { calls_->abort(reason); }
  void rethrow() const { calls_->rethrow(); }

 private:
  class Calls {
   public:
    Calls() = default;
    Calls(Calls const&) = delete;
    Calls& operator=(Calls const&) = delete;
    virtual ~Calls() = default;
    [[nodiscard]] virtual std::size_t rank() const = 0;
    [[nodiscard]] virtual std::size_t size() const = 0;
    virtual void gather(GroupChannel, ConstHostBytes, HostBytes) = 0;
    virtual void exchange(GroupChannel,
                          std::span<ConstHostBytes const>,
                          std::span<HostBytes const>) = 0;
    virtual void broadcast(GroupChannel, std::size_t, HostBytes) = 0;
    virtual void barrier(GroupChannel) = 0;
    virtual void abort(std::string const&) = 0;
    virtual void rethrow() = 0;
  };

  template <class G>
  class CallsOf final : public Calls {
   public:
    explicit CallsOf(G& group) : group_(group) {}
    [[nodiscard]] std::size_t rank() const override { return group_.rank(); }
    [[nodiscard]] std::size_t size() const override { return group_.size(); }
    void gather(GroupChannel channel, ConstHostBytes mine, HostBytes all) override {
      group_.gather(channel, mine, all);
    }
    void exchange(GroupChannel channel,
                  std::span<ConstHostBytes const> mine,
                  std::span<HostBytes const> theirs) override {
      group_.exchange(channel, mine, theirs);
    }
    void broadcast(GroupChannel channel, std::size_t root, HostBytes bytes) override {
      group_.broadcast(channel, root, bytes);
    }
    void barrier(GroupChannel channel) override { group_.barrier(channel); }
    void abort(std::string const& reason) override { group_.abort(reason); }
    void rethrow() override { group_.rethrow(); }

   private:
    G& group_;
  };

  std::shared_ptr<Calls> calls_;
};

static_assert(ProcessGroup<AnyProcessGroup>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/hosts/impl/any_process_group.ipp>
#endif
