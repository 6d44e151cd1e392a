// Workers that are threads of one process and meet in its memory: a world without gRPC and Gloo.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/devices/workers.h"
#include "headrace/devices/workers/transport.h"

namespace headrace::test {

// Outlived by its memberships. Thread-safe.
class ThreadWorld {
 public:
  explicit ThreadWorld(int workers, const WorkerOptions& options = {})
      : hall_(std::make_shared<Hall>()), options_(options) {
    hall_->members.assign(static_cast<std::size_t>(workers), {.host = "thread", .process = getpid()});
    hall_->calls.assign(hall_->members.size(), 0);
  }

  // One of each rank, each used by one thread at a time.
  std::shared_ptr<Workers> join(int rank) const {
    return std::make_shared<Workers>(std::make_unique<Member>(hall_, rank, options_), options_);
  }
  // As if the process of this worker had ended.
  void lose(int rank) { hall_->fail(rank, "was lost"); }

 private:
  struct Meeting {
    std::map<int, std::string> values;
    std::size_t left = 0;
  };

  struct Hall {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<WorkerInfo> members;
    std::vector<int> calls;  // that each has begun
    std::map<int, Meeting> meetings;
    std::string failure;

    void fail(int rank, const std::string& reason) {
      const std::lock_guard lock(mutex);
      const std::string name = members[static_cast<std::size_t>(rank)].to_string(rank);
      if (failure.empty()) failure = name + " " + reason;
      changed.notify_all();
    }
  };

  class Member final : public WorkerTransport {
   public:
    Member(std::shared_ptr<Hall> hall, int rank, const WorkerOptions& options)
        : hall_(std::move(hall)), rank_(rank), limit_(options.call_timeout_seconds) {}

    int rank() const noexcept override { return rank_; }
    const std::vector<WorkerInfo>& members() const noexcept override { return hall_->members; }

    const WorkerFact& transport() const noexcept override {
      static const WorkerFact memory{.name = "transport", .value = "memory", .from = "the test"};
      return memory;
    }

    std::vector<std::string> all_gather(std::string_view mine, std::string_view /*what*/) override {
      std::unique_lock lock(hall_->mutex);
      const int call = hall_->calls[static_cast<std::size_t>(rank_)]++;
      Meeting& meeting = hall_->meetings[call];
      meeting.values[rank_] = mine;
      hall_->changed.notify_all();
      const bool over = hall_->changed.wait_for(
          lock, limit_, [&] { return meeting.values.size() == hall_->members.size() || !hall_->failure.empty(); });
      if (!over) throw DeviceError(ErrorCode::kTimeout, "a worker is late", "a thread");
      if (!hall_->failure.empty()) throw DeviceError(ErrorCode::kCancelled, hall_->failure, "a thread");
      std::vector<std::string> all;
      for (const auto& [rank, value] : meeting.values) all.push_back(value);
      if (++meeting.left == all.size()) hall_->meetings.erase(call);
      return all;
    }

    void all_reduce_sum(float* values, std::size_t count) override {
      std::vector<std::string> all =
          all_gather({reinterpret_cast<const char*>(values), count * sizeof(float)}, "");
      std::vector<std::vector<float>> parts(all.size(), std::vector<float>(count));
      for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(parts[i].data(), all[i].data(), all[i].size());
      for (std::size_t stride = 1; stride < parts.size(); stride *= 2) {
        for (std::size_t at = 0; at + stride < parts.size(); at += 2 * stride) {
          for (std::size_t i = 0; i < count; ++i) parts[at][i] += parts[at + stride][i];
        }
      }
      std::memcpy(values, parts[0].data(), count * sizeof(float));
    }

    void broadcast(std::byte* bytes, std::size_t count, int root) override {
      const auto all = all_gather({reinterpret_cast<const char*>(bytes), rank_ == root ? count : 0}, "");
      std::memcpy(bytes, all[static_cast<std::size_t>(root)].data(), count);
    }

    void set_moment(std::string) override {}
    void sign_off() noexcept override {}
    void abort(const std::string& reason) noexcept override { hall_->fail(rank_, "failed: " + reason); }
    std::string failure() const override {
      const std::lock_guard lock(hall_->mutex);
      return hall_->failure;
    }

   private:
    std::shared_ptr<Hall> hall_;
    int rank_;
    std::chrono::duration<double> limit_;
  };

  std::shared_ptr<Hall> hall_;
  WorkerOptions options_;
};

}  // namespace headrace::test
